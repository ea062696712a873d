//! `covel new`. That what it makes type-checks is shown by the workspace's test `types`.

use std::fs;

use serde_json::json;

use super::support::covel;

#[test]
fn a_package_is_there_whole_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("deep/er").display().to_string();
    let run = covel(&["new", "tide-clock", "--template", "service", "--dir", &dir, "--json"]);
    assert_eq!(run.status, 0, "{}", run.err);
    let made = run.json();
    assert_eq!((&made["id"], &made["template"]), (&json!("tide-clock"), &json!("service")));
    let package = folder.path().join("deep/er/tide-clock");
    for file in made["files"].as_array().unwrap() {
        let text = fs::read_to_string(package.join(file.as_str().unwrap())).unwrap();
        assert!(!text.contains("__"), "{file}: {text}");
    }
    let manifest = fs::read_to_string(package.join("PLUGIN.md")).unwrap();
    assert!(manifest.contains("displayName: Tide clock\n") && manifest.contains("tide-clock.pick@1"), "{manifest}");
    let sdk = fs::read_to_string(package.join("node_modules/@covel/plugin-handlers-utils/package.json")).unwrap();
    assert!(sdk.contains("\"./prompts\""), "{sdk}");

    // Nothing of what is there is touched, nor anything left beside it.
    fs::write(package.join("PLUGIN.md"), "mine").unwrap();
    assert_eq!(covel(&["new", "tide-clock", "--dir", &dir, "--json"]).code(), "already-exists");
    assert_eq!(fs::read_to_string(package.join("PLUGIN.md")).unwrap(), "mine");
    fs::write(folder.path().join("deep/er/file"), "x").unwrap();
    assert_eq!(covel(&["new", "file", "--dir", &dir, "--json"]).code(), "already-exists");
    let mut beside: Vec<_> = fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    beside.sort();
    assert_eq!(beside, ["file", "tide-clock"]);
}

#[test]
fn names_no_package_can_have_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().display().to_string();
    let (long, longest) = ("a".repeat(101), "a".repeat(100));
    for name in ["", "Tide", "1tide", "tide_clock", "../tide", "tide/clock", ".", "tide clock", "潮", &long] {
        let run = covel(&["new", name, "--dir", &dir, "--json"]);
        assert_eq!(run.code(), "bad-name", "{name:?}");
        assert!(
            run.json()["error"]["message"].as_str().unwrap().contains("start with a lowercase letter"),
            "{}",
            run.out
        );
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    assert_eq!(covel(&["new", &longest, "--dir", &dir]).status, 0);
    assert_eq!(covel(&["validate", &folder.path().join(&longest).display().to_string()]).status, 0);
}

#[test]
fn what_cannot_be_done_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "x").unwrap();
    let file = file.display().to_string();
    assert_eq!(covel(&["new", "tide", "--dir", &file, "--json"]).code(), "unwritable-output");
    assert_eq!(covel(&["new", "--types", &folder.path().display().to_string(), "--json"]).code(), "no-packages");
    assert_eq!(covel(&["new", "--json"]).code(), "usage");
    assert_eq!(covel(&["new", "tide", "--template", "world", "--json"]).code(), "usage");
    assert_eq!(covel(&["new", "tide", "--types", &file, "--json"]).code(), "usage");
}
