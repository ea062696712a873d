//! Broken packages: the table of `cases/bad_packages.yaml`, and those that need a real folder or are too big to write
//! down.
#![allow(clippy::unwrap_used)]

use std::{collections::BTreeMap, fs, path::Path, time::Instant};

use covel_graph::{Compiled, Diagnostic, Discovery, compile_all, compile_in_memory, compile_package, find_packages};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    case: String,
    fields: Option<String>,
    whole: Option<String>,
    function: Option<String>,
    agent: Option<String>,
    runtime: Option<String>,
    #[serde(default)]
    files: BTreeMap<String, String>,
    #[serde(default)]
    without: Vec<String>,
    finds: Vec<String>,
}

const HEAD: &str = "---\nid: p\nkind: plugin\ndescription: A package.\n";

fn base() -> BTreeMap<String, String> {
    [
        ("PLUGIN.md", format!("{HEAD}---\n")),
        ("handler.js", "export default () => ({ outcome: 'success' })".to_owned()),
        ("server/index.js", "export default () => {}".to_owned()),
        ("any.json", "{}".to_owned()),
    ]
    .into_iter()
    .map(|(path, text)| (path.to_owned(), text))
    .collect()
}

impl Case {
    fn compile(&self) -> Compiled {
        let mut files = base();
        if let Some(fields) = &self.fields {
            files.insert("PLUGIN.md".into(), format!("{HEAD}{fields}---\n"));
        }
        if let Some(whole) = &self.whole {
            files.insert("PLUGIN.md".into(), whole.clone());
        }
        let runtime = match (&self.function, &self.agent, &self.runtime) {
            (Some(text), ..) => Some(format!("type: function\nfunction: {{ handler: ../../handler.js }}\n{text}")),
            (_, Some(text), _) => Some(format!("type: agent\n{text}")),
            (_, _, text) => text.clone(),
        };
        if let Some(runtime) = runtime {
            files.insert("runtimes/r/RUNTIME.md".into(), format!("---\n{runtime}---\n"));
        }
        files.extend(self.files.clone());
        for path in &self.without {
            files.remove(path);
        }
        let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        compile_in_memory(&files, Discovery::Builtin)
    }
}

fn brief(diagnostic: &Diagnostic) -> String {
    if diagnostic.file == "PLUGIN.md" {
        format!("{} {}", diagnostic.code, diagnostic.line)
    } else {
        format!("{} {}:{}", diagnostic.code, diagnostic.file, diagnostic.line)
    }
}

#[test]
fn every_broken_package_is_told_what_is_wrong_and_where() {
    let cases: Vec<Case> = serde_saphyr::from_str(include_str!("cases/bad_packages.yaml")).unwrap();
    assert!(cases.len() >= 150, "{} cases", cases.len());
    let mut failed = Vec::new();
    for case in &cases {
        let compiled = case.compile();
        let mut found: Vec<String> = compiled.diagnostics.iter().map(brief).collect();
        let mut stated = case.finds.clone();
        found.sort();
        stated.sort();
        let errors = compiled.diagnostics.iter().any(Diagnostic::is_error);
        if found != stated {
            let text: Vec<String> = compiled.diagnostics.iter().map(ToString::to_string).collect();
            failed.push(format!("{}: stated {stated:?}, found {text:#?}", case.case));
        } else if compiled.package.is_some() == errors {
            failed.push(format!("{}: a package exists exactly when there is no error", case.case));
        }
        for one in &compiled.diagnostics {
            let kebab = one.code.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
            assert!(kebab && !one.message.is_empty(), "{one:?}");
        }
    }
    assert!(failed.is_empty(), "{} of {} failed:\n{}", failed.len(), cases.len(), failed.join("\n"));
}

#[test]
fn the_package_all_cases_start_from_is_clean() {
    let case: Case =
        serde_saphyr::from_str("case: none\nfunction: |\n  schedule: { stage: audit }\nfinds: []\n").unwrap();
    let compiled = case.compile();
    assert!(compiled.diagnostics.is_empty() && compiled.package.is_some(), "{:?}", compiled.diagnostics);
}

#[test]
fn help_names_what_was_meant() {
    let help = |fields: &str| {
        let text = format!("{HEAD}{fields}---\n");
        let compiled = compile_in_memory(&[("PLUGIN.md", &text)], Discovery::Builtin);
        let first = compiled.diagnostics.into_iter().find(|one| one.line == 5).unwrap();
        (first.path.unwrap_or_default(), first.help.unwrap_or_default(), first.column)
    };
    assert_eq!(help("requries: []\n"), ("requries".into(), "did you mean `requires`?".into(), 1));
    assert_eq!(help("pluginType: core\n").1, "write `kind: core` or `kind: plugin`");
    assert_eq!(help("tags: [a, role:x]\n").0, "tags[1]");
    assert_eq!(help("version: 2\n"), ("version".into(), "put the value in quotes".into(), 10));
}

