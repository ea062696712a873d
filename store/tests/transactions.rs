//! Atomicity, savepoints and group commit.
#![allow(clippy::unwrap_used)]

mod common;

use std::sync::mpsc;

use common::{at, json, plugin, session, store};
use covel_graph::TurnId;
use covel_store::{Store, StoreError, StoreOptions, TransactError, Tx};
use tokio::runtime;

type Done = Result<(), StoreError>;

#[derive(Debug, PartialEq)]
struct Refusal(&'static str);

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        Self(error.code())
    }
}

/// Writes the same name in several tables.
fn mark(tx: &mut Tx<'_>, name: &str) -> Done {
    tx.put_session(&session(name), &json("{}"))?;
    tx.put_turn(&session(name), &TurnId::from(name), &json("{}"))?;
    tx.put_data(&session("shared"), &plugin("p"), "n", name, &json("1"), &at(1))?;
    tx.append_message(&session("shared"), &json(&format!("{name:?}")))?;
    Ok(())
}

/// The names whose marks are there, in order; a mark that is there in part fails the test.
fn marks(store: &Store) -> Vec<String> {
    store
        .read(|r| {
            let names: Vec<_> = r.list_sessions()?.into_iter().map(|row| row.id.to_string()).collect();
            let data = r.list_data(&session("shared"), &plugin("p"), "n")?;
            assert_eq!(data.into_iter().map(|record| record.key).collect::<Vec<_>>(), names);
            let messages = r.list_messages(&session("shared"), .., 1000)?;
            let texts: Vec<_> = messages.iter().map(|row| row.message.value().as_str().unwrap()).collect();
            assert_eq!(texts, names);
            for name in &names {
                assert!(r.get_turn(&session(name), &TurnId::from(name.as_str()))?.is_some());
            }
            Ok::<_, StoreError>(names)
        })
        .unwrap()
}

#[test]
fn a_refused_transaction_leaves_nothing() {
    let (store, _dir) = store();
    let outcome = store.transact_blocking(|tx| {
        mark(tx, "a")?;
        assert!(tx.read().has_session(&session("a"))?, "own writes are seen");
        Err::<(), _>(Refusal("no"))
    });
    assert_eq!(outcome, Err(TransactError::Refused(Refusal("no"))));
    assert!(marks(&store).is_empty());
    assert_eq!(store.stats().refused, 1);
    assert_eq!(store.stats().commits, 0);
}

#[test]
fn a_panicking_transaction_leaves_nothing_and_the_store_goes_on() {
    let (store, _dir) = store();
    let outcome: Result<(), TransactError<StoreError>> = store.transact_blocking(|tx| {
        mark(tx, "a")?;
        panic!("on purpose: {}", 7)
    });
    assert_eq!(outcome, Err(TransactError::Panicked("on purpose: 7".to_owned())));
    store.transact_blocking(|tx| mark(tx, "b")).unwrap();
    assert_eq!(marks(&store), ["b"]);
}

#[test]
fn a_value_that_panics_when_dropped_does_not_stop_the_writer() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("dropped");
        }
    }
    let (store, _dir) = store();
    current_thread().block_on(async {
        let (release, held) = mpsc::channel::<()>();
        let blocker = tokio::spawn({
            let store = store.clone();
            async move { store.transact(move |_| Ok::<_, StoreError>(held.recv().is_ok())).await }
        });
        let abandoned = tokio::spawn({
            let store = store.clone();
            async move { store.transact(|tx| mark(tx, "a").map(|()| Bomb)).await.map(std::mem::forget) }
        });
        tokio::task::yield_now().await;
        abandoned.abort();
        assert!(abandoned.await.unwrap_err().is_cancelled());
        release.send(()).unwrap();
        blocker.await.unwrap().unwrap();
        store.transact(|tx| mark(tx, "b")).await.unwrap();
    });
    assert_eq!(marks(&store), ["a", "b"]);
}

#[test]
fn savepoints_undo_only_themselves_and_nest() {
    let (store, _dir) = store();
    store
        .transact_blocking(|tx| {
            mark(tx, "a")?;
            let refused = tx.savepoint(|tx| {
                mark(tx, "b")?;
                tx.savepoint(|tx| mark(tx, "c").map_err(Refusal::from))?;
                assert!(tx.read().has_session(&session("c"))?);
                // Overwriting and deleting an outer write is undone as well.
                tx.put_data(&session("shared"), &plugin("p"), "n", "a", &json("2"), &at(2))?;
                tx.delete_session(&session("a"))?;
                Err::<(), _>(Refusal("inner"))
            });
            assert_eq!(refused, Err(Refusal("inner")));
            assert_eq!(tx.read().get_data(&session("shared"), &plugin("p"), "n", "a")?.unwrap().version, 1);
            tx.savepoint(|tx| {
                let inner = tx.savepoint(|tx| {
                    mark(tx, "d")?;
                    Err::<(), _>(Refusal("innermost"))
                });
                assert_eq!(inner, Err(Refusal("innermost")));
                mark(tx, "e").map_err(Refusal::from)
            })?;
            Ok::<_, Refusal>(())
        })
        .unwrap();
    assert_eq!(marks(&store), ["a", "e"]);
}

