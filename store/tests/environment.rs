//! Opening, locking, growing.
#![allow(clippy::unwrap_used)]

mod common;

use std::{
    fs,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use common::{at, json, plugin, session, tiny};
use covel_graph::Json;
use covel_store::{Store, StoreError, StoreOptions, TransactError};

type Done = Result<(), StoreError>;

fn open_code(path: &Path) -> &'static str {
    match Store::open(path, StoreOptions::no_sync()) {
        Ok(_) => "opened",
        Err(error) => {
            assert!(!error.to_string().is_empty());
            error.code()
        }
    }
}

#[test]
fn a_folder_is_created_with_its_parents_and_opens_again() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a/b/store");
    let store = Store::open(&path, StoreOptions::default()).unwrap();
    store.transact_blocking(|tx| tx.put_session(&session("s"), &json("[1]"))).unwrap();
    drop(store);
    let store = Store::open(&path, StoreOptions::default()).unwrap();
    assert_eq!(store.read(|r| r.get_session(&session("s"))).unwrap().unwrap().text(), "[1]");
    assert_eq!(store.path(), path);
}

#[test]
fn an_open_folder_is_locked_until_the_last_snapshot_is_gone() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), StoreOptions::no_sync()).unwrap();
    assert_eq!(open_code(dir.path()), "store-locked");
    let snapshot = store.snapshot().unwrap();
    drop(store);
    assert_eq!(open_code(dir.path()), "store-locked");
    assert!(snapshot.read().list_sessions().unwrap().is_empty());
    drop(snapshot);
    assert_eq!(open_code(dir.path()), "opened");
}

#[test]
fn a_file_is_not_a_folder() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "text").unwrap();
    assert_eq!(open_code(&file), "store-not-a-folder");
    assert_eq!(open_code(&file.join("below")), "store-not-a-folder");
    assert_eq!(fs::read_to_string(&file).unwrap(), "text");
}

/// Nobody, not even an administrator, can create a folder there.
#[cfg(target_os = "linux")]
#[test]
fn a_place_that_cannot_be_written_is_read_only() {
    assert_eq!(open_code(Path::new("/sys/covel-store-test")), "store-read-only");
}

#[cfg(unix)]
#[test]
fn a_folder_without_write_permission_is_read_only() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o555)).unwrap();
    let privileged = fs::write(dir.path().join("probe"), "").is_ok();
    let code = open_code(dir.path());
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    // Permissions do not bind an administrator; then the store opens, and that is right.
    assert_eq!(code, if privileged { "opened" } else { "store-read-only" });
}

#[test]
fn a_file_that_is_no_store_is_refused_and_kept() {
    let dir = tempfile::tempdir().unwrap();
    let text = "not a database. ".repeat(1024);
    fs::write(dir.path().join("data.mdb"), &text).unwrap();
    assert_eq!(open_code(dir.path()), "store-format");
    assert_eq!(fs::read_to_string(dir.path().join("data.mdb")).unwrap(), text);
}

#[test]
fn an_empty_file_left_by_a_crash_is_a_new_store() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("data.mdb"), "").unwrap();
    assert_eq!(open_code(dir.path()), "opened");
}

#[test]
fn options_out_of_range_name_what_is_accepted() {
    let dir = tempfile::tempdir().unwrap();
    for options in [
        StoreOptions { max_map_size: 4096, ..StoreOptions::no_sync() },
        StoreOptions { max_map_size: usize::MAX, ..StoreOptions::no_sync() },
        StoreOptions { max_readers: 0, ..StoreOptions::no_sync() },
        StoreOptions { max_readers: u32::MAX, ..StoreOptions::no_sync() },
    ] {
        let error = Store::open(dir.path(), options).err().unwrap();
        assert_eq!(error.code(), "store-options");
    }
    for map_size in [0, 1, 1_000_001, usize::MAX] {
        Store::open(dir.path(), StoreOptions { map_size, ..tiny() }).unwrap();
    }
}

fn payload(number: usize) -> Json {
    Json::trusted(format!("\"{}\"", char::from(b'a' + (number % 26) as u8).to_string().repeat(20_000)))
}

