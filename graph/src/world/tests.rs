use std::{fs, path::Path};

use serde_json::json;

use super::*;

fn write(dir: &Path, path: &str, text: &str) {
    let path = dir.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn world(files: &[(&str, &str)]) -> (tempfile::TempDir, Result<World, Vec<Diagnostic>>) {
    let dir = tempfile::tempdir().unwrap();
    for (path, text) in files {
        write(dir.path(), path, text);
    }
    let world = read_world(dir.path());
    (dir, world)
}

fn code(result: &Result<World, Vec<Diagnostic>>) -> (&str, &str, u32) {
    let first = &result.as_ref().unwrap_err()[0];
    (&first.code, &first.file, first.line)
}

const SMALL: &str = "id: small\nname: Small\n";

#[test]
fn a_whole_world_is_read_with_its_languages() {
    let manifest = "schemaVersion: '1.0'\nid: isle\nname: Isle\nversion: 1.2.0\nsummary: An isle.\n\
        defaultLocale: en\nsupportedLocales: [en, zh-CN]\ntags: [calm]\n\
        pluginPolicy:\n  requested: [narrator]\n  recommended: [dice-check, narrator]\n  requires: [narrative-engine@1]\n\
        pluginSettings:\n  dice-check:\n    sides: 12\n\
        characterSchema:\n  types: [npc]\n  attributes: [{id: wit, name: Wit, type: number, category: stats}]\n\
        worldData: data/world.data.yaml\n";
    let (dir, result) = world(&[
        ("world.yaml", manifest),
        ("world.zh-CN.yaml", "name: 小岛\nsummary: 一座岛。\ncharacterSchema: {attributes: [{id: wit, name: 机智}]}\n"),
        ("WORLD.md", "# Isle\n"),
        ("WORLD.zh-CN.md", "# 小岛\n"),
        (
            "data/world.data.yaml",
            "sources:\n  cast: {kind: json, path: data/cast.json, to: characters}\n\
             \x20 dims: {kind: yaml, path: data/dims.yaml, to: 'world:metadata.dimensions'}\n",
        ),
        ("data/cast.json", r#"[{"id":"a","name":"Ada","type":"npc"},{"id":"b","name":"Bo","type":"npc"}]"#),
        ("data/cast.zh-CN.json", r#"[{"id":"b","name":"小波"},{"id":"zz","name":"nobody"}]"#),
        ("data/dims.yaml", "tide: {name: Tide, schema: {type: string}, initialValue: low}\n"),
        ("scenes/a.yaml", "opening: quay\nslots: {sky: [grey]}\nscenes: [{id: quay}]\n"),
        ("scenes/b.yaml", "slots: {sound: [bell]}\nscenes: [{id: hill}]\n"),
        ("scenes/a.zh-CN.yaml", "scenes: [{id: quay, title: 码头}]\n"),
    ]);
    let world = result.unwrap();
    assert_eq!(world.id.as_str(), "isle");
    assert_eq!(world.warnings, vec![]);
    assert_eq!(text_for(&world.name, "zh-Hans"), "小岛");
    assert_eq!(text_for(&world.name, "fr"), "Isle");
    assert_eq!(text_for(&world.lore, "zh-CN"), "# 小岛\n");
    let plugins: Vec<_> = world.default_plugins.iter().map(PluginId::as_str).collect();
    assert_eq!(plugins, ["narrator", "dice-check"]);
    assert_eq!(world.required_contracts, [ContractId::new("narrative-engine@1")]);
    assert_eq!(world.plugin_settings["dice-check"]["sides"], Json::from_value(json!(12)));
    assert_eq!(world.content.characters.len(), 2);
    let chinese = world.content_for("zh-CN");
    assert_eq!(chinese.characters.len(), 2, "a translation adds no character");
    assert_eq!(chinese.characters[1].value()["name"], "小波");
    assert_eq!(chinese.characters[1].value()["type"], "npc");
    assert_eq!(chinese.character_schema.as_ref().unwrap().value()["attributes"][0]["name"], "机智");
    assert_eq!(world.content.dimensions.as_ref().unwrap().value()["tide"]["initialValue"], "low");
    let scenes = world.scenes.clone().unwrap();
    assert_eq!(scenes.value()["default"]["scenes"].as_array().unwrap().len(), 2);
    assert_eq!(scenes.value()["default"]["slots"], json!({"sky": ["grey"], "sound": ["bell"]}));
    assert_eq!(scenes.value()["locales"]["zh-CN"]["scenes"][0]["title"], "码头");

    assert_eq!(read_world(dir.path()).unwrap().digest, world.digest);
    write(dir.path(), "WORLD.md", "# Isle, changed\n");
    assert_ne!(read_world(dir.path()).unwrap().digest, world.digest);
}

#[test]
fn errors_name_file_and_line() {
    let (_dir, result) = world(&[("world.yaml", "id: x\nname: [broken\n")]);
    let (code_, file, line) = code(&result);
    assert_eq!((code_, file), ("yaml-invalid", "world.yaml"));
    assert!(line >= 2, "{line}");

    let (_dir, result) = world(&[("world.yaml", "id: x\nname: X\ntags: 3\n")]);
    assert_eq!(code(&result), ("yaml-invalid", "world.yaml", 3));

    let (_dir, result) = world(&[("world.yaml", "name: X\nid: '../x'\n")]);
    assert_eq!(code(&result), ("world-id-invalid", "world.yaml", 2));

    let (_dir, result) = world(&[("world.yaml", &format!("{SMALL}pluginPolicy:\n  requires:\n    - nonsense\n"))]);
    assert_eq!(code(&result), ("contract-id-invalid", "world.yaml", 5));

    let (_dir, result) = world(&[("world.yaml", SMALL), ("scenes/a.yaml", "scenes:\n  - {id: a\n")]);
    assert_eq!(code(&result).1, "scenes/a.yaml");
}

#[test]
fn an_unknown_field_is_a_warning_with_its_line() {
    let (_dir, result) = world(&[("world.yaml", &format!("{SMALL}heroPicture: x.png\n"))]);
    let warnings = result.unwrap().warnings;
    assert_eq!(warnings.len(), 1);
    assert_eq!((warnings[0].code.as_str(), warnings[0].line), ("unknown-field", 3));
}

#[test]
fn nothing_outside_the_folder_is_read() {
    for path in ["../cast.json", "/etc/hostname", "data/../../x.json"] {
        let (_dir, result) = world(&[("world.yaml", &format!("{SMALL}characters: {path}\n"))]);
        assert_eq!(code(&result).0, "path-outside-world", "{path}");
    }
    let (_dir, result) = world(&[("world.yaml", &format!("{SMALL}characters: cast.json\n"))]);
    assert_eq!(code(&result), ("file-missing", "world.yaml", 3));
}

#[cfg(unix)]
#[test]
fn symbolic_links_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "world.yaml", SMALL);
    std::os::unix::fs::symlink("/etc/hostname", dir.path().join("WORLD.md")).unwrap();
    assert_eq!(code(&read_world(dir.path())).0, "symlink-refused");
}

#[test]
fn hostile_documents_are_refused() {
    let deep = format!("{SMALL}dimensions: {}{}\n", "{a: ".repeat(200), "}".repeat(200));
    assert_eq!(code(&world(&[("world.yaml", &deep)]).1).0, "yaml-invalid");
    let big = format!("{SMALL}summary: {}\n", "x".repeat(2 * 1024 * 1024));
    assert_eq!(code(&world(&[("world.yaml", &big)]).1).0, "file-too-large");
    let bomb = format!("{SMALL}dimensions:\n  a: &a [x, x, x, x, x, x, x, x, x, x]\n")
        + &(1..9).map(|n| {
            let name = (b'a' + n) as char;
            let before = (b'a' + n - 1) as char;
            format!("  {name}: &{name} [*{before}, *{before}, *{before}, *{before}, *{before}, *{before}, *{before}, *{before}]\n")
        }).collect::<String>();
    assert_eq!(code(&world(&[("world.yaml", &bomb)]).1).0, "yaml-invalid");
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("world.yaml"), b"id: x\nname: \xff\n").unwrap();
    assert_eq!(code(&read_world(dir.path())), ("file-not-utf8", "world.yaml", 0));
    assert_eq!(code(&read_world(&dir.path().join("absent"))).0, "world-unreadable");
}

