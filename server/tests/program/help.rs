//! Help, man pages, completions: all from one definition, so one change shows in all of them.

use super::support::covel;

#[test]
fn help_of_every_command() {
    let mut text = covel(&["--help"]).out;
    for command in [
        "play",
        "serve",
        "turn",
        "plan",
        "snapshot",
        "new",
        "validate",
        "test-runtime",
        "data",
        "trace",
        "replay",
        "jobs",
        "bench",
        "man",
        "completions",
        "version",
    ] {
        let run = covel(&[command, "--help"]);
        assert_eq!(run.status, 0);
        text.push_str(&format!("\n==== {command}\n{}", run.out));
    }
    insta::assert_snapshot!(text);
}

#[test]
fn man_pages() {
    for page in [&["man"][..], &["man", "turn"]] {
        let run = covel(page);
        assert_eq!(run.status, 0, "{}", run.err);
        assert!(run.out.starts_with(".ie"), "{}", run.out);
        assert!(run.out.contains(".TH covel"), "{}", run.out);
    }
    let turn = covel(&["man", "turn"]).out;
    for flag in
        ["plugins", "community", "approve", "world", "data", "session", "enable", "message", "seed", "script", "json"]
    {
        assert!(turn.contains(&format!("\\-\\-{flag}")), "{flag}");
    }
    assert_eq!(covel(&["man", "nothing"]).status, 2);
}

#[test]
fn completions_of_every_shell() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let run = covel(&["completions", shell]);
        assert_eq!(run.status, 0);
        assert!(run.out.contains("test-runtime") && run.out.contains("plugins-dir"), "{shell}");
    }
    assert_eq!(covel(&["completions", "abacus"]).status, 2);
}

#[test]
fn version() {
    assert_eq!(covel(&["version"]).out, format!("covel {}\n", env!("CARGO_PKG_VERSION")));
    assert_eq!(covel(&["version", "--json"]).json()["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(covel(&["--version"]).out, format!("covel {}\n", env!("CARGO_PKG_VERSION")));
}
