//! The journal: every committed change of a session can be undone.
#![allow(clippy::unwrap_used)]

mod common;

use std::time::Instant;

use common::{at, json, plugin, session, store};
use covel_graph::{Json, TurnId};
use covel_store::{Leave, Reader, Store, StoreError, TransactError, Tx, limits};
use proptest::prelude::*;

const SESSIONS: [&str; 2] = ["s", "s\0"];
const PLACES: [&str; 3] = ["", "a", "a\0"];

#[derive(Clone, Debug)]
enum Op {
    Put { session: usize, place: usize, value: String },
    Delete { session: usize, place: usize },
    Item { session: usize, place: usize, value: String },
    DeleteItem { session: usize, place: usize },
    Record { session: usize, value: u8 },
    Append { session: usize, value: u8 },
    Replace { session: usize, order: u64, value: u8 },
    DeleteMessage { session: usize, order: u64 },
    Turn { session: usize, turn: u8, value: u8 },
    DeleteSession { session: usize },
    Savepoint { ops: Vec<Op>, fails: bool },
}

fn op() -> impl Strategy<Value = Op> {
    let s = || 0..SESSIONS.len();
    let place = || 0..PLACES.len();
    // Long equal stretches, so that changes are kept as middles.
    let value = || ("[ab]{0,3}", "[xy]{0,2}").prop_map(|(a, b)| format!("{}{a}{}{b}", "m".repeat(8), "n".repeat(8)));
    let leaf = prop_oneof![
        5 => (s(), place(), value()).prop_map(|(session, place, value)| Op::Put { session, place, value }),
        2 => (s(), place()).prop_map(|(session, place)| Op::Delete { session, place }),
        3 => (s(), place(), value()).prop_map(|(session, place, value)| Op::Item { session, place, value }),
        1 => (s(), place()).prop_map(|(session, place)| Op::DeleteItem { session, place }),
        2 => (s(), any::<u8>()).prop_map(|(session, value)| Op::Record { session, value }),
        3 => (s(), any::<u8>()).prop_map(|(session, value)| Op::Append { session, value }),
        1 => (s(), 1..5_u64, any::<u8>()).prop_map(|(session, order, value)| Op::Replace { session, order, value }),
        1 => (s(), 1..5_u64).prop_map(|(session, order)| Op::DeleteMessage { session, order }),
        2 => (s(), 0..6_u8, any::<u8>()).prop_map(|(session, turn, value)| Op::Turn { session, turn, value }),
        1 => s().prop_map(|session| Op::DeleteSession { session }),
    ];
    leaf.prop_recursive(3, 24, 6, |inner| {
        (prop::collection::vec(inner, 0..6), any::<bool>()).prop_map(|(ops, fails)| Op::Savepoint { ops, fails })
    })
}

fn run(tx: &mut Tx<'_>, op: &Op) -> Result<(), StoreError> {
    let (p, of) = (plugin("p"), |index: &usize| session(SESSIONS[*index]));
    let text = |value: &String| Json::from_value(value.clone().into());
    match op {
        Op::Put { session, place, value } => {
            tx.put_data(&of(session), &p, PLACES[*place], PLACES[*place], &text(value), &at(1)).map(drop)
        }
        Op::Delete { session, place } => tx.delete_data(&of(session), &p, PLACES[*place], PLACES[*place]).map(drop),
        Op::Item { session, place, value } => tx.put_item(&of(session), "kind", PLACES[*place], &text(value)),
        Op::DeleteItem { session, place } => tx.delete_item(&of(session), "kind", PLACES[*place]).map(drop),
        Op::Record { session, value } => tx.put_session(&of(session), &json(&value.to_string())),
        Op::Append { session, value } => tx.append_message(&of(session), &json(&value.to_string())).map(drop),
        Op::Replace { session, order, value } => {
            tx.replace_message(&of(session), *order, &json(&value.to_string())).map(drop)
        }
        Op::DeleteMessage { session, order } => tx.delete_message(&of(session), *order).map(drop),
        Op::Turn { session, turn, value } => {
            tx.put_turn(&of(session), &TurnId::from(format!("t{turn}")), &json(&value.to_string())).map(drop)
        }
        Op::DeleteSession { session } => tx.delete_session(&of(session)).map(drop),
        Op::Savepoint { ops, fails } => {
            let outcome = tx.savepoint(|tx| {
                ops.iter().try_for_each(|op| run(tx, op))?;
                if *fails { Err(StoreError::Closed) } else { Ok(()) }
            });
            assert_eq!(outcome.is_err(), *fails);
            Ok(())
        }
    }
}