#[test]
fn a_panic_caught_inside_a_transaction_undoes_its_savepoint() {
    let (store, _dir) = store();
    store
        .transact_blocking(|tx| -> Done {
            mark(tx, "a")?;
            let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                tx.savepoint(|tx| -> Done {
                    mark(tx, "b")?;
                    panic!("on purpose")
                })
            }));
            assert!(caught.is_err());
            mark(tx, "c")
        })
        .unwrap();
    assert_eq!(marks(&store), ["a", "c"]);
}

#[test]
fn savepoints_have_a_depth_limit() {
    fn nest(tx: &mut Tx<'_>, depth: usize) -> Result<usize, StoreError> {
        tx.savepoint(|tx| nest(tx, depth + 1)).or_else(|error| {
            assert_eq!(error.code(), "store-savepoint-depth");
            Ok(depth)
        })
    }
    let (store, _dir) = store();
    let deepest = store.transact_blocking(|tx| nest(tx, 0)).unwrap();
    assert_eq!(deepest, covel_store::limits::MAX_SAVEPOINT_DEPTH);
}

#[test]
fn rewriting_for_ever_inside_one_transaction_is_bounded() {
    let (store, _dir) = store();
    let outcome: Result<(), TransactError<StoreError>> = store.transact_blocking(|tx| {
        let blob = vec![0; 64 * 1024 * 1024];
        loop {
            tx.put_blob("b", &blob)?;
            tx.delete_blob("b")?;
        }
    });
    let Err(TransactError::Refused(error)) = outcome else { panic!("{outcome:?}") };
    assert_eq!(error.code(), "store-transaction-too-large");
}

#[test]
fn a_transaction_cannot_wait_for_another() {
    let (store, _dir) = store();
    let inner = store.clone();
    let outcome = store.transact_blocking(move |tx| {
        mark(tx, "a")?;
        inner.transact_blocking(|tx| mark(tx, "b")).map_err(TransactError::flatten)
    });
    assert_eq!(outcome, Err(TransactError::Refused(StoreError::Reentrant)));
    assert!(marks(&store).is_empty());
}

#[test]
fn a_snapshot_sees_one_instant() {
    let (store, _dir) = store();
    store.transact_blocking(|tx| mark(tx, "a")).unwrap();
    let before = store.snapshot().unwrap();
    store.transact_blocking(|tx| mark(tx, "b")).unwrap();
    let seen = std::thread::spawn(move || before.read().list_sessions().unwrap().len()).join().unwrap();
    assert_eq!(seen, 1);
    assert_eq!(marks(&store), ["a", "b"]);
}

fn current_thread() -> runtime::Runtime {
    runtime::Builder::new_current_thread().build().unwrap()
}

/// Everything that waits while one transaction runs shares its sync; each still stands or falls alone.
#[test]
fn waiting_transactions_share_one_sync() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), StoreOptions::default()).unwrap();
    current_thread().block_on(async {
        let (release, held) = mpsc::channel::<()>();
        let mut tasks = vec![tokio::spawn({
            let store = store.clone();
            async move {
                let hold = move |tx: &mut Tx<'_>| {
                    held.recv().map_err(|_| Refusal("released"))?;
                    mark(tx, "00").map_err(Refusal::from)
                };
                store.transact(hold).await
            }
        })];
        for number in 1..50_usize {
            let store = store.clone();
            tasks.push(tokio::spawn(async move {
                store
                    .transact(move |tx| {
                        let name = format!("{number:02}");
                        // Sees the head, and the ones before it in the batch that stand.
                        let earlier = tx.read().list_sessions()?.len();
                        assert_eq!(earlier, number - (number - 1).div_ceil(5));
                        mark(tx, &name)?;
                        match number % 5 {
                            1 if number % 2 == 0 => panic!("on purpose"),
                            1 => Err(Refusal("every fifth")),
                            _ => Ok(()),
                        }
                    })
                    .await
            }));
        }
        // On one thread every task has queued its transaction before this one goes on.
        tokio::task::yield_now().await;
        release.send(()).unwrap();
        for (number, task) in tasks.into_iter().enumerate() {
            match task.await.unwrap() {
                Ok(()) => assert_ne!(number % 5, 1),
                Err(TransactError::Refused(Refusal("every fifth"))) => assert_eq!(number % 10, 1),
                Err(TransactError::Panicked(message)) => {
                    assert_eq!((number % 10, &*message), (6, "on purpose"))
                }
                Err(other) => panic!("{number}: {other:?}"),
            }
        }
    });
    let expected: Vec<_> = (0..50).filter(|number| number % 5 != 1).map(|number| format!("{number:02}")).collect();
    assert_eq!(marks(&store), expected);
    let stats = store.stats();
    assert_eq!((stats.commits, stats.refused), (40, 10));
    assert_eq!((stats.batches, stats.syncs), (1, 1));
}