#[test]
fn names_from_data_are_ordinary_keys() {
    let (_dir, result) = world(&[(
        "world.yaml",
        &format!("{SMALL}pluginSettings:\n  constructor:\n    __proto__: 1\ndimensions:\n  __proto__: {{name: P}}\n"),
    )]);
    let world = result.unwrap();
    assert_eq!(world.plugin_settings["constructor"]["__proto__"], Json::from_value(json!(1)));
    assert_eq!(world.content.dimensions.unwrap().value()["__proto__"]["name"], "P");
}

#[test]
fn yes_and_on_are_words() {
    let (_dir, result) = world(&[("world.yaml", SMALL), ("scenes/a.yaml", "words: [on, yes, no]\n")]);
    assert_eq!(result.unwrap().scenes.unwrap().value()["default"]["words"], json!(["on", "yes", "no"]));
}

#[test]
fn worlds_are_found_in_name_order() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "b/world.yaml", SMALL);
    write(dir.path(), "a/world.yaml", SMALL);
    write(dir.path(), "notes/README.md", "");
    let found = find_worlds(dir.path()).unwrap();
    assert_eq!(found, [dir.path().join("a"), dir.path().join("b")]);
    assert_eq!(find_worlds(&dir.path().join("a")).unwrap(), [dir.path().join("a")]);
    assert!(find_worlds(&dir.path().join("absent")).is_err());
}
