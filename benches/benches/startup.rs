//! From starting the release program to its first health answer, with the five shipped packages.
//! `cargo build --release && cargo bench -p covel-benches --bench startup`
#![allow(missing_docs, clippy::unwrap_used)]

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    path::PathBuf,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

fn once(program: &PathBuf, data: &std::path::Path) -> Duration {
    let start = Instant::now();
    let mut child = Command::new(program)
        .args(["play", "--port", "0", "--data"])
        .arg(data)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let address = loop {
        line.clear();
        assert!(output.read_line(&mut line).unwrap() > 0, "the program ended before it printed its address");
        if let Some((_, rest)) = line.split_once("http://") {
            break rest.split('/').next().unwrap_or_default().to_owned();
        }
    };
    let mut stream = TcpStream::connect(&address).unwrap();
    write!(stream, "GET /api/health HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let took = start.elapsed();
    let _ = child.kill();
    let _ = child.wait();
    took
}

fn main() {
    // `cargo test` builds and runs benches too; there is nothing to measure then.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let target = std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../target"), PathBuf::from);
    let program = target.join("release/covel");
    if !program.exists() {
        eprintln!("build the program first: cargo build --release");
        std::process::exit(1);
    }
    for (name, warm) in [("first start (empty data folder)", false), ("later start", true)] {
        let folder = tempfile::tempdir().unwrap();
        if warm {
            once(&program, folder.path());
        }
        let mut times: Vec<Duration> = (0..9)
            .map(|_| {
                let fresh = tempfile::tempdir().unwrap();
                once(&program, if warm { folder.path() } else { fresh.path() })
            })
            .collect();
        times.sort();
        println!("startup/{name}: median {:?}, min {:?}, max {:?} of {}", times[4], times[0], times[8], times.len());
    }
}
