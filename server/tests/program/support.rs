//! Running the built program, and a small HTTP client for the server it starts.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use serde_json::Value;

/// What a run left.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) status: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Run {
    /// Standard output as the one document it must be.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}\n{}\n{}", self.out, self.err))
    }
    /// The code of an error document of exit status 2.
    pub(crate) fn code(&self) -> String {
        assert_eq!(self.status, 2, "{}\n{}", self.out, self.err);
        let body = self.json();
        assert!(body["error"]["message"].as_str().is_some_and(|text| !text.is_empty()), "{body}");
        body["error"]["code"].as_str().unwrap().to_owned()
    }
}

pub(crate) fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_covel"));
    command.env_remove("COVEL_LOG").env_remove("COVEL_DATA");
    command
}

pub(crate) fn covel<S: AsRef<std::ffi::OsStr>>(arguments: &[S]) -> Run {
    let output = program().args(arguments).output().unwrap();
    Run {
        status: output.status.code().unwrap_or(-1),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

pub(crate) fn fixture(path: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(path).display().to_string()
}

pub(crate) fn shipped() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../plugins")
}

/// A server started by the program; killed when dropped.
pub(crate) struct Served {
    pub(crate) child: Child,
    pub(crate) address: String,
}

impl Served {
    /// Starts `play` on a free port and waits until it says where it is.
    pub(crate) fn play(data: &Path) -> Self {
        Self::start(&["play", "--port", "0", "--json", "--data", &data.display().to_string()])
    }

    pub(crate) fn start(arguments: &[&str]) -> Self {
        let mut child = program().args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        let mut text = String::new();
        let document: Value = loop {
            let read = lines.read_line(&mut text).unwrap();
            if read == 0 {
                let mut err = String::new();
                child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
                panic!("it ended before it listened: {err}");
            }
            if let Ok(document) = serde_json::from_str(&text) {
                break document;
            }
        };
        let address = document["address"].as_str().unwrap();
        let address = address.strip_prefix("http://").unwrap().trim_end_matches('/').to_owned();
        Self { child, address }
    }

    /// One request; the status and the whole body.
    pub(crate) fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let body = body.map(Value::to_string).unwrap_or_default();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        )
        .unwrap();
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        let (head, rest) = text.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let chunked = head.to_ascii_lowercase().contains("transfer-encoding: chunked");
        (status, if chunked { dechunk(rest) } else { rest.to_owned() })
    }

    pub(crate) fn json(&self, method: &str, path: &str, body: Option<&Value>) -> Value {
        let (status, text) = self.ask(method, path, body);
        assert!((200..300).contains(&status), "{method} {path}: {status} {text}");
        serde_json::from_str(&text).unwrap()
    }

    pub(crate) fn signal(&self, name: &str) {
        let status = Command::new("kill").args([&format!("-{name}"), &self.child.id().to_string()]).status().unwrap();
        assert!(status.success());
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn dechunk(mut text: &str) -> String {
    let mut body = String::new();
    while let Some((size, rest)) = text.split_once("\r\n") {
        let size = usize::from_str_radix(size.trim(), 16).unwrap();
        if size == 0 {
            break;
        }
        body.push_str(&rest[..size]);
        text = rest[size..].strip_prefix("\r\n").unwrap();
    }
    body
}

/// Ctrl-C.
pub(crate) fn interrupt(child: &Child) {
    let status = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(status.success());
}

/// Copies a folder.
pub(crate) fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}
