//! From folders on a command line to packages, worlds and scene books.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use covel_exec::PackageShelf;
use covel_gateway::offline::SceneBook;
use covel_graph::{
    CacheUse, Diagnostic, PackageCache, PluginId, Remembered, Severity, Shelf,
    package::{Compiled, Discovery, Package, find_packages, refuse_duplicates},
    world::{World, find_worlds, read_world},
};

use crate::{error::ServerError, findings};

/// Folders to load from.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// Packages, or folders of packages, trusted.
    pub plugins: Vec<PathBuf>,
    /// The same, from the community.
    pub community: Vec<PathBuf>,
    /// Worlds, or folders of worlds.
    pub worlds: Vec<PathBuf>,
}

/// What was found.
#[derive(Debug, Default)]
pub struct Loaded {
    /// Every folder's result; trusted packages first.
    pub compiled: Vec<Compiled>,
    /// How many of them are trusted.
    pub trusted: usize,
    /// Worlds.
    pub worlds: Vec<Arc<World>>,
    /// How many packages had to be compiled, and how many were taken as an earlier run had compiled them.
    pub used: CacheUse,
    /// Records of those compiled now.
    pub remember: Vec<Remembered>,
    /// Findings in packages and worlds; file names start at the folder that was named.
    pub diagnostics: Vec<Diagnostic>,
}

impl Loaded {
    /// Packages without errors.
    pub fn packages(&self) -> Vec<Arc<Package>> {
        self.compiled.iter().filter_map(|compiled| compiled.package.clone()).collect()
    }

    /// A finding of linking with the folder of its package before its file name.
    pub(crate) fn located(&self, found: &Diagnostic) -> Diagnostic {
        let package = self.compiled.iter().find(|compiled| {
            compiled.package.is_some()
                && compiled.plugin_id.as_ref().map(PluginId::as_str) == found.plugin_id.as_deref()
        });
        package.map_or_else(|| found.clone(), |compiled| located(found, &compiled.dir))
    }

    /// Is there an error?
    pub fn has_errors(&self) -> bool {
        self.diagnostics.iter().any(Diagnostic::is_error)
    }

    /// Itself, when there is no error.
    ///
    /// # Errors
    /// [`ServerError::Packages`] with every finding.
    pub fn strict(self) -> Result<Self, ServerError> {
        if self.has_errors() { Err(ServerError::Packages(self.diagnostics)) } else { Ok(self) }
    }

    /// Scene material of the worlds, for the offline storyteller. A world whose material is wrong has none, and a
    /// warning says why.
    pub fn books(&mut self) -> Vec<Arc<SceneBook>> {
        self.checked_books(Severity::Warning)
    }

    /// Checks the scene material of the worlds: a mistake in it is an error.
    pub fn check_books(&mut self) {
        self.checked_books(Severity::Error);
    }

    fn checked_books(&mut self, severity: Severity) -> Vec<Arc<SceneBook>> {
        let mut books = Vec::new();
        for world in &self.worlds {
            let Some(scenes) = &world.scenes else {
                continue;
            };
            match SceneBook::from_json(world.id.as_str(), scenes.value()) {
                Ok(book) => books.push(Arc::new(book)),
                Err(error) => self.diagnostics.push(findings::scenes(world, &error, severity)),
            }
        }
        books
    }
}

/// Reads all sources and compiles every package. Runs no code.
///
/// # Errors
/// When a folder cannot be listed or holds nothing of its kind. Errors inside packages are findings, not errors here.
pub fn load(sources: &Sources) -> Result<Loaded, ServerError> {
    load_with(sources, None)
}

/// As [`load`], compiling only what the data folder does not keep from an earlier run. No engine may have it open.
///
/// # Errors
/// As [`load`]. A data folder that is not there or cannot be read keeps nothing.
pub fn load_kept(sources: &Sources, data_dir: &Path) -> Result<Loaded, ServerError> {
    let shelf = PackageShelf::open(data_dir);
    let loaded = load_with(sources, shelf.as_ref().map(|shelf| shelf as &dyn Shelf))?;
    tracing::info!("{} packages as compiled before, {} compiled", loaded.used.reopened, loaded.used.compiled);
    Ok(loaded)
}