#[test]
fn many_writers_need_fewer_syncs_than_commits() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), StoreOptions::default()).unwrap();
    let runtime = runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    runtime.block_on(async {
        let writers: Vec<_> = (0..32)
            .map(|writer| {
                let store = store.clone();
                tokio::spawn(async move {
                    for round in 0..10 {
                        let name = format!("{writer}-{round}");
                        store.transact(move |tx| mark(tx, &name)).await.unwrap();
                    }
                })
            })
            .collect();
        for writer in writers {
            writer.await.unwrap();
        }
    });
    assert_eq!(marks(&store).len(), 320);
    let stats = store.stats();
    assert_eq!(stats.commits, 320);
    assert!(stats.syncs < stats.commits, "{stats:?}");
}

#[test]
fn a_transaction_whose_caller_left_still_commits_and_closing_drains() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), StoreOptions::no_sync()).unwrap();
    current_thread().block_on(async {
        let (release, held) = mpsc::channel::<()>();
        let blocker = tokio::spawn({
            let store = store.clone();
            async move { store.transact(move |_| held.recv().map_err(|_| Refusal("released"))).await }
        });
        let abandoned: Vec<_> = ["a", "b", "c"]
            .map(|name| {
                let store = store.clone();
                tokio::spawn(async move { store.transact(move |tx| mark(tx, name)).await })
            })
            .into_iter()
            .collect();
        tokio::task::yield_now().await;
        for task in abandoned {
            task.abort();
            assert!(task.await.unwrap_err().is_cancelled());
        }
        blocker.abort();
        release.send(()).unwrap();
    });
    store.close();
    assert_eq!(marks(&store), ["a", "b", "c"], "reads go on after closing");
    let refused = store.transact_blocking(|tx| mark(tx, "d")).unwrap_err();
    assert_eq!(refused, TransactError::Store(StoreError::Closed));
    drop(store);
    let store = Store::open(dir.path(), StoreOptions::no_sync()).unwrap();
    assert_eq!(marks(&store), ["a", "b", "c"]);
}

#[test]
fn a_transaction_may_drop_the_last_handle() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), StoreOptions::no_sync()).unwrap();
    let (release, held) = mpsc::channel::<()>();
    let (done, finished) = mpsc::channel();
    current_thread().block_on(async {
        let last = store.clone();
        let task = tokio::spawn(async move {
            let inside = store.clone();
            let body = move |tx: &mut Tx<'_>| -> Done {
                held.recv().map_err(|_| StoreError::Closed)?;
                drop(inside);
                mark(tx, "a")?;
                done.send(()).map_err(|_| StoreError::Closed)
            };
            store.transact(body).await
        });
        tokio::task::yield_now().await;
        task.abort();
        assert!(task.await.unwrap_err().is_cancelled());
        drop(last);
    });
    release.send(()).unwrap();
    finished.recv().unwrap();
    // The writer thread ends by itself soon after; until then the folder is locked.
    let store = loop {
        match Store::open(dir.path(), StoreOptions::no_sync()) {
            Ok(store) => break store,
            Err(error) => assert_eq!(error.code(), "store-locked"),
        }
        std::thread::yield_now();
    };
    assert_eq!(marks(&store), ["a"]);
}

/// Invariant 7: the same transactions give the same file, byte for byte.
#[test]
fn the_same_transactions_write_the_same_bytes() {
    let write = || {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path(), StoreOptions::no_sync()).unwrap();
        for round in 0..20 {
            store
                .transact_blocking(move |tx| -> Done {
                    for number in (0..20).rev() {
                        mark(tx, &format!("{round}-{number}"))?;
                    }
                    tx.delete_session(&session(&format!("{round}-3"))).map(drop)
                })
                .unwrap();
        }
        drop(store);
        std::fs::read(dir.path().join("data.mdb")).unwrap()
    };
    assert!(write() == write());
}