/// Invariant 9: the map grows under load without a failed commit, and no reader sees it happen.
#[test]
fn the_map_grows_under_readers_without_a_failed_commit() {
    const RECORDS: usize = 1000;
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), tiny()).unwrap();
    let done = Arc::new(AtomicBool::new(false));
    let readers: Vec<_> = (0..3)
        .map(|reader| {
            let (store, done) = (store.clone(), done.clone());
            thread::spawn(move || {
                let (s, p) = (session("s"), plugin("p"));
                let check = |r: covel_store::Reader<'_>| -> Result<u64, StoreError> {
                    let count = r.count_data(&s, &p, "n")?;
                    if let Some(last) = count.checked_sub(1) {
                        let record = r.get_data(&s, &p, "n", &last.to_string())?.expect("counted, so there");
                        assert_eq!(record.value, payload(last as usize));
                        assert_eq!(r.last_messages(&s, .., 1)?[0].order, count);
                    }
                    Ok(count)
                };
                let mut seen = 0;
                while !done.load(Ordering::Relaxed) {
                    let count = if reader == 0 {
                        check(store.snapshot().unwrap().read()).unwrap()
                    } else {
                        store.read(|r| check(*r)).unwrap()
                    };
                    assert!(count >= seen, "a later read never sees less");
                    seen = count;
                }
            })
        })
        .collect();
    for number in 0..RECORDS {
        store
            .transact_blocking(move |tx| -> Done {
                let (s, p) = (session("s"), plugin("p"));
                tx.put_data(&s, &p, "n", &number.to_string(), &payload(number), &at(1))?;
                tx.append_message(&s, &json("0")).map(drop)
            })
            .unwrap();
    }
    done.store(true, Ordering::Relaxed);
    for reader in readers {
        reader.join().unwrap();
    }
    let stats = store.stats();
    assert_eq!(stats.commits, RECORDS as u64);
    assert!(stats.map_growths >= 4, "{stats:?}");
    drop(store);
    // Opening with a map smaller than the file is no trouble either.
    let store = Store::open(dir.path(), tiny()).unwrap();
    store.transact_blocking(|tx| tx.put_blob("b", &vec![7; 30_000_000])).unwrap();
    let count = store.read(|r| r.count_data(&session("s"), &plugin("p"), "n")).unwrap();
    assert_eq!(count, RECORDS as u64);
}

#[test]
fn a_full_map_refuses_the_commit_whole_and_the_store_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let options = StoreOptions { max_map_size: 4 * 1024 * 1024, ..tiny() };
    let store = Store::open(dir.path(), options).unwrap();
    store.transact_blocking(|tx| tx.put_blob("small", b"1")).unwrap();
    let refused = store
        .transact_blocking(|tx| {
            tx.put_session(&session("s"), &json("{}"))?;
            tx.put_blob("large", &vec![7; 8 * 1024 * 1024])
        })
        .unwrap_err();
    let TransactError::Store(error) = refused else { panic!("{refused:?}") };
    assert_eq!(error, StoreError::MapFull { limit: 4 * 1024 * 1024 });
    store
        .read(|r| -> Done {
            assert!(!r.has_session(&session("s"))?);
            assert_eq!(r.get_blob("large")?, None);
            assert_eq!(r.get_blob("small")?, Some(&b"1"[..]));
            Ok(())
        })
        .unwrap();
    store.transact_blocking(|tx| tx.put_blob("small 2", b"2")).unwrap();
}

#[test]
fn a_read_left_open_fails_growth_in_bounded_time_and_only_until_it_ends() {
    let dir = tempfile::tempdir().unwrap();
    let options = StoreOptions { growth_patience: Duration::from_millis(1), ..tiny() };
    let store = Store::open(dir.path(), options).unwrap();
    let grow = |name: &'static str| store.transact_blocking(move |tx| tx.put_blob(name, &vec![7; 4 * 1024 * 1024]));
    let snapshot = store.snapshot().unwrap();
    let refused = grow("first").unwrap_err();
    assert_eq!(refused, TransactError::Store(StoreError::MapBusy { waited_ms: 1 }));
    assert_eq!(snapshot.read().get_blob("first").unwrap(), None);
    drop(snapshot);
    grow("second").unwrap();
}

/// A thread that opens a second read while growth waits for its first one is let through.
#[test]
fn nested_reads_do_not_deadlock_with_growth() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), tiny()).unwrap();
    let writer = store.read(|outer| -> Result<_, StoreError> {
        let writer = thread::spawn({
            let store = store.clone();
            move || store.transact_blocking(|tx| tx.put_blob("b", &vec![7; 4 * 1024 * 1024]))
        });
        for _ in 0..10_000 {
            store.read(|inner| {
                assert_eq!(inner.get_blob("b")?, outer.get_blob("b")?);
                Ok::<_, StoreError>(())
            })?;
        }
        Ok(writer)
    });
    assert!(writer.unwrap().join().unwrap().unwrap());
    assert_eq!(store.stats().map_growths, 1);
}

#[test]
fn too_many_reads_are_refused_and_recover() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), StoreOptions { max_readers: 4, ..StoreOptions::no_sync() }).unwrap();
    let mut open = Vec::new();
    let refused = loop {
        match store.snapshot() {
            Ok(snapshot) => open.push(snapshot),
            Err(error) => break error,
        }
        assert!(open.len() <= 1000);
    };
    assert!(matches!(refused, StoreError::ReadersFull { .. }), "{refused:?}");
    assert!(open.len() >= 4);
    open.clear();
    store.snapshot().unwrap();
}
