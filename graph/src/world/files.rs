//! The only IO of a world: bounded, contained reads that turn every failure into a diagnostic.

use std::{
    collections::BTreeMap,
    fs::File,
    io::Read,
    path::{Component, Path, PathBuf},
};

use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_saphyr::Spanned;

use crate::{
    Diagnostic, Severity,
    limits::{MAX_DOCUMENT_DEPTH, MAX_DOCUMENT_NODES, MAX_PACKAGE_BYTES, MAX_PACKAGE_FILES, MAX_TEXT_FILE_BYTES},
};

/// A listed world folder. Only what was listed at the start can be read, so a name cannot lead outside.
pub(super) struct Folder {
    pub(super) root: PathBuf,
    /// Relative path with `/` to length in bytes.
    files: BTreeMap<String, u64>,
    pub(super) errors: Vec<Diagnostic>,
    pub(super) warnings: Vec<Diagnostic>,
}

fn finding(code: &str, file: &str, message: impl Into<String>) -> Diagnostic {
    Diagnostic {
        severity: Severity::Error,
        code: code.into(),
        message: message.into(),
        help: None,
        plugin_id: None,
        file: file.into(),
        line: 0,
        column: 0,
        path: None,
    }
}

impl Folder {
    /// Lists a folder within the package limits.
    pub(super) fn open(dir: &Path) -> Result<Self, Vec<Diagnostic>> {
        let name = dir.display().to_string();
        let root = dir.canonicalize().map_err(|error| {
            vec![finding("world-unreadable", &name, format!("cannot open the world folder: {error}"))]
        })?;
        let mut folder = Self { root, files: BTreeMap::new(), errors: Vec::new(), warnings: Vec::new() };
        let mut bytes = 0;
        let mut pending = vec![(folder.root.clone(), String::new(), 0)];
        while let Some((path, prefix, depth)) = pending.pop() {
            if let Err(problem) = folder.list(&path, &prefix, depth, &mut bytes, &mut pending) {
                return Err(vec![*problem]);
            }
        }
        Ok(folder)
    }

    fn list(
        &mut self,
        path: &Path,
        prefix: &str,
        depth: usize,
        bytes: &mut u64,
        pending: &mut Vec<(PathBuf, String, usize)>,
    ) -> Result<(), Box<Diagnostic>> {
        let shown = if prefix.is_empty() { "." } else { prefix };
        let unreadable = |error: std::io::Error| finding("world-unreadable", shown, format!("cannot list: {error}"));
        if depth > MAX_DOCUMENT_DEPTH {
            let message = format!("folders nest deeper than {MAX_DOCUMENT_DEPTH}");
            return Err(finding("world-too-deep", shown, message).into());
        }
        for entry in std::fs::read_dir(path).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            let Some(name) = entry.file_name().to_str().map(str::to_owned) else {
                return Err(finding("name-not-utf8", shown, "a file name is not UTF-8").into());
            };
            let relative = if prefix.is_empty() { name } else { format!("{prefix}/{name}") };
            // `metadata` of an entry does not follow links.
            let metadata = entry.metadata().map_err(unreadable)?;
            if metadata.is_symlink() {
                let message = "a world holds no symbolic links";
                return Err(finding("symlink-refused", &relative, message).into());
            }
            if metadata.is_dir() {
                pending.push((entry.path(), relative, depth + 1));
                continue;
            }
            *bytes += metadata.len();
            self.files.insert(relative, metadata.len());
            if self.files.len() > MAX_PACKAGE_FILES || *bytes > MAX_PACKAGE_BYTES {
                let message = format!("a world holds at most {MAX_PACKAGE_FILES} files and {MAX_PACKAGE_BYTES} bytes");
                return Err(finding("world-too-large", shown, message).into());
            }
        }
        Ok(())
    }

    /// Records an error about a whole file.
    pub(super) fn error(&mut self, code: &str, file: &str, message: &str) {
        self.errors.push(finding(code, file, message));
    }

    /// A finding about a value of the manifest.
    pub(super) fn finding_at<T>(&self, code: &str, at: &Spanned<T>, path: &str, message: String) -> Diagnostic {
        let place = at.referenced;
        Diagnostic {
            line: u32::try_from(place.line()).unwrap_or(0),
            column: u32::try_from(place.column()).unwrap_or(0),
            path: Some(path.into()),
            ..finding(code, super::WORLD_MANIFEST, message)
        }
    }

    /// Records an error about a value of the manifest; the caller may add help.
    pub(super) fn error_at<T>(&mut self, code: &str, at: &Spanned<T>, path: &str, message: String) -> &mut Diagnostic {
        let finding = self.finding_at(code, at, path, message);
        self.errors.push(finding);
        let last = self.errors.len() - 1;
        &mut self.errors[last]
    }

    /// YAML files of a folder (not of its subfolders), in name order.
    pub(super) fn list_yaml(&self, folder: &str) -> Vec<String> {
        let Some(folder) = clean(folder) else {
            return Vec::new();
        };
        let direct = |path: &&String| {
            path.strip_prefix(&folder)
                .and_then(|rest| rest.strip_prefix('/'))
                .is_some_and(|name| !name.contains('/') && (name.ends_with(".yaml") || name.ends_with(".yml")))
        };
        self.files.keys().filter(direct).cloned().collect()
    }

    /// A text file that may be absent.
    pub(super) fn optional_text(&mut self, path: &str) -> Option<String> {
        let known = clean(path).is_some_and(|path| self.files.contains_key(&path));
        if known { self.text(path) } else { None }
    }

    fn text(&mut self, path: &str) -> Option<String> {
        match self.read_text(path) {
            Ok(text) => Some(text),
            Err(problem) => {
                self.errors.push(*problem);
                None
            }
        }
    }

    fn read_text(&self, path: &str) -> Result<String, Box<Diagnostic>> {
        let Some(relative) = clean(path) else {
            let message = format!("`{path}` leads out of the world folder");
            let mut outside = finding("path-outside-world", path, message);
            outside.help = Some("a path is relative and stays inside the world folder".into());
            return Err(outside.into());
        };
        let Some(&length) = self.files.get(&relative) else {
            let message = format!("`{relative}` does not exist");
            return Err(finding("file-missing", &relative, message).into());
        };
        if length > MAX_TEXT_FILE_BYTES {
            let message = format!("{length} bytes; a text file holds at most {MAX_TEXT_FILE_BYTES}");
            return Err(finding("file-too-large", &relative, message).into());
        }
        // The bound holds even when the file has grown since it was listed.
        let mut bytes = Vec::new();
        File::open(self.root.join(&relative))
            .and_then(|file| file.take(MAX_TEXT_FILE_BYTES).read_to_end(&mut bytes))
            .map_err(|error| finding("file-unreadable", &relative, format!("cannot read: {error}")))?;
        let text = String::from_utf8(bytes).map_err(|error| {
            let at = error.utf8_error().valid_up_to();
            finding("file-not-utf8", &relative, format!("byte {at} is not UTF-8"))
        })?;
        Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
    }

    /// A YAML (or JSON) document that must be there.
    pub(super) fn yaml<T: DeserializeOwned>(&mut self, path: &str) -> Option<T> {
        let text = self.text(path)?;
        match parse(&text, path) {
            Ok(value) => Some(value),
            Err(problem) => {
                self.errors.push(*problem);
                None
            }
        }
    }

    /// A YAML document that may be absent.
    pub(super) fn optional_yaml<T: DeserializeOwned>(&mut self, path: &str) -> Option<T> {
        let known = clean(path).is_some_and(|path| self.files.contains_key(&path));
        if known { self.yaml(path) } else { None }
    }

    /// A second look at a document that was already read; failures were reported then.
    pub(super) fn yaml_quiet<T: DeserializeOwned>(&self, path: &str) -> Option<T> {
        parse(&self.read_text(path).ok()?, path).ok()
    }

    /// BLAKE3 over paths and contents, in path order.
    pub(super) fn digest(&mut self) -> String {
        let mut all = blake3::Hasher::new();
        for path in self.files.keys().cloned().collect::<Vec<_>>() {
            let mut one = blake3::Hasher::new();
            let read = File::open(self.root.join(&path)).and_then(|file| one.update_reader(file).map(drop));
            if let Err(error) = read {
                self.errors.push(finding("file-unreadable", &path, format!("cannot read: {error}")));
            }
            all.update(&(path.len() as u64).to_le_bytes());
            all.update(path.as_bytes());
            all.update(one.finalize().as_bytes());
        }
        all.finalize().to_hex().to_string()
    }
}

