//! Ctrl-C before there is an answer: code of a package that never ends must not keep the program, and nothing
//! half-done stays.

use std::{
    fs,
    io::{BufRead, BufReader, Read},
    path::Path,
    process::{Child, Stdio},
};

use serde_json::Value;

use super::support::{covel, interrupt, program};

/// A package whose set-up runtime says so and then loops.
fn looping(folder: &Path) {
    let package = folder.join("plugins/spinner");
    fs::create_dir_all(package.join("runtimes/once")).unwrap();
    let manifest = "---\nid: spinner\nkind: plugin\ndescription: Spins.\n---\n";
    fs::write(package.join("PLUGIN.md"), manifest).unwrap();
    fs::write(
        package.join("runtimes/once/RUNTIME.md"),
        "---\ntype: function\nschedule: { stage: setup }\nfunction: { handler: ./handler.js, timeoutMs: 60000 }\n---\n",
    )
    .unwrap();
    let spin = "console.warn('spinning now'); for (;;) {}";
    let handler = format!("export default async () => {{ {spin} }};");
    fs::write(package.join("runtimes/once/handler.js"), handler).unwrap();
}

/// Starts the program, waits until the code loops, interrupts it; answers exit status and standard output.
fn interrupted(folder: &Path, arguments: &[&str]) -> (i32, String) {
    let temporary = folder.join("tmp");
    fs::create_dir_all(&temporary).unwrap();
    let mut child: Child = program()
        .args(arguments)
        .arg("--plugins")
        .arg(folder.join("plugins"))
        .env("TMPDIR", &temporary)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap());
    let mut text = String::new();
    while !text.contains("spinning now") {
        assert_ne!(lines.read_line(&mut text).unwrap(), 0, "it ended: {text}");
    }
    interrupt(&child);
    // Read to its end, so that a full pipe does not keep the program.
    let drain = std::thread::spawn(move || lines.read_to_string(&mut text));
    let mut out = String::new();
    child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    let status = child.wait().unwrap();
    drain.join().unwrap().unwrap();
    assert_eq!(fs::read_dir(&temporary).unwrap().count(), 0, "no temporary folder stays");
    (status.code().unwrap_or(-1), out)
}

#[test]
fn an_interrupt_in_the_set_up_of_a_session_is_told_and_the_session_can_go_on() {
    let folder = tempfile::tempdir().unwrap();
    looping(folder.path());
    let data = folder.path().join("data").display().to_string();
    let base = ["turn", "--data", &data, "--session", "s", "--json"];
    let (status, out) = interrupted(folder.path(), &base);
    assert_eq!(status, 1, "{out}");
    let document: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(document["committed"], false);
    let setup = &document["setup"];
    assert_eq!(setup["runtimes"][0]["runtimeId"], "spinner/once", "{document}");
    assert_ne!(setup["runtimes"][0]["status"], "success");

    let handler = folder.path().join("plugins/spinner/runtimes/once/handler.js");
    fs::write(handler, "export default async () => ({ outcome: 'success', completion: 'done' });").unwrap();
    let plugins = folder.path().join("plugins").display().to_string();
    let run = covel(&[&base[..], &["--plugins", &plugins]].concat());
    assert_eq!(run.status, 0, "{}{}", run.out, run.err);
    assert_eq!(run.json()["committed"], true);
}
