//! Whole turns as tables: `cases/inputs.yaml`, `events.yaml`, `commit.yaml` and `bad_turns.yaml`, through the real
//! engine. Each row is written out as packages, published, played, and compared with what it says must come out.
//! How a row is read is told at the top of each table; how it is played, in `turn_tables/play.rs`.
//!
//! `TURN_ROW=<id>` plays one row and prints its turn.
#![allow(clippy::unwrap_used)]

#[path = "turn_tables/kit.rs"]
mod kit;
#[path = "turn_tables/play.rs"]
mod play;
#[path = "turn_tables/row.rs"]
mod row;

use row::Row;

/// Plays a table; every row must come out, and these ids must be there.
async fn table(name: &str, ids: &[&str]) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("cases").join(name);
    let rows: Vec<Row> = serde_saphyr::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let mut seen = std::collections::BTreeSet::new();
    for row in &rows {
        assert!(seen.insert(row.id.as_str()), "{name}: two rows {}", row.id);
    }
    for id in ids {
        assert!(rows.iter().any(|row| row.id.split(' ').next() == Some(id)), "{name}: no row {id}");
    }
    let only = std::env::var("TURN_ROW").ok();
    let (mut wrong, mut played, mut pending) = (Vec::new(), 0, 0);
    for row in &rows {
        if only.as_ref().is_some_and(|only| *only != row.id) {
            continue;
        }
        if let Some(shown) = &row.shown_in {
            let (file, test) = shown.split_once("::").unwrap();
            let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(file);
            let text = std::fs::read_to_string(file).unwrap();
            assert!(text.contains(&format!("fn {test}()")), "{name}: {} is not shown in {shown}", row.id);
            continue;
        }
        if let Some(reason) = &row.pending {
            println!("{name}: {} is pending: {reason}", row.id);
            pending += 1;
            continue;
        }
        played += 1;
        if let Err(problems) = play::play(row, only.is_some()).await {
            wrong.push(format!("{}: {}\n    {}", row.id, row.says, problems.join("\n    ")));
        }
    }
    println!("{name}: {played} rows played, {pending} pending");
    assert!(wrong.is_empty(), "{} rows of {name} came out otherwise\n{}", wrong.len(), wrong.join("\n"));
}

/// Covers: COM-1, COM-2
#[tokio::test(flavor = "multi_thread")]
async fn inputs_come_out_as_stated() {
    table("inputs.yaml", &[]).await;
}

/// Covers: COM-3, EVT-1, EVT-2, EVT-4, EVT-5
#[tokio::test(flavor = "multi_thread")]
async fn events_come_out_as_stated() {
    table("events.yaml", &["E1", "E2", "E3", "E4", "E5", "E6", "E7", "E8", "E9", "E10"]).await;
}

/// Covers: COM-6, RDD-1, RDD-2, UIW-2
#[tokio::test(flavor = "multi_thread")]
async fn commits_come_out_as_stated() {
    let ids: Vec<String> = (1..=18).map(|number| format!("C{number}")).collect();
    table("commit.yaml", &ids.iter().map(String::as_str).collect::<Vec<_>>()).await;
}

/// Covers: COM-4, SVC-1, SVC-2, SVC-3, SVC-4, SVC-5, SVC-6, SVC-7, SVC-9, SVC-10, SVC-11, CTX-1, CTX-2, CTX-3, CTX-4,
/// CTX-5, RDD-1, RDD-2, RDD-3, RDD-4, WSV-1, WSV-2, WSV-3, WSV-4, WSV-5, WSV-6, WSV-7, WSV-9, WSV-10, WSV-12, WSV-13,
/// TOL-3, TOL-5, TRC-2
#[tokio::test(flavor = "multi_thread")]
async fn services_come_out_as_stated() {
    table("services.yaml", &[]).await;
}

/// Covers: DAT-1, DAT-3
#[tokio::test(flavor = "multi_thread")]
async fn bad_input_is_refused_with_a_code_and_the_next_turn_is_fine() {
    table("bad_turns.yaml", &[]).await;
}