fn write(dir: &Path, files: &[(&str, &[u8])]) {
    for (path, bytes) in files {
        let path = dir.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
}

fn in_folder(files: &[(&str, &[u8])], then: impl FnOnce(&Path)) -> Vec<String> {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("p");
    write(&dir, &[("PLUGIN.md", format!("{HEAD}---\n").as_bytes())]);
    write(&dir, files);
    then(&dir);
    compile_package(&dir, Discovery::Builtin).diagnostics.iter().map(brief).collect()
}

#[test]
fn a_folder_of_a_good_package_is_clean() {
    assert!(in_folder(&[("tests/runtime-cases.json", b"not read"), (".git/config", b"\xff")], |_| ()).is_empty());
}

#[test]
fn the_folder_carries_the_id() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("q");
    write(&dir, &[("PLUGIN.md", format!("{HEAD}---\n").as_bytes())]);
    let compiled = compile_package(&dir, Discovery::Builtin);
    assert_eq!(compiled.diagnostics.iter().map(brief).collect::<Vec<_>>(), ["id-folder-mismatch 2"]);
}

#[test]
fn text_that_is_not_utf8_has_a_place() {
    assert_eq!(in_folder(&[("lib/a.js", b"// ok\n// \xff\n")], |_| ()), ["non-utf8-text lib/a.js:2"]);
    assert_eq!(in_folder(&[("PLUGIN.md", b"---\nid: \xff\n---\n")], |_| ()), ["non-utf8-text 2"]);
    assert!(in_folder(&[("media/a.png", b"\xff\xfe")], |_| ()).is_empty());
}

#[test]
fn a_manifest_of_ten_megabytes_is_refused_unread() {
    let big = vec![b'#'; 10 * 1024 * 1024];
    assert_eq!(in_folder(&[("PLUGIN.md", &big)], |_| ()), ["file-too-large 0"]);
    let text = String::from_utf8(big).unwrap();
    let compiled = compile_in_memory(&[("PLUGIN.md", &text)], Discovery::Builtin);
    assert_eq!(compiled.diagnostics.iter().map(brief).collect::<Vec<_>>(), ["file-too-large 0"]);
}

#[cfg(unix)]
#[test]
fn links_stay_inside() {
    use std::os::unix::fs::symlink;
    let found = in_folder(&[("lib/a.js", b"1")], |dir| {
        symlink("/etc/hostname", dir.join("hosts.txt")).unwrap();
        symlink("lib/a.js", dir.join("inside.js")).unwrap();
        symlink("nowhere", dir.join("lost.js")).unwrap();
        symlink("..", dir.join("lib/up")).unwrap();
    });
    assert_eq!(found, ["symlink-outside hosts.txt:0", "symlink-loop lib/up:0", "symlink-broken lost.js:0"]);

    // Through a folder that is not walked.
    let found = in_folder(&[], |dir| {
        fs::create_dir(dir.join("tests")).unwrap();
        symlink("/etc", dir.join("tests/etc")).unwrap();
        let text = format!(
            "{HEAD}contracts: {{ a@1: {{ schema: tests/etc/a.json }}, b@1: {{ schema: tests/etc/../etc/b.json }} }}\n---\n"
        );
        fs::write(dir.join("PLUGIN.md"), text).unwrap();
    });
    assert_eq!(found, ["missing-file 5", "missing-file 5"]);
    let found = in_folder(&[("elsewhere", b"")], |dir| {
        fs::write(dir.parent().unwrap().join("secret.json"), "{}").unwrap();
        fs::create_dir(dir.join("tests")).unwrap();
        symlink(dir.parent().unwrap().join("secret.json"), dir.join("tests/a.json")).unwrap();
        let text = format!("{HEAD}contracts: {{ a@1: {{ schema: tests/a.json }} }}\n---\n");
        fs::write(dir.join("PLUGIN.md"), text).unwrap();
    });
    assert_eq!(found, ["symlink-outside tests/a.json:0"]);
}

#[cfg(target_os = "linux")]
#[test]
fn file_names_are_utf8() {
    use std::os::unix::ffi::OsStrExt;
    let found = in_folder(&[], |dir| {
        fs::write(dir.join(std::ffi::OsStr::from_bytes(b"a\xff.txt")), "x").unwrap();
    });
    assert_eq!(found.len(), 1);
    assert!(found[0].starts_with("non-utf8-name"), "{found:?}");
}

