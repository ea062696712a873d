//! Every kind of record, through the public interface.
#![allow(clippy::unwrap_used)]

mod common;

use common::{at, json, plugin, session, store};
use covel_graph::{Json, PlanDigest, RuntimeId, TurnId};
use covel_store::{StoreError, Tx};

type Done = Result<(), StoreError>;

#[test]
fn plugin_data_counts_versions_and_keeps_creation_time() {
    let (store, _dir) = store();
    let (s, p) = (session("s"), plugin("dice"));
    let version = store.transact_blocking({
        let (s, p) = (s.clone(), p.clone());
        move |tx| {
            let first = tx.put_data(&s, &p, "log", "a", &json(r#"{ "n": 1 }"#), &at(1))?;
            let second = tx.put_data(&s, &p, "log", "a", &json("2"), &at(2))?;
            assert_eq!((first.version, second.version), (1, 2));
            assert_eq!(first.created_seq, second.created_seq);
            Ok::<_, StoreError>(second)
        }
    });
    let version = version.unwrap();
    store
        .read(|r| -> Done {
            let record = r.get_data(&s, &p, "log", "a")?.unwrap();
            assert_eq!(record.value.text(), "2");
            assert_eq!((record.created_at, record.updated_at), (at(1), at(2)));
            assert_eq!(r.data_version(&s, &p, "log", "a")?, Some(version));
            assert_eq!(r.get_data(&s, &p, "log", "b")?, None);
            assert_eq!(r.get_data(&s, &plugin("other"), "log", "a")?, None);
            Ok(())
        })
        .unwrap();
}

#[test]
fn a_record_created_again_is_told_from_the_first() {
    let (store, _dir) = store();
    let (s, p) = (session("s"), plugin("p"));
    store
        .transact_blocking(move |tx| -> Done {
            let first = tx.put_data(&s, &p, "n", "k", &json("1"), &at(1))?;
            assert!(tx.delete_data(&s, &p, "n", "k")?);
            assert!(!tx.delete_data(&s, &p, "n", "k")?);
            let again = tx.put_data(&s, &p, "n", "k", &json("1"), &at(1))?;
            assert_eq!(again.version, 1);
            assert_ne!(first, again);
            Ok(())
        })
        .unwrap();
}

/// Invariant 8: names are ordinary keys, whatever they are.
#[test]
fn data_lists_in_creation_order_whatever_the_keys() {
    let (store, _dir) = store();
    let (s, p) = (session("s"), plugin("p"));
    let keys = ["z", "a", "m", "", "\0", "__proto__", "constructor", "10", "9", "é", "a\0b"];
    let write = move |tx: &mut Tx<'_>, keys: &[&str], second: u32| -> Done {
        for key in keys {
            tx.put_data(&session("s"), &plugin("p"), "n", key, &json("0"), &at(second))?;
        }
        // Neighbours that must not show.
        tx.put_data(&session("s"), &plugin("p"), "n\0", "x", &json("0"), &at(second))?;
        tx.put_data(&session("s"), &plugin("p"), "", "x", &json("0"), &at(second))?;
        tx.put_data(&session("s"), &plugin("pp"), "n", "x", &json("0"), &at(second))?;
        tx.put_data(&session("ss"), &plugin("p"), "n", "x", &json("0"), &at(second))?;
        Ok(())
    };
    // Half committed, half pending: the pending half is merged in place.
    store.transact_blocking(move |tx| write(tx, &keys[..5], 1)).unwrap();
    store
        .transact_blocking(move |tx| -> Done {
            write(tx, &keys[5..], 2)?;
            tx.put_data(&session("s"), &plugin("p"), "n", "z", &json("1"), &at(3))?;
            tx.delete_data(&session("s"), &plugin("p"), "n", "m")?;
            let seen = tx.read().list_data(&session("s"), &plugin("p"), "n")?;
            let expected: Vec<_> = keys.into_iter().filter(|key| *key != "m").collect();
            assert_eq!(seen.iter().map(|record| record.key.as_str()).collect::<Vec<_>>(), expected);
            Ok(())
        })
        .unwrap();
    store
        .read(|r| -> Done {
            let seen = r.list_data(&s, &p, "n")?;
            let expected: Vec<_> = keys.into_iter().filter(|key| *key != "m").collect();
            assert_eq!(seen.iter().map(|record| record.key.as_str()).collect::<Vec<_>>(), expected);
            assert_eq!(r.count_data(&s, &p, "n")?, expected.len() as u64);
            assert_eq!(r.list_namespaces(&s, &p)?, ["", "n", "n\0"]);
            assert_eq!(r.list_data_plugins(&s)?, [plugin("p"), plugin("pp")]);
            assert_eq!(r.list_session_data(&s, None, Some("n"))?.len(), expected.len() + 1);
            assert_eq!(r.list_session_data(&s, Some(&p), None)?.len(), expected.len() + 2);
            Ok(())
        })
        .unwrap();
}

/// Invariant 8, for names longer than an LMDB key.
#[test]
fn very_long_names_are_ordinary() {
    let (store, _dir) = store();
    let long = |tail: &str| "n".repeat(3000) + tail;
    store
        .transact_blocking(move |tx| -> Done {
            for tail in ["a", "b"] {
                let (s, p) = (session(&long(tail)), plugin(&long(tail)));
                tx.put_session(&s, &json("{}"))?;
                tx.put_data(&s, &p, &long("x"), &long("k1"), &json("1"), &at(1))?;
                tx.put_data(&s, &p, &long("x"), &long("k2"), &json("2"), &at(1))?;
                tx.put_data(&s, &p, &long("y"), "short", &json("3"), &at(1))?;
                tx.append_message(&s, &json("{}"))?;
                tx.put_turn(&s, &TurnId::from(long("turn")), &json("{}"))?;
                tx.put_item(&s, &long("kind"), &long("id"), &json("{}"))?;
                tx.put_fragment(&long(tail), tail.as_bytes())?;
            }
            Ok(())
        })
        .unwrap();
    store
        .read(|r| -> Done {
            let (s, p) = (session(&long("a")), plugin(&long("a")));
            let rows = r.list_data(&s, &p, &long("x"))?;
            assert_eq!(rows.iter().map(|row| row.key.clone()).collect::<Vec<_>>(), [long("k1"), long("k2")]);
            assert_eq!(r.get_data(&s, &p, &long("x"), &long("k2"))?.unwrap().value.text(), "2");
            assert_eq!(r.list_namespaces(&s, &p)?, [long("x"), long("y")]);
            assert_eq!(r.list_data_plugins(&s)?, [p]);
            assert_eq!(
                r.list_sessions()?.iter().map(|row| row.id.clone()).collect::<Vec<_>>(),
                [s.clone(), session(&long("b")),]
            );
            assert_eq!(r.list_messages(&s, .., 9)?.len(), 1);
            assert_eq!(r.get_turn(&s, &TurnId::from(long("turn")))?.unwrap().id, TurnId::from(long("turn")));
            assert_eq!(r.list_items(&s, &long("kind"))?[0].id, long("id"));
            assert_eq!(r.get_fragment(&long("b"))?, Some(&b"b"[..]));
            Ok(())
        })
        .unwrap();
}

#[test]
fn limits_refuse_with_a_code_and_leave_the_record() {
    let (store, _dir) = store();
    let limit = covel_graph::limits::MAX_DATA_VALUE_BYTES;
    let text = |bytes: usize| Json::trusted(format!("\"{}\"", "x".repeat(bytes - 2)));
    store
        .transact_blocking(move |tx| -> Done {
            let (s, p) = (session("s"), plugin("p"));
            tx.put_data(&s, &p, "n", "k", &text(limit), &at(1))?;
            let refused = tx.put_data(&s, &p, "n", "k", &text(limit + 1), &at(2)).unwrap_err();
            assert_eq!(refused.code(), "store-value-too-large");
            assert_eq!(tx.read().get_data(&s, &p, "n", "k")?.unwrap().version, 1);
            Ok(())
        })
        .unwrap();
}

#[test]
fn a_namespace_holds_a_limited_number_of_records() {
    let (store, _dir) = store();
    let limit = covel_store::limits::MAX_RECORDS_PER_NAMESPACE;
    store
        .transact_blocking(move |tx| -> Done {
            let (s, p) = (session("s"), plugin("p"));
            for number in 0..limit {
                tx.put_data(&s, &p, "n", &number.to_string(), &json("0"), "")?;
            }
            let refused = tx.put_data(&s, &p, "n", "one more", &json("0"), "").unwrap_err();
            assert_eq!(refused.code(), "store-namespace-full");
            tx.put_data(&s, &p, "n", "0", &json("1"), "")?;
            tx.put_data(&s, &p, "other", "one more", &json("0"), "")?;
            tx.delete_data(&s, &p, "n", "0")?;
            tx.put_data(&s, &p, "n", "one more", &json("0"), "")?;
            assert_eq!(tx.read().count_data(&s, &p, "n")?, limit);
            Ok(())
        })
        .unwrap();
}

#[test]
fn messages_are_numbered_and_paged_from_both_ends() {
    let (store, _dir) = store();
    store
        .transact_blocking(|tx| -> Done {
            for number in 1..=10 {
                assert_eq!(tx.append_message(&session("s"), &json(&number.to_string()))?, number);
            }
            tx.append_message(&session("s2"), &json("0"))?;
            Ok(())
        })
        .unwrap();
    // A deleted number is never given again; pending and stored rows page as one.
    store
        .transact_blocking(|tx| -> Done {
            let s = session("s");
            assert!(tx.delete_message(&s, 10)?);
            assert_eq!(tx.append_message(&s, &json("11"))?, 11);
            assert!(tx.replace_message(&s, 9, &json("99"))?);
            assert!(!tx.replace_message(&s, 10, &json("0"))?);
            let texts = |rows: Vec<covel_store::MessageRow>| {
                rows.into_iter().map(|row| (row.order, row.message.text().to_owned())).collect::<Vec<_>>()
            };
            let expected = [(8, "8".to_owned()), (9, "99".to_owned()), (11, "11".to_owned())];
            assert_eq!(texts(tx.read().last_messages(&s, .., 3)?), expected);
            assert_eq!(texts(tx.read().list_messages(&s, 8.., 9)?), expected);
            Ok(())
        })
        .unwrap();
    store
        .read(|r| -> Done {
            let s = session("s");
            let orders = |rows: Vec<covel_store::MessageRow>| rows.iter().map(|row| row.order).collect::<Vec<_>>();
            assert_eq!(orders(r.list_messages(&s, .., 2)?), [1, 2]);
            assert_eq!(orders(r.list_messages(&s, 3..=4, 9)?), [3, 4]);
            assert_eq!(orders(r.last_messages(&s, ..5, 2)?), [3, 4]);
            assert_eq!(orders(r.list_messages(&s, u64::MAX.., 9)?), [0; 0]);
            #[allow(clippy::reversed_empty_ranges)]
            let empty = r.list_messages(&s, 5..2, 9)?;
            assert!(empty.is_empty());
            assert_eq!(r.get_message(&s, 9)?.unwrap().text(), "99");
            Ok(())
        })
        .unwrap();
}

#[test]
fn turns_are_found_by_id_and_by_number() {
    let (store, _dir) = store();
    store
        .transact_blocking(|tx| -> Done {
            let s = session("s");
            assert_eq!(tx.put_turn(&s, &TurnId::from("z"), &json("1"))?, 1);
            assert_eq!(tx.put_turn(&s, &TurnId::from("a"), &json("2"))?, 2);
            assert_eq!(tx.put_turn(&s, &TurnId::from("z"), &json("3"))?, 1);
            Ok(())
        })
        .unwrap();
    store
        .read(|r| -> Done {
            let s = session("s");
            assert_eq!(r.get_turn(&s, &TurnId::from("z"))?.unwrap().document.text(), "3");
            assert_eq!(r.get_turn_by_number(&s, 2)?.unwrap().id, TurnId::from("a"));
            assert_eq!(r.get_turn(&s, &TurnId::from("y"))?, None);
            let ids = |rows: Vec<covel_store::TurnRow>| rows.iter().map(|row| row.id.to_string()).collect::<Vec<_>>();
            assert_eq!(ids(r.list_turns(&s, .., 9)?), ["z", "a"]);
            assert_eq!(ids(r.last_turns(&s, .., 1)?), ["a"]);
            Ok(())
        })
        .unwrap();
}

#[test]
fn deleting_a_session_takes_all_of_it_and_nothing_else() {
    let (store, _dir) = store();
    let fill = |tx: &mut Tx<'_>, id: &str| -> Done {
        let s = session(id);
        tx.put_session(&s, &json("{}"))?;
        tx.put_turn(&s, &TurnId::from("t"), &json("1"))?;
        tx.append_message(&s, &json("1"))?;
        tx.put_data(&s, &plugin("p"), "n", "k", &json("1"), &at(1))?;
        tx.put_trigger(&s, &RuntimeId::from("p"), &json("1"))?;
        tx.put_setup(&s, &RuntimeId::from("p"), &json("1"))
    };
    store
        .transact_blocking(move |tx| -> Done {
            for id in ["a", "ab", "", "a\0"] {
                fill(tx, id)?;
            }
            tx.put_blob("blob", b"bytes")?;
            Ok(())
        })
        .unwrap();
    store
        .transact_blocking(|tx| -> Done {
            // A pending row of the same session goes too.
            tx.append_message(&session("a"), &json("2"))?;
            assert!(tx.delete_session(&session("a"))?);
            assert!(!tx.delete_session(&session("a"))?);
            Ok(())
        })
        .unwrap();
    store
        .read(|r| -> Done {
            let s = session("a");
            assert_eq!(r.get_session(&s)?, None);
            assert!(r.list_turns(&s, .., 9)?.is_empty() && r.turn_number(&s, &TurnId::from("t"))?.is_none());
            assert!(r.list_messages(&s, .., 9)?.is_empty());
            assert!(r.list_session_data(&s, None, None)?.is_empty());
            assert!(r.list_triggers(&s)?.is_empty() && r.list_setups(&s)?.is_empty());
            for id in ["ab", "", "a\0"] {
                let s = session(id);
                assert!(r.has_session(&s)?);
                assert_eq!(r.list_turns(&s, .., 9)?.len(), 1);
                assert_eq!(r.list_messages(&s, .., 9)?.len(), 1);
                assert_eq!(r.list_session_data(&s, None, None)?.len(), 1);
                assert!(r.get_trigger(&s, &RuntimeId::from("p"))?.is_some());
                assert!(r.get_setup(&s, &RuntimeId::from("p"))?.is_some());
            }
            assert_eq!(r.get_blob("blob")?, Some(&b"bytes"[..]));
            Ok(())
        })
        .unwrap();
    // A session created again starts from nothing, at the end of the list.
    store
        .transact_blocking(|tx| -> Done {
            let s = session("a");
            tx.put_session(&s, &json("{}"))?;
            assert_eq!(tx.append_message(&s, &json("1"))?, 1);
            let ids: Vec<_> = tx.read().list_sessions()?.into_iter().map(|row| row.id.to_string()).collect();
            assert_eq!(ids, ["ab", "", "a\0", "a"]);
            Ok(())
        })
        .unwrap();
}

