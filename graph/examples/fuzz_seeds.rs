//! Writes the first inputs of every target into `fuzz/corpus/`: the shipped packages, every broken package of the table,
//! and a few bytes for the targets that read bytes. `cargo run -p covel-graph --example fuzz_seeds`.

use std::{collections::BTreeMap, fs, io, path::Path};

use serde::Deserialize;

#[allow(dead_code)]
#[path = "../fuzz/src/bundle.rs"]
mod bundle;

/// As the table's own test reads it.
#[derive(Deserialize)]
struct Case {
    fields: Option<String>,
    whole: Option<String>,
    function: Option<String>,
    agent: Option<String>,
    runtime: Option<String>,
    #[serde(default)]
    files: BTreeMap<String, String>,
    #[serde(default)]
    without: Vec<String>,
}

impl Case {
    fn files(self) -> BTreeMap<String, String> {
        const HEAD: &str = "---\nid: p\nkind: plugin\ndescription: A package.\n";
        let mut files = BTreeMap::from([
            ("PLUGIN.md".to_owned(), format!("{HEAD}{}---\n", self.fields.unwrap_or_default())),
            ("handler.js".to_owned(), String::new()),
            ("server/index.js".to_owned(), String::new()),
            ("any.json".to_owned(), "{}".to_owned()),
        ]);
        if let Some(whole) = self.whole {
            files.insert("PLUGIN.md".into(), whole);
        }
        let function = |text| format!("type: function\nfunction: {{ handler: ../../handler.js }}\n{text}");
        let runtime =
            self.function.map(function).or(self.agent.map(|text| format!("type: agent\n{text}"))).or(self.runtime);
        if let Some(runtime) = runtime {
            files.insert("runtimes/r/RUNTIME.md".into(), format!("---\n{runtime}---\n"));
        }
        files.extend(self.files);
        for path in &self.without {
            files.remove(path);
        }
        files
    }
}

/// The text files of a package folder, by relative path.
fn folder(root: &Path, dir: &Path, files: &mut BTreeMap<String, String>) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() {
            if !path.ends_with("tests") {
                folder(root, &path, files)?;
            }
        } else if let (Ok(relative), Ok(text)) = (path.strip_prefix(root), fs::read_to_string(&path)) {
            files.insert(relative.to_string_lossy().into_owned(), text);
        }
    }
    Ok(())
}

fn write(target: &str, name: &str, bytes: &[u8]) -> io::Result<()> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target);
    fs::create_dir_all(&dir)?;
    fs::write(dir.join(name), bytes)
}

fn seed(name: &str, files: &BTreeMap<String, String>) -> io::Result<()> {
    let text = bundle::format(files.iter().map(|(path, text)| (path.as_str(), text.as_str())));
    write("manifest", name, text.as_bytes())?;
    for (path, text) in files.iter().filter(|(path, _)| path.ends_with(".md") || path.starts_with("locales/")) {
        write("front_matter", &format!("{name}-{}", path.replace('/', "-")), text.as_bytes())?;
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let cases: Vec<Case> = serde_saphyr::from_str(include_str!("../tests/cases/bad_packages.yaml"))?;
    for (place, case) in cases.into_iter().enumerate() {
        seed(&format!("bad-{place}"), &case.files())?;
    }
    for entry in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../plugins"))? {
        let dir = entry?.path();
        if dir.join("PLUGIN.md").exists() {
            let mut files = BTreeMap::new();
            folder(&dir, &dir, &mut files)?;
            files.remove("README.md");
            seed(&dir.file_name().unwrap_or_default().to_string_lossy(), &files)?;
        }
    }
    // A repeatable stream of bytes: the activation target reads any bytes as a case.
    let mut state = 1u64;
    for place in 0..64 {
        let bytes: Vec<u8> = (0..64 * (1 + place % 12))
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (state >> 56) as u8
            })
            .collect();
        write("activation", &format!("stream-{place}"), &bytes)?;
        write("archive", &format!("stream-{place}"), &[&[place as u8], &bytes[..16]].concat())?;
    }
    Ok(())
}