fn load_with(sources: &Sources, shelf: Option<&dyn Shelf>) -> Result<Loaded, ServerError> {
    let mut loaded = Loaded::default();
    for (dirs, discovery) in [(&sources.plugins, Discovery::Builtin), (&sources.community, Discovery::Community)] {
        let mut folders = Vec::new();
        for dir in dirs {
            folders.extend(package_folders(dir)?);
        }
        // A package named twice, by itself and through its parent, is one package.
        folders.sort();
        folders.dedup();
        let published = PackageCache::default().publish(&folders, discovery, shelf);
        loaded.compiled.extend(published.compiled);
        loaded.used += published.used;
        loaded.remember.extend(published.remember);
        if discovery == Discovery::Builtin {
            loaded.trusted = loaded.compiled.len();
        }
    }
    // Once more over both kinds: a community package may not take the place of a trusted one.
    let counted: Vec<usize> = loaded.compiled.iter().map(|compiled| compiled.diagnostics.len()).collect();
    refuse_duplicates_once(&mut loaded.compiled, &counted);
    for compiled in &loaded.compiled {
        loaded.diagnostics.extend(compiled.diagnostics.iter().map(|found| located(found, &compiled.dir)));
    }
    for dir in &sources.worlds {
        for folder in world_folders(dir)? {
            match read_world(&folder) {
                Ok(world) => {
                    let packages = loaded.compiled.iter().filter_map(|compiled| compiled.package.as_deref());
                    let settings = findings::settings(&world, packages);
                    loaded.diagnostics.extend(settings);
                    loaded.diagnostics.extend(world.warnings.iter().map(|found| located(found, &folder)));
                    add_world(&mut loaded, world);
                }
                Err(found) => loaded.diagnostics.extend(found.iter().map(|found| located(found, &folder))),
            }
        }
    }
    Ok(loaded)
}

/// Publishing has compared packages of one kind already; what it found is not found again.
fn refuse_duplicates_once(all: &mut [Compiled], counted: &[usize]) {
    let refused: Vec<bool> = all.iter().map(|compiled| compiled.package.is_none()).collect();
    refuse_duplicates(all);
    for ((compiled, refused), count) in all.iter_mut().zip(refused).zip(counted) {
        if refused {
            compiled.diagnostics.truncate(*count);
        }
    }
}

fn add_world(loaded: &mut Loaded, world: World) {
    match loaded.worlds.iter().find(|earlier| earlier.id == world.id) {
        Some(earlier) if earlier.root == world.root => {}
        Some(earlier) => loaded.diagnostics.push(Diagnostic {
            severity: Severity::Error,
            code: "duplicate-world".to_owned(),
            message: format!("the world id `{}` is already taken by {}", world.id, earlier.root.display()),
            help: Some("give one of them another id".to_owned()),
            plugin_id: None,
            file: world.root.join("world.yaml").display().to_string(),
            line: 0,
            column: 0,
            path: Some("id".to_owned()),
        }),
        None => loaded.worlds.push(Arc::new(world)),
    }
}

/// Package folders below a folder.
pub(crate) fn package_folders(dir: &Path) -> Result<Vec<PathBuf>, ServerError> {
    let found = find_packages(dir).map_err(|error| unreadable(dir, &error))?;
    if found.is_empty() { Err(ServerError::NoPackages(dir.to_owned())) } else { Ok(found) }
}

fn world_folders(dir: &Path) -> Result<Vec<PathBuf>, ServerError> {
    let found = find_worlds(dir).map_err(|error| unreadable(dir, &error))?;
    if found.is_empty() {
        let message = "it holds no world; a world is a folder with a world.yaml".to_owned();
        return Err(ServerError::Unreadable { path: dir.to_owned(), message });
    }
    Ok(found)
}

pub(crate) fn unreadable(path: &Path, error: &std::io::Error) -> ServerError {
    ServerError::Unreadable { path: path.to_owned(), message: error.to_string() }
}

/// The finding with the folder before its file name, so that an editor can open it.
fn located(found: &Diagnostic, dir: &Path) -> Diagnostic {
    let mut found = found.clone();
    let file = if found.file.is_empty() { dir.to_owned() } else { dir.join(&found.file) };
    found.file = file.display().to_string();
    found
}

/// Reads a file of bounded size.
///
/// # Errors
/// When it cannot be read, is too large, or is not UTF-8.
pub(crate) fn read_text(path: &Path) -> Result<String, ServerError> {
    use std::io::Read;
    let limit = crate::limits::MAX_FILE_BYTES;
    let file = std::fs::File::open(path).map_err(|error| unreadable(path, &error))?;
    let mut bytes = Vec::new();
    file.take(limit + 1).read_to_end(&mut bytes).map_err(|error| unreadable(path, &error))?;
    let refuse = |message: String| ServerError::Unreadable { path: path.to_owned(), message };
    if bytes.len() as u64 > limit {
        return Err(refuse(format!("it is larger than {limit} bytes")));
    }
    String::from_utf8(bytes)
        .map_err(|error| refuse(format!("it is not UTF-8 at byte {}", error.utf8_error().valid_up_to())))
}