#[test]
fn bytes_are_kept_by_digest_and_empty_ones_too() {
    let (store, _dir) = store();
    store
        .transact_blocking(|tx| -> Done {
            let plan = PlanDigest::from("d");
            assert!(tx.put_plan(&plan, b"plan")?);
            assert!(!tx.put_plan(&plan, b"plan")?);
            assert!(tx.put_fragment("d", b"")?);
            assert!(tx.put_blob("e", b"blob")?);
            tx.put_meta("name", &json("[1]"))
        })
        .unwrap();
    store
        .read(|r| -> Done {
            assert_eq!(r.get_plan(&PlanDigest::from("d"))?, Some(&b"plan"[..]));
            assert_eq!(r.get_fragment("d")?, Some(&b""[..]));
            assert_eq!(r.get_blob("d")?, None);
            assert_eq!(r.list_plans()?, [PlanDigest::from("d")]);
            assert_eq!(r.list_fragments()?, ["d"]);
            assert_eq!(r.list_blobs()?, ["e"]);
            assert_eq!(r.list_meta()?, ["name"], "the store's own names are not listed");
            assert_eq!(r.get_meta("name")?.unwrap().text(), "[1]");
            assert_eq!(r.get_meta("format")?, None);
            Ok(())
        })
        .unwrap();
}
