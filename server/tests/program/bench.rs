//! `covel bench`: it measures what it says, and shows the run before. How fast anything is, no test asks.

use serde_json::Value;

use super::support::covel;

fn rows(report: &Value) -> Vec<(String, String, String)> {
    let text = |row: &Value, name: &str| row[name].as_str().unwrap().to_owned();
    let rows = report["rows"].as_array().unwrap().iter();
    rows.map(|row| (text(row, "profile"), text(row, "name"), text(row, "part"))).collect()
}

#[test]
fn every_profile_is_measured_and_the_next_run_is_compared() {
    let data = tempfile::tempdir().unwrap();
    let folder = data.path().to_str().unwrap();
    let first = covel(&["bench", "--seconds", "1", "--data", folder, "--json"]);
    assert_eq!(first.status, 0, "{}", first.err);
    let report = first.json();
    let measured = rows(&report);
    for profile in ["scheduler", "js", "durable", "http", "agents"] {
        assert!(measured.iter().any(|(of, ..)| of == profile), "{profile}: {measured:?}");
    }
    for part in ["walk", "before", "runtimes", "commit", "total", "write and sync", "first byte"] {
        assert!(measured.iter().any(|(.., found)| found == part), "{part}: {measured:?}");
    }
    for row in report["rows"].as_array().unwrap() {
        let figure = |name: &str| row[name].as_f64().unwrap();
        assert!(row["samples"].as_u64().unwrap() >= 2, "{row}");
        let order = [figure("p50"), figure("p95"), figure("p99"), figure("max")];
        assert!(order.is_sorted() && order[3] > 0.0, "{row}");
        assert!(row.get("beforeP50").is_none(), "there was no run before: {row}");
    }
    let left: Vec<_> = std::fs::read_dir(data.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["bench.json"], "what was measured in is gone");

    let second = covel(&["bench", "--profile", "scheduler,scheduler", "--seconds", "1", "--data", folder]);
    assert_eq!(second.status, 0, "{}", second.err);
    assert_eq!(second.out.matches("chain of 10").count(), 1, "{}", second.out);
    assert!(second.out.contains(" %)") && second.out.contains("before: covel"), "{}", second.out);
    // What was not measured this time is still known.
    let kept: Value = serde_json::from_slice(&std::fs::read(data.path().join("bench.json")).unwrap()).unwrap();
    assert_eq!(rows(&kept).len(), measured.len());
}

#[test]
fn a_damaged_earlier_run_is_ignored_and_bad_flags_are_refused() {
    let data = tempfile::tempdir().unwrap();
    let folder = data.path().to_str().unwrap();
    std::fs::write(data.path().join("bench.json"), "{\"rows\": 7").unwrap();
    let run = covel(&["bench", "--profile", "agents", "--seconds", "1", "--data", folder]);
    assert_eq!(run.status, 0, "{}", run.err);
    assert!(!run.out.contains("before:"), "{}", run.out);
    for flags in [["--profile", "all"], ["--seconds", "0"], ["--seconds", "601"]] {
        assert_eq!(covel(&[&["bench"], &flags[..]].concat()).status, 2, "{flags:?}");
    }
}