/// Does a deletion of this session stay?
fn deletes(ops: &[Op], index: usize) -> bool {
    ops.iter().any(|op| match op {
        Op::DeleteSession { session } => *session == index,
        Op::Savepoint { ops, fails } => !fails && deletes(ops, index),
        _ => false,
    })
}

/// The picture of a session that is not there.
const EMPTY: &str = "None\n[]\n[]\n[]\n[]\n[None, None, None, None, None, None]\n[0, 0, 0]";

/// Everything one can read of a session, as text.
fn picture(reader: Reader<'_>, index: usize) -> String {
    let (s, p) = (session(SESSIONS[index]), plugin("p"));
    let turns = reader.list_turns(&s, .., 100).unwrap();
    let by_id: Vec<_> = (0..6).map(|turn| reader.turn_number(&s, &TurnId::from(format!("t{turn}"))).unwrap()).collect();
    let counts: Vec<_> = PLACES.iter().map(|place| reader.count_data(&s, &p, place).unwrap()).collect();
    format!(
        "{:?}\n{:?}\n{:?}\n{:?}\n{turns:?}\n{by_id:?}\n{counts:?}",
        reader.get_session(&s).unwrap(),
        reader.list_session_data(&s, None, None).unwrap(),
        reader.list_items(&s, "kind").unwrap(),
        reader.list_messages(&s, .., 100).unwrap(),
    )
}

