//! Random transactions against a model that keeps everything in one list and clones it for each savepoint.
#![allow(clippy::unwrap_used)]

mod common;

use common::{at, json, plugin, session, store};
use covel_store::{Reader, StoreError, TransactError, Tx};
use proptest::prelude::*;

const NAMESPACES: [&str; 3] = ["", "a", "a\0"];
const KEYS: [&str; 5] = ["", "k", "k\0", "__proto__", "l"];
const SESSIONS: [&str; 2] = ["s", "s\0"];

#[derive(Clone, Debug)]
enum Op {
    Put { session: usize, namespace: usize, key: usize, value: u8 },
    Delete { session: usize, namespace: usize, key: usize },
    Append { session: usize, value: u8 },
    DeleteMessage { session: usize, order: u64 },
    DeleteSession { session: usize },
    Savepoint { ops: Vec<Op>, fails: bool },
    Check,
}

#[derive(Clone, Debug, PartialEq)]
struct Record {
    namespace: usize,
    key: usize,
    value: u8,
    version: u64,
}

/// One session; records are in creation order.
#[derive(Clone, Debug, Default)]
struct Model {
    records: Vec<Record>,
    messages: Vec<(u64, u8)>,
    appended: u64,
}

type Models = [Model; SESSIONS.len()];

fn op() -> impl Strategy<Value = Op> {
    let place = || (0..SESSIONS.len(), 0..NAMESPACES.len(), 0..KEYS.len());
    let leaf = prop_oneof![
        6 => (place(), any::<u8>()).prop_map(|((session, namespace, key), value)| Op::Put { session, namespace, key, value }),
        3 => place().prop_map(|(session, namespace, key)| Op::Delete { session, namespace, key }),
        3 => (0..SESSIONS.len(), any::<u8>()).prop_map(|(session, value)| Op::Append { session, value }),
        1 => (0..SESSIONS.len(), 1..6_u64).prop_map(|(session, order)| Op::DeleteMessage { session, order }),
        1 => (0..SESSIONS.len()).prop_map(|session| Op::DeleteSession { session }),
        1 => Just(Op::Check),
    ];
    leaf.prop_recursive(3, 24, 6, |inner| {
        (prop::collection::vec(inner, 0..6), any::<bool>()).prop_map(|(ops, fails)| Op::Savepoint { ops, fails })
    })
}

fn apply(models: &mut Models, op: &Op) {
    match op {
        Op::Put { session, namespace, key, value } => {
            let records = &mut models[*session].records;
            match records.iter_mut().find(|record| (record.namespace, record.key) == (*namespace, *key)) {
                Some(record) => (record.value, record.version) = (*value, record.version + 1),
                None => records.push(Record { namespace: *namespace, key: *key, value: *value, version: 1 }),
            }
        }
        Op::Delete { session, namespace, key } => {
            models[*session].records.retain(|record| (record.namespace, record.key) != (*namespace, *key));
        }
        Op::Append { session, value } => {
            let model = &mut models[*session];
            model.appended += 1;
            model.messages.push((model.appended, *value));
        }
        Op::DeleteMessage { session, order } => models[*session].messages.retain(|(found, _)| found != order),
        Op::DeleteSession { session } => models[*session] = Model::default(),
        Op::Savepoint { ops, fails } => {
            let before = models.clone();
            ops.iter().for_each(|op| apply(models, op));
            if *fails {
                *models = before;
            }
        }
        Op::Check => {}
    }
}

fn run(tx: &mut Tx<'_>, models: &mut Models, op: &Op) -> Result<(), StoreError> {
    let p = plugin("p");
    match op {
        Op::Put { session: s, namespace, key, value } => {
            let (s, value) = (session(SESSIONS[*s]), json(&value.to_string()));
            tx.put_data(&s, &p, NAMESPACES[*namespace], KEYS[*key], &value, &at(1))?;
        }
        Op::Delete { session: s, namespace, key } => {
            tx.delete_data(&session(SESSIONS[*s]), &p, NAMESPACES[*namespace], KEYS[*key])?;
        }
        Op::Append { session: s, value } => {
            tx.append_message(&session(SESSIONS[*s]), &json(&value.to_string()))?;
        }
        Op::DeleteMessage { session: s, order } => {
            tx.delete_message(&session(SESSIONS[*s]), *order)?;
        }
        Op::DeleteSession { session: s } => {
            tx.delete_session(&session(SESSIONS[*s]))?;
        }
        Op::Savepoint { ops, fails } => {
            let mut inside = models.clone();
            let outcome = tx.savepoint(|tx| {
                ops.iter().try_for_each(|op| run(tx, &mut inside, op))?;
                if *fails { Err(StoreError::Closed) } else { Ok(()) }
            });
            assert_eq!(outcome.is_err(), *fails);
        }
        Op::Check => return check(tx.read(), models),
    }
    apply(models, op);
    Ok(())
}

fn check(r: Reader<'_>, models: &Models) -> Result<(), StoreError> {
    let p = plugin("p");
    for (s, model) in SESSIONS.iter().map(|s| session(s)).zip(models) {
        for (index, namespace) in NAMESPACES.iter().enumerate() {
            let expected: Vec<_> = model.records.iter().filter(|record| record.namespace == index).collect();
            let found = r.list_data(&s, &p, namespace)?;
            assert_eq!(r.count_data(&s, &p, namespace)?, expected.len() as u64);
            let found: Vec<_> = found
                .iter()
                .map(|record| (record.key.as_str(), record.value.text().to_owned(), record.version))
                .collect();
            let expected: Vec<_> =
                expected.iter().map(|record| (KEYS[record.key], record.value.to_string(), record.version)).collect();
            assert_eq!(found, expected);
            for (index, key) in KEYS.iter().enumerate() {
                let record = r.get_data(&s, &p, namespace, key)?;
                let version = expected.iter().find(|(found, ..)| found == key).map(|(.., version)| *version);
                assert_eq!(record.map(|record| record.version), version, "key {index}");
            }
        }
        let expected: Vec<_> =
            (0..NAMESPACES.len()).filter(|index| model.records.iter().any(|r| r.namespace == *index)).collect();
        let expected: Vec<_> = expected.into_iter().map(|index| NAMESPACES[index]).collect();
        assert_eq!(r.list_namespaces(&s, &p)?, expected);
        let numbers = |rows: Vec<covel_store::MessageRow>| -> Vec<(u64, String)> {
            rows.iter().map(|row| (row.order, row.message.text().to_owned())).collect()
        };
        let expected: Vec<_> = model.messages.iter().map(|(order, value)| (*order, value.to_string())).collect();
        assert_eq!(numbers(r.list_messages(&s, .., 1000)?), expected);
        let last = expected.len().saturating_sub(2);
        assert_eq!(numbers(r.last_messages(&s, .., 2)?), expected[last..]);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn transactions_behave_like_the_model(
        transactions in prop::collection::vec((prop::collection::vec(op(), 0..20), prop::bool::weighted(0.3)), 1..8),
    ) {
        let (store, _dir) = store();
        let mut models = Models::default();
        for (ops, fails) in transactions {
            let mut inside = models.clone();
            let outcome = store.transact_blocking(move |tx| {
                ops.iter().try_for_each(|op| run(tx, &mut inside, op))?;
                check(tx.read(), &inside)?;
                if fails { Err(StoreError::Closed) } else { Ok(inside) }
            });
            match outcome {
                Ok(after) => models = after,
                Err(error) => prop_assert_eq!((error, fails), (TransactError::Refused(StoreError::Closed), true)),
            }
            store.read(|r| check(*r, &models)).unwrap();
        }
    }
}
