//! What survives when the process or the disk gives out. Each test runs itself once more, in another process, as
//! the victim.
#![allow(clippy::unwrap_used)]

mod common;

use std::{
    collections::BTreeSet,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, Command, Stdio},
    thread,
};

use common::{at, plugin, session, tiny};
use covel_graph::{Json, TurnId};
use covel_store::{Store, StoreError, StoreOptions, TransactError, Tx};

const FOLDER: &str = "COVEL_STORE_TEST_FOLDER";
const FIRST: &str = "COVEL_STORE_TEST_FIRST";
const WRITERS: u64 = 4;

type Done = Result<(), StoreError>;

/// One numbered transaction: the same number in four tables.
fn write(tx: &mut Tx<'_>, number: u64, bytes: usize) -> Done {
    let (s, turn) = (session("s"), TurnId::from(number.to_string()));
    let value = Json::trusted(format!("\"{}\"", "x".repeat(bytes)));
    tx.put_data(&s, &plugin("p"), "n", &number.to_string(), &value, &at(1))?;
    tx.put_turn(&s, &turn, &Json::trusted(number.to_string()))?;
    tx.put_item(&s, "kind", &number.to_string(), &Json::null())?;
    tx.append_message(&s, &Json::trusted(number.to_string())).map(drop)
}

/// The numbers that are there; fails when one is there in part.
fn numbers(store: &Store) -> BTreeSet<u64> {
    store
        .read(|r| -> Result<_, StoreError> {
            let s = session("s");
            let data = r.list_data(&s, &plugin("p"), "n")?;
            let found: BTreeSet<u64> = data.iter().map(|record| record.key.parse().unwrap()).collect();
            assert_eq!(r.count_data(&s, &plugin("p"), "n")?, found.len() as u64);
            let turns = r.list_turns(&s, .., 10_000)?;
            assert_eq!(turns.iter().map(|row| row.id.as_str().parse().unwrap()).collect::<BTreeSet<u64>>(), found);
            let messages = r.list_messages(&s, .., 10_000)?;
            assert_eq!(messages.len(), found.len());
            assert_eq!(
                messages.iter().map(|row| row.message.value().as_u64().unwrap()).collect::<BTreeSet<_>>(),
                found
            );
            assert_eq!(r.list_items(&s, "kind")?.len(), found.len());
            Ok(found)
        })
        .unwrap()
}

/// Runs one test of this binary in another process, with its output piped.
fn victim(test: &str, folder: &Path, first: u64) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([test, "--exact", "--nocapture"]);
    command.env(FOLDER, folder).env(FIRST, first.to_string());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit());
    command
}

/// The folder to work in, when this process is the victim.
fn victims_folder() -> Option<String> {
    std::env::var(FOLDER).ok()
}

fn say(line: &str) {
    // One write call a line, so that a kill never cuts one that the parent counts.
    let _ = std::io::stdout().write_all(format!("\n{line}\n").as_bytes());
}

/// Commits numbers from several threads and says so after each, until killed.
fn commit_until_killed(folder: &str) {
    let first: u64 = std::env::var(FIRST).unwrap().parse().unwrap();
    // A tiny map, so that kills also hit while it grows.
    let store = Store::open(folder, StoreOptions { durability: Default::default(), ..tiny() }).unwrap();
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            let store = &store;
            scope.spawn(move || {
                for number in (first + writer..).step_by(WRITERS as usize) {
                    store.transact_blocking(move |tx| write(tx, number, 2000)).unwrap();
                    say(&format!("ack {number}"));
                }
            });
        }
    });
}

fn acknowledged(child: &mut Child) -> impl Iterator<Item = u64> + use<> {
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    lines.map_while(Result::ok).filter_map(|line| line.strip_prefix("ack ")?.parse().ok())
}