fn pictures(reader: Reader<'_>) -> Vec<String> {
    (0..SESSIONS.len()).map(|index| picture(reader, index)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    /// Beside the store, each session's picture before every journal entry is kept; undoing must give it again,
    /// from outside and from inside a later transaction, and a copy must equal it.
    #[test]
    fn the_past_is_what_it_was(
        transactions in prop::collection::vec((prop::collection::vec(op(), 0..12), prop::bool::weighted(0.2)), 1..10),
    ) {
        let (store, _dir) = store();
        // For each session: (first entry's number, picture before it).
        let mut known: Vec<Vec<(u64, String)>> = vec![Vec::new(); SESSIONS.len()];
        for (ops, fails) in transactions {
            let before = store.read(|r| Ok::<_, StoreError>(pictures(*r))).unwrap();
            let bounds = bounds(&store);
            let deleted: Vec<bool> = (0..SESSIONS.len()).map(|index| deletes(&ops, index)).collect();
            let outcome = store.transact_blocking(move |tx| {
                ops.iter().try_for_each(|op| run(tx, op))?;
                if fails { Err(StoreError::Closed) } else { Ok(()) }
            });
            if let Err(error) = &outcome {
                prop_assert_eq!((error, fails), (&TransactError::Refused(StoreError::Closed), true));
            }
            for (index, next) in self::bounds(&store).into_iter().enumerate() {
                if outcome.is_ok() && deleted[index] {
                    // Its journal begins again, and tells nothing of what was before.
                    known[index].clear();
                    prop_assert!(next <= 2);
                    known[index].extend((next == 2).then(|| (1, EMPTY.to_owned())));
                } else if next == bounds[index] {
                    let now = store.read(|r| Ok::<_, StoreError>(picture(*r, index))).unwrap();
                    prop_assert_eq!(&now, &before[index], "changed without an entry");
                } else {
                    prop_assert_eq!(next, bounds[index] + 1);
                    known[index].push((bounds[index], before[index].clone()));
                }
            }
            store.read(|r| {
                for (index, known) in known.iter().enumerate() {
                    for (seq, picture) in known {
                        let past = r.state_before(&session(SESSIONS[index]), *seq)?;
                        assert_eq!(&self::picture(past.read(), index), picture, "before entry {seq}");
                    }
                }
                Ok::<_, StoreError>(())
            }).unwrap();
        }
        // Inside a transaction its own writes are seen.
        store.transact_blocking(move |tx| {
            for index in 0..SESSIONS.len() {
                run(tx, &Op::Put { session: index, place: 0, value: "new".to_owned() })?;
                run(tx, &Op::Append { session: index, value: 7 })?;
            }
            // They have no entry yet: the number of the next one stands for the present.
            for (index, s) in SESSIONS.iter().map(|s| session(s)).enumerate() {
                let next = tx.read().journal_bounds(&s)?.next;
                assert_eq!(picture(tx.read().state_before(&s, next)?.read(), index), picture(tx.read(), index));
            }
            Err::<(), _>(StoreError::Closed)
        }).unwrap_err();
        for (index, known) in known.into_iter().enumerate() {
            for (seq, picture) in known {
                copy_equals(&store, index, seq, &picture);
            }
        }
    }
}

fn bounds(store: &Store) -> Vec<u64> {
    store.read(|r| SESSIONS.iter().map(|s| r.journal_bounds(&session(s)).map(|bounds| bounds.next)).collect()).unwrap()
}

fn copy_equals(store: &Store, index: usize, seq: u64, expected: &str) {
    let (parent, child) = (session(SESSIONS[index]), session("child"));
    let outcome = store.transact_blocking(move |tx| {
        let record = tx.copy_session_at(&parent, seq, &child, Leave::default())?;
        tx.put_session(&child, &record)
    });
    if expected.starts_with("None") {
        let error = outcome.unwrap_err();
        assert!(matches!(&error, TransactError::Refused(StoreError::SessionMissing { .. })), "{error}");
        return;
    }
    outcome.unwrap();
    let child = session("child");
    let (copy, first) = store
        .read(|r| {
            let p = plugin("p");
            let turns = r.list_turns(&child, .., 100)?;
            let by_id: Vec<_> =
                (0..6).map(|turn| r.turn_number(&child, &TurnId::from(format!("t{turn}"))).unwrap()).collect();
            let counts: Vec<_> = PLACES.iter().map(|place| r.count_data(&child, &p, place).unwrap()).collect();
            let copy = format!(
                "{:?}\n{:?}\n{:?}\n{:?}\n{turns:?}\n{by_id:?}\n{counts:?}",
                r.get_session(&child)?,
                r.list_session_data(&child, None, None)?,
                r.list_items(&child, "kind")?,
                r.list_messages(&child, .., 100)?,
            );
            Ok::<_, StoreError>((copy, r.journal_bounds(&child)?.first))
        })
        .unwrap();
    assert_eq!((copy.as_str(), first), (expected, 1));
    store.transact_blocking(move |tx| tx.delete_session(&session("child"))).unwrap();
}

#[test]
fn an_entry_says_who_changed_what() {
    let (store, _dir) = store();
    store
        .transact_blocking(|tx| {
            tx.set_cause("turn", "t1", &at(3));
            tx.put_session(&session("s"), &json("{}"))?;
            tx.put_item(&session("s"), "seat", "p1", &json("{}"))?;
            tx.append_message(&session("s"), &json("{}")).map(drop)
        })
        .unwrap();
    store
        .transact_blocking(|tx| {
            tx.set_cause("rpc", &"é".repeat(200), &at(4));
            tx.put_item(&session("s"), "seat", "p1", &json("[]"))
        })
        .unwrap();
    store
        .read(|r| {
            let entries = r.journal(&session("s"), .., 10)?;
            assert_eq!(entries.len(), 2);
            let (first, second) = (&entries[0], &entries[1]);
            assert_eq!((first.cause.kind.as_str(), first.cause.id.as_str()), ("turn", "t1"));
            assert_eq!(first.cause.at, at(3));
            let changed: Vec<_> =
                first.changes.iter().map(|change| (change.table, change.key.join("/"), change.existed)).collect();
            let expected = [
                ("sessions", "", false),
                ("items", "seat/p1", false),
                ("counters", "items", false),
                ("counters", "messages", false),
            ];
            assert_eq!(changed, expected.map(|(table, key, existed)| (table, key.to_owned(), existed)));
            assert_eq!(second.cause.id, "é".repeat(limits::MAX_CAUSE_BYTES / 2));
            assert_eq!(second.changes.len(), 1);
            assert!(second.changes[0].existed);
            assert_eq!(r.find_journal(&session("s"), "turn", "t1")?, Some(1));
            assert_eq!(r.find_journal(&session("s"), "turn", "t2")?, None);
            Ok::<_, StoreError>(())
        })
        .unwrap();
}

#[test]
fn a_transaction_that_changes_nothing_leaves_no_entry() {
    let (store, _dir) = store();
    let put = |store: &Store| store.transact_blocking(|tx| tx.put_item(&session("s"), "k", "i", &json("1"))).unwrap();
    put(&store);
    put(&store);
    assert_eq!(store.read(|r| r.journal_bounds(&session("s"))).unwrap().next, 2);
}

#[test]
fn only_the_newest_entries_are_kept() {
    let (store, _dir) = store();
    let s = session("s");
    let total = limits::MAX_JOURNAL_ENTRIES + 1;
    // Queued all at once, so that they share commits.
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let mut waiting = Vec::new();
        for number in 0..total {
            let store = store.clone();
            waiting.push(tokio::spawn(async move {
                store
                    .transact(move |tx| tx.put_item(&session("s"), "k", "i", &json(&number.to_string())))
                    .await
                    .unwrap();
            }));
        }
        for one in waiting {
            one.await.unwrap();
        }
    });
    store
        .read(|r| {
            let bounds = r.journal_bounds(&s)?;
            assert_eq!((bounds.first, bounds.next), (2, total + 1));
            assert_eq!(r.journal(&s, .., 1)?[0].seq, 2);
            let past = r.state_before(&s, 2)?;
            assert_eq!(past.read().get_item(&s, "k", "i")?, Some(json("0")));
            for outside in [0, 1, total + 2] {
                let error = r.state_before(&s, outside).err().unwrap();
                assert_eq!(error.code(), "store-journal-pruned");
                assert!(error.to_string().contains("from 2 to"), "{error}");
            }
            Ok::<_, StoreError>(())
        })
        .unwrap();
}