fn parse<T: DeserializeOwned>(text: &str, file: &str) -> Result<T, Box<Diagnostic>> {
    let options = serde_saphyr::options! {
        // `on` and `yes` are words, as in YAML 1.2.
        strict_booleans: true,
        budget: serde_saphyr::budget! {
            max_depth: MAX_DOCUMENT_DEPTH,
            max_nodes: MAX_DOCUMENT_NODES,
            max_documents: 1,
        },
    };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| {
        let place = error.location();
        let short = error.without_snippet().to_string();
        Box::new(Diagnostic {
            line: place.map_or(0, |at| u32::try_from(at.line()).unwrap_or(0)),
            column: place.map_or(0, |at| u32::try_from(at.column()).unwrap_or(0)),
            ..finding("yaml-invalid", file, short)
        })
    })
}

/// A relative path in normal form, or nothing when it leads outside.
fn clean(path: &str) -> Option<String> {
    let mut parts = Vec::new();
    for component in Path::new(path).components() {
        match component {
            Component::CurDir => {}
            Component::Normal(part) => parts.push(part.to_str()?),
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    let clean = parts.join("/");
    (!clean.is_empty() && !clean.contains('\\')).then_some(clean)
}

/// `data/cast.json` and `zh-CN` give `data/cast.zh-CN.json`.
pub(super) fn variant_path(path: &str, locale: &str) -> String {
    match path.rsplit_once('.') {
        Some((stem, extension)) if !extension.contains('/') => {
            format!("{stem}.{locale}.{extension}")
        }
        _ => format!("{path}.{locale}"),
    }
}

/// Could this be a locale tag? Subtags of 1 to 8 letters or digits.
pub(super) fn is_locale(text: &str) -> bool {
    text.len() <= 35
        && text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.split('-').all(|part| (1..=8).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_alphanumeric()))
}

/// Lays a translation over a document: objects key by key, lists of records by `id`, anything else is replaced.
/// Records that only the translation has are ignored, so that a language cannot change what there is.
pub(super) fn overlay(base: &mut Value, over: &Value) {
    match (base, over) {
        (Value::Object(base), Value::Object(over)) => {
            for (key, value) in over {
                match base.get_mut(key) {
                    Some(known) => overlay(known, value),
                    None => drop(base.insert(key.clone(), value.clone())),
                }
            }
        }
        (Value::Array(base), Value::Array(over)) if over.iter().all(|item| item.get("id").is_some()) => {
            for item in over {
                if let Some(known) = base.iter_mut().find(|known| known.get("id") == item.get("id")) {
                    overlay(known, item);
                }
            }
        }
        (base, over) => *base = over.clone(),
    }
}
