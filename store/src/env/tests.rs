//! What only the inside can stage: foreign files, other formats, damaged records.
#![allow(clippy::unwrap_used)]

use covel_graph::SessionId;
use heed::types::Str;
use tempfile::tempdir;

use super::*;
use crate::{Store, read};

fn open(path: &Path) -> Result<Environment, StoreError> {
    Environment::open(path, &StoreOptions::no_sync())
}

fn overwrite(path: &Path, table: Table, key: &Key, bytes: &[u8]) {
    let env = open(path).unwrap();
    let mut overlay = Overlay::default();
    overlay.set(table, key.as_bytes().to_vec(), Some(bytes.into()));
    env.flush(&overlay).unwrap();
}

#[test]
fn another_format_is_refused_with_its_number() {
    let dir = tempdir().unwrap();
    overwrite(dir.path(), Table::Meta, &format_key(), &7_u32.to_be_bytes());
    let error = open(dir.path()).err().unwrap();
    assert_eq!(error.code(), "store-format");
    assert!(error.to_string().contains("store format 7"), "{error}");
}

#[test]
fn data_of_another_program_is_refused_and_untouched() {
    let dir = tempdir().unwrap();
    let foreign = || {
        let mut options = EnvOpenOptions::new().read_txn_without_tls();
        options.max_dbs(4);
        // SAFETY: the folder is this test's own.
        unsafe { options.open(dir.path()) }.unwrap()
    };
    let create = |name: &'static str| {
        let env = foreign();
        let txn = env.write_txn().unwrap();
        env.create_databases_and_commit(txn, |opener, txn| {
            let database = opener.create_database::<Str, Str>(txn, Some(name))?;
            database.put(txn, "key", "value")?;
            Ok::<_, heed::Error>(CommitOrAbort::<_, ()>::Commit(database))
        })
        .unwrap();
    };
    create("theirs");
    assert_eq!(open(dir.path()).err().unwrap().code(), "store-format");
    create("meta");
    assert_eq!(open(dir.path()).err().unwrap().code(), "store-format");
    assert_eq!(foreign().unnamed_database_stat().entries, 2);
}

#[test]
fn a_damaged_record_is_an_error_not_a_guess() {
    let damages: [&[u8]; 4] = [b"", b"\x09", b"\x01\x00", b"\x01\0\0\0\0\0\0\0\x01\0\0\0\x02\xFF\xFE{}"];
    for damage in damages {
        let dir = tempdir().unwrap();
        overwrite(dir.path(), Table::Sessions, &Key::of("s"), damage);
        let store = Store::open(dir.path(), StoreOptions::no_sync()).unwrap();
        let error = store.read(|r| r.get_session(&SessionId::from("s"))).unwrap_err();
        assert_eq!(error.code(), "store-corrupt", "{damage:?}");
    }
}

#[test]
fn a_broken_environment_refuses_reads_instead_of_touching_the_map() {
    let dir = tempdir().unwrap();
    let env = open(dir.path()).unwrap();
    env.gate().break_down("the map is gone".to_owned());
    let result: Result<(), StoreError> = read::read(&env, |_| unreachable!("no read may start"));
    assert_eq!(result.unwrap_err().code(), "store-broken");
}