#[test]
fn a_named_file_in_a_skipped_folder_is_read() {
    let manifest = format!("{HEAD}contracts: {{ a@1: {{ schema: tests/a.json }} }}\n---\n");
    let files: [(&str, &[u8]); 2] = [("PLUGIN.md", manifest.as_bytes()), ("tests/a.json", b"{}")];
    assert!(in_folder(&files, |_| ()).is_empty());
}

#[test]
fn too_many_files_are_refused() {
    let found = in_folder(&[], |dir| {
        for file in 0..2_001 {
            fs::write(dir.join(format!("f{file}.txt")), "").unwrap();
        }
    });
    assert_eq!(found, ["too-many-files 0"]);
}

/// Documents made to hurt: each is refused with a clear code, in a moment.
#[test]
fn bombs_are_refused_quickly() {
    let mut aliases = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..12 {
        aliases += &format!("a{level}: &a{level} [{}]\n", vec![format!("*a{}", level - 1); 10].join(", "));
    }
    let list = |count: usize| format!("requires: [{}]\n", vec!["a@1"; count].join(", "));
    let wide: String = (0..60_000).map(|key| format!("k{key}: 1\n")).collect();
    let rows = [
        ("aliases", aliases, "document-too-large"),
        ("flow nesting", format!("tags: {}{}\n", "[".repeat(5_000), "]".repeat(5_000)), "document-too-deep"),
        ("block nesting", format!("tags:\n  {}x\n", "- ".repeat(5_000)), "document-too-deep"),
        ("a long list", list(100_000), "list-too-long"),
        ("many unknown keys", wide, "too-many-diagnostics"),
        ("a long word", format!("kind: {}\n", "x".repeat(900_000)), "yaml-duplicate-key"),
        ("a long unknown key", format!("{}: 1\n", "x".repeat(900)), "unknown-field"),
    ];
    for (name, fields, code) in rows {
        let text = format!("{HEAD}{fields}---\n");
        let started = Instant::now();
        let compiled = compile_in_memory(&[("PLUGIN.md", &text)], Discovery::Builtin);
        let took = started.elapsed();
        assert!(compiled.diagnostics.iter().any(|one| one.code == code), "{name}: {:?}", compiled.diagnostics.first());
        assert!(compiled.package.is_none() && compiled.diagnostics.len() <= 201, "{name}");
        let longest = compiled.diagnostics.iter().map(|one| one.message.len()).max().unwrap();
        assert!(longest < 1_000, "{name}: a message of {longest} bytes");
        // Generous for a debug build on a busy machine; unbounded work would take minutes.
        assert!(took.as_secs() < 20, "{name}: {took:?}");
    }
}

#[test]
fn a_deep_schema_is_refused() {
    let text = format!("{HEAD}contracts: {{ a@1: {{ schema: deep.json }}, b@1: {{ schema: deeper.json }} }}\n---\n");
    let deep = |levels: usize| format!("{}{{}}{}", "{\"not\":".repeat(levels), "}".repeat(levels));
    let files = [("PLUGIN.md", text.as_str()), ("deep.json", &deep(100)), ("deeper.json", &deep(100_000))];
    let compiled = compile_in_memory(&files, Discovery::Builtin);
    let codes: Vec<&str> = compiled.diagnostics.iter().map(|one| one.code.as_str()).collect();
    assert_eq!(codes, ["schema-invalid", "json-syntax"]);
}

#[test]
fn packages_are_found_and_duplicates_refused() {
    let temp = tempfile::tempdir().unwrap();
    let manifest = format!("{HEAD}---\n");
    write(
        temp.path(),
        &[
            ("one/p/PLUGIN.md", manifest.as_bytes()),
            ("one/no-manifest/package.json", b"{}"),
            ("one/notes/readme.txt", b"x"),
            ("one/.hidden/PLUGIN.md", b"x"),
            ("two/p/PLUGIN.md", manifest.as_bytes()),
        ],
    );
    let mut dirs = find_packages(&temp.path().join("one")).unwrap();
    let names: Vec<_> = dirs.iter().map(|dir| dir.file_name().unwrap().to_str().unwrap().to_owned()).collect();
    assert_eq!(names, ["no-manifest", "p"]);
    dirs.extend(find_packages(&temp.path().join("two/p")).unwrap());
    let all = compile_all(&dirs, Discovery::Community);
    let brief: Vec<Vec<String>> = all.iter().map(|one| one.diagnostics.iter().map(brief).collect()).collect();
    assert_eq!(brief, [vec!["plugin-md-missing 0".to_owned()], vec![], vec!["duplicate-plugin 0".to_owned()]]);
    assert!(all[1].package.is_some() && all[2].package.is_none());
    assert!(find_packages(&temp.path().join("absent")).is_err());
    assert_eq!(
        compile_package(&temp.path().join("absent"), Discovery::Builtin).diagnostics[0].code,
        "folder-unreadable"
    );
}
