//! The page in a real browser: Chromium plays one story against `covel play` with the offline storyteller.
//!
//! Needs Node and Chromium. Without Chromium this test fails and says what to do; `COVEL_SKIP_BROWSER=1` leaves it out.

#![allow(clippy::unwrap_used)]

use std::{
    fs,
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
};

#[path = "browser/support.rs"]
mod support;

use support::{chromium, installed, left_out};

struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_story_is_played_in_chromium() {
    if left_out() {
        return;
    }
    drive("drive.mjs", "page.png", &[]);
}

/// A package's own HTML: what it is told, what it may ask for, and that it gets at nothing else, through two frames of
/// their own origin.
///
/// Covers: UIP-3, UIP-5, WEB-1, WEB-2, WEB-3, WEB-4, WEB-5, WEB-6, WEB-9
#[test]
fn web_views_are_fenced_in_chromium() {
    if left_out() {
        return;
    }
    let packages = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/browser/packages");
    drive("webview.mjs", "webview.png", &["--plugins", packages]);
}

/// Runs a script against a server of its own.
fn drive(script: &str, picture: &str, server: &[&str]) {
    let (chromium, work) = (chromium(), installed());
    let data = tempfile::tempdir().unwrap();
    let mut server = Command::new(env!("CARGO_BIN_EXE_covel"))
        .args(["play", "--port", "0", "--json", "--data"])
        .arg(data.path())
        .args(server)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let out = server.stdout.take().unwrap();
    let _server = Server(server);
    let address = address(out);
    let picture = work.join(picture);
    let run = Command::new("node")
        .current_dir(&work)
        .arg(script)
        .args([address.as_str(), chromium.to_str().unwrap()])
        .arg(&picture)
        .output()
        .unwrap();
    assert!(run.status.success(), "{}{}", String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    assert!(fs::metadata(&picture).unwrap().len() > 10_000, "a picture of the page is at {}", picture.display());
}

/// The address the server prints when it listens.
fn address(out: impl std::io::Read) -> String {
    let mut lines = BufReader::new(out);
    let mut text = String::new();
    loop {
        assert_ne!(lines.read_line(&mut text).unwrap(), 0, "the server ended before it listened: {text}");
        if let Ok(document) = serde_json::from_str::<serde_json::Value>(&text) {
            return document["address"].as_str().unwrap().to_owned();
        }
    }
}