#[test]
fn the_journal_keeps_within_its_bytes() {
    let (store, _dir) = store();
    let s = session("s");
    let megabytes = |letter: &str| Json::from_value(letter.repeat(24 * 1024 * 1024).into());
    for letter in ["a", "b", "c", "d", "e"] {
        let value = megabytes(letter);
        store.transact_blocking(move |tx| tx.put_item(&session("s"), "k", "i", &value)).unwrap();
    }
    store
        .read(|r| {
            let bounds = r.journal_bounds(&s)?;
            assert_eq!((bounds.first, bounds.next), (4, 6));
            assert!(bounds.bytes <= limits::MAX_JOURNAL_BYTES);
            let past = r.state_before(&s, 4)?;
            assert_eq!(past.read().get_item(&s, "k", "i")?, Some(megabytes("c")));
            Ok::<_, StoreError>(())
        })
        .unwrap();
}

#[test]
fn a_copy_leaves_out_what_it_should() {
    let (store, _dir) = store();
    store
        .transact_blocking(|tx| {
            let s = session("s");
            tx.put_session(&s, &json("{}"))?;
            tx.put_item(&s, "job", "1", &json("1"))?;
            tx.put_item(&s, "jobs", "1", &json("1"))?;
            tx.put_data(&s, &plugin("__kernel:vector"), "n", "k", &json("1"), &at(1))?;
            tx.put_data(&s, &plugin("p"), "n", "k", &json("1"), &at(1)).map(drop)
        })
        .unwrap();
    let leave = Leave { item_kinds: &["job"], plugins: &["__kernel:vector"] };
    let copy = move |tx: &mut Tx<'_>| {
        let next = tx.read().journal_bounds(&session("s"))?.next;
        let record = tx.copy_session_at(&session("s"), next, &session("c"), leave)?;
        tx.put_session(&session("c"), &record)
    };
    store.transact_blocking(copy).unwrap();
    let again = store.transact_blocking(copy).unwrap_err();
    assert!(matches!(&again, TransactError::Refused(error) if error.code() == "store-session-exists"), "{again}");
    store
        .read(|r| {
            let c = session("c");
            assert_eq!(r.get_item(&c, "job", "1")?, None);
            assert_eq!(r.get_item(&c, "jobs", "1")?, Some(json("1")));
            assert_eq!(r.count_data(&c, &plugin("__kernel:vector"), "n")?, 0);
            assert_eq!(r.list_data_plugins(&c)?, [plugin("p")]);
            assert_eq!(r.count_data(&c, &plugin("p"), "n")?, 1);
            Ok::<_, StoreError>(())
        })
        .unwrap();
}