/// Invariant 1: acknowledged means durable and whole; the rest is there whole or not at all.
#[test]
fn a_killed_process_loses_nothing_it_acknowledged() {
    if let Some(folder) = victims_folder() {
        return commit_until_killed(&folder);
    }
    let dir = tempfile::tempdir().unwrap();
    let mut known = BTreeSet::new();
    let mut unanswered = 0;
    for round in 0..20_u64 {
        let first = round * 10_000;
        let mut child = victim("a_killed_process_loses_nothing_it_acknowledged", dir.path(), first).spawn().unwrap();
        let mut acks = acknowledged(&mut child);
        // From before the first commit to well into the run; where exactly the kill falls is up to the system.
        let until = (round * 7) % 40;
        known.extend(acks.by_ref().take(until as usize));
        child.kill().unwrap();
        child.wait().unwrap();
        // Acknowledgements that were on their way count as well.
        known.extend(acks);

        let store = Store::open(dir.path(), StoreOptions::default()).unwrap();
        let found = numbers(&store);
        let lost: Vec<_> = known.difference(&found).collect();
        assert!(lost.is_empty(), "round {round}: lost {lost:?}");
        let more: Vec<_> = found.difference(&known).copied().collect();
        assert!(more.len() <= WRITERS as usize, "round {round}: more unanswered commits than writers: {more:?}");
        unanswered += more.len();
        known.extend(more);
    }
    assert!(known.len() > 100, "the victims got somewhere: {}", known.len());
    eprintln!("{} commits kept, {unanswered} of them unanswered when killed", known.len());
}

fn open_and_say(folder: &str) {
    match Store::open(folder, StoreOptions::no_sync()) {
        Ok(_) => say("code opened"),
        Err(error) => say(&format!("code {}", error.code())),
    }
}

#[test]
fn a_second_process_is_told_the_folder_is_locked() {
    if let Some(folder) = victims_folder() {
        return open_and_say(&folder);
    }
    let dir = tempfile::tempdir().unwrap();
    let code = || {
        let output = victim("a_second_process_is_told_the_folder_is_locked", dir.path(), 0).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().find_map(|line| line.strip_prefix("code ")).unwrap().to_owned()
    };
    let store = Store::open(dir.path(), StoreOptions::no_sync()).unwrap();
    assert_eq!(code(), "store-locked");
    store.transact_blocking(|tx| write(tx, 1, 10)).unwrap();
    drop(store);
    assert_eq!(code(), "opened");
}

/// Runs under a file size limit, which stops writes like a full disk does.
fn fill_the_disk(folder: &str) {
    let store = Store::open(folder, StoreOptions::default()).unwrap();
    let mut number = 0;
    let error = loop {
        match store.transact_blocking(move |tx| write(tx, number, 100_000)) {
            Ok(()) => {
                say(&format!("ack {number}"));
                number += 1;
            }
            Err(TransactError::Store(error)) => break error,
            Err(other) => panic!("{other}"),
        }
        assert!(number < 1000, "no limit in force");
    };
    assert_eq!(error.code(), "store-disk-full", "{error}");
    assert_eq!(numbers(&store), (0..number).collect());
    // Every waiting caller is told, and the store does not fall over.
    thread::scope(|scope| {
        for writer in 0..8 {
            let store = &store;
            scope.spawn(move || {
                let outcome = store.transact_blocking(move |tx| write(tx, 1000 + writer, 200_000));
                let Err(TransactError::Store(error)) = outcome else { panic!("{outcome:?}") };
                assert_eq!(error.code(), "store-disk-full", "{error}");
            });
        }
    });
    assert_eq!(numbers(&store), (0..number).collect());
    say("code done");
}

#[cfg(unix)]
#[test]
fn a_full_disk_fails_commits_whole_and_reads_go_on() {
    if let Some(folder) = victims_folder() {
        return fill_the_disk(&folder);
    }
    let dir = tempfile::tempdir().unwrap();
    let inner = victim("a_full_disk_fails_commits_whole_and_reads_go_on", dir.path(), 0);
    // With the signal ignored, a write beyond the limit fails with an error instead of ending the process.
    let mut limited = Command::new("sh");
    limited.args(["-c", "trap '' XFSZ; ulimit -f 4096 && exec \"$0\" \"$@\""]);
    limited.arg(inner.get_program()).args(inner.get_args());
    limited.env(FOLDER, dir.path()).env(FIRST, "0").stdin(Stdio::null());
    let output = limited.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.lines().any(|line| line == "code done"), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    let known = text.lines().filter_map(|line| line.strip_prefix("ack ")?.parse().ok()).collect::<BTreeSet<u64>>();
    assert!(!known.is_empty());

    // With room again the same folder goes on.
    let store = Store::open(dir.path(), StoreOptions::default()).unwrap();
    assert_eq!(numbers(&store), known);
    store.transact_blocking(|tx| write(tx, 5000, 200_000)).unwrap();
    assert!(numbers(&store).contains(&5000));
}