#[test]
fn traces_are_written_once_and_the_oldest_go() {
    let (store, _dir) = store();
    let s = session("s");
    let put = |turn: u64, value: &'static str| {
        let turn = TurnId::from(format!("t{turn}"));
        store.transact_blocking(move |tx| tx.put_trace(&session("s"), &turn, &json(value), b"consumed")).unwrap();
    };
    put(1, "1");
    put(1, "2");
    let row = store.read(|r| r.get_trace(&s, &TurnId::from("t1"))).unwrap().unwrap();
    assert_eq!((row.trace.text(), row.consumed.as_slice()), ("1", b"consumed".as_slice()));
    store
        .transact_blocking(|tx| {
            (2..limits::MAX_TRACES + 2)
                .try_for_each(|turn| tx.put_trace(&session("s"), &TurnId::from(format!("t{turn}")), &json("0"), &[]))
        })
        .unwrap();
    store
        .read(|r| {
            assert_eq!(r.get_trace(&s, &TurnId::from("t1"))?, None);
            assert!(r.get_trace(&s, &TurnId::from("t2"))?.is_some());
            assert!(r.get_trace(&s, &TurnId::from(format!("t{}", limits::MAX_TRACES + 1)))?.is_some());
            assert_eq!(r.journal_bounds(&s)?.next, 1, "traces are not journaled");
            Ok::<_, StoreError>(())
        })
        .unwrap();
}

/// Prints what the journal costs: `cargo test --release -p covel-store --test journal -- --ignored --nocapture`.
#[test]
#[ignore = "prints figures"]
fn cost_of_a_one_kilobyte_write() {
    let (store, _dir) = store();
    let value = |number: usize| json(&format!("{{\"n\":{number},\"text\":\"{}\"}}", "x".repeat(1_000)));
    let count = 20_000;
    let start = Instant::now();
    for number in 0..count {
        let value = value(number);
        store
            .transact_blocking(move |tx| {
                tx.put_data(&session("s"), &plugin("p"), "n", &(number % 100).to_string(), &value, &at(1)).map(drop)
            })
            .unwrap();
    }
    let took = start.elapsed() / u32::try_from(count).unwrap();
    let bounds = store.read(|r| r.journal_bounds(&session("s"))).unwrap();
    println!("{took:?} a transaction, {} journal bytes an entry", bounds.bytes / (bounds.next - bounds.first));
}
