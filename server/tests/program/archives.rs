//! `snapshot`: what a data folder keeps of plans and package versions, and what clearing away leaves.

use std::{fs, path::Path};

use covel_graph::PlanDigest;
use covel_store::{Store, StoreError, StoreOptions};
use serde_json::{Value, json};

use super::support::{Run, copy, covel, fixture};

struct Folder(tempfile::TempDir);

impl Folder {
    /// Packages and an empty data folder.
    fn new() -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        copy(Path::new(&fixture("plugins")), &folder.path("plugins"));
        let replies = json!([{ "content": "A cat looks up." }]);
        fs::write(folder.path("script.json"), replies.to_string()).unwrap();
        folder
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.0.path().join(name)
    }

    fn data(&self) -> String {
        self.path("data").display().to_string()
    }

    /// Plays one turn; answers the plan it used.
    fn turn(&self, session: &str) -> String {
        let run = covel(&[
            "turn",
            "--plugins",
            &self.path("plugins").display().to_string(),
            "--data",
            &self.data(),
            "--session",
            session,
            "--script",
            &self.path("script.json").display().to_string(),
            "--json",
        ]);
        assert_eq!(run.status, 0, "{}{}", run.out, run.err);
        run.json()["plan"].as_str().unwrap().to_owned()
    }

    /// A next version of one package.
    fn publish(&self, version: &str) {
        let manifest = self.path("plugins/counter/PLUGIN.md");
        let text = fs::read_to_string(&manifest).unwrap();
        let (head, rest) = text.split_once("version: ").unwrap();
        let (_, rest) = rest.split_once('\n').unwrap();
        fs::write(manifest, format!("{head}version: {version}\n{rest}")).unwrap();
        let package = json!({ "name": "plugin-counter", "version": version, "type": "module", "private": true });
        fs::write(self.path("plugins/counter/package.json"), package.to_string()).unwrap();
    }

    fn snapshot(&self, arguments: &[&str]) -> Run {
        let data = self.data();
        covel(&[&["snapshot"], arguments, &["--data", &data, "--json"]].concat())
    }

    fn plans(&self) -> Vec<Value> {
        let run = self.snapshot(&["ls"]);
        assert_eq!(run.status, 0, "{}{}", run.out, run.err);
        run.json()["plans"].as_array().unwrap().clone()
    }

    /// Flips a bit in the middle of a stored plan.
    fn damage(&self, plan: &str) {
        let store = Store::open(self.path("data"), StoreOptions::default()).unwrap();
        let digest = PlanDigest::from(plan);
        store
            .transact_blocking(move |tx| {
                let mut bytes = tx.read().get_plan(&digest)?.unwrap().to_vec();
                let middle = bytes.len() / 2;
                bytes[middle] ^= 1;
                tx.delete_plan(&digest)?;
                tx.put_plan(&digest, &bytes)?;
                Ok::<_, StoreError>(())
            })
            .unwrap();
    }
}

#[test]
fn plans_are_listed_with_packages_size_and_users() {
    let folder = Folder::new();
    let first = folder.turn("one");
    assert_eq!(folder.turn("two"), first, "the same packages, the same plan");
    folder.publish("2.0.0");
    let second = folder.turn("two");
    assert_ne!(second, first);

    let plans = folder.plans();
    let of = |digest: &str| plans.iter().find(|plan| plan["digest"] == digest).unwrap();
    assert_eq!(plans.len(), 2);
    assert_eq!(of(&first)["sessions"], json!(["one"]));
    assert_eq!(of(&second)["sessions"], json!(["two"]));
    assert!(of(&first)["bytes"].as_u64().unwrap() > 100);
    let version = |plan: &str| {
        let packages = of(plan)["packages"].as_array().unwrap();
        let counter = packages.iter().find(|package| package["id"] == "counter");
        counter.unwrap()["version"].clone()
    };
    assert_ne!(version(&first), "2.0.0");
    assert_eq!(version(&second), "2.0.0");

    let text = covel(&["snapshot", "ls", "--data", &folder.data()]).out;
    assert!(text.contains("used by two") && text.contains("counter 2.0.0"), "{text}");
}

#[test]
fn a_plan_is_shown_from_its_archive_alone() {
    let folder = Folder::new();
    let plan = folder.turn("s");
    fs::remove_dir_all(folder.path("plugins")).unwrap();
    let shown = folder.snapshot(&["show", &plan[..8]]);
    assert_eq!(shown.status, 0, "{}", shown.out);
    assert_eq!(shown.json()["digest"], plan.as_str());
    assert_eq!(shown.json()["stages"][2]["layers"], json!([["teller"]]));
    let data = folder.data();
    let dot = ["snapshot", "show", &plan, "--data", &data, "--format", "dot"];
    assert!(covel(&dot).out.starts_with("digraph"));
    for wanted in ["0000000000", "", &plan[..3], "zz"] {
        let run = folder.snapshot(&["show", wanted]);
        assert_eq!(run.code(), "snapshot-not-found", "{wanted:?}");
    }
}

/// What no session needs goes, and only when it is asked for; what went is made again when it is needed.
#[test]
fn clearing_away_removes_what_no_session_needs() {
    let folder = Folder::new();
    let first = folder.turn("s");
    folder.publish("2.0.0");
    let second = folder.turn("s");

    let looked = folder.snapshot(&["gc"]).json();
    assert_eq!(looked["removed"], false);
    let waste = &looked["waste"];
    assert_eq!(waste["plans"].as_array().unwrap().len(), 1);
    assert_eq!(waste["plans"][0]["digest"], first.as_str());
    let fragments = waste["fragments"].as_array().unwrap();
    assert_eq!(fragments.len(), 1, "{waste}");
    assert_eq!(fragments[0]["pluginId"], "counter");
    assert_ne!(fragments[0]["version"], "2.0.0");
    assert_eq!(waste["blobs"].as_array().unwrap().len(), 2, "the first version's package.json and PLUGIN.md: {waste}");
    let kept = &waste["kept"];
    assert_eq!((&kept["plans"], &kept["fragments"]), (&json!(1), &json!(2)));
    assert_eq!(folder.plans().len(), 2, "looking removes nothing");

    let removed = folder.snapshot(&["gc", "--yes"]).json();
    assert_eq!(removed["removed"], true);
    assert_eq!(removed["waste"], *waste);
    let plans = folder.plans();
    assert_eq!(plans.len(), 1);
    assert_eq!(plans[0]["digest"], second.as_str());
    let again = folder.snapshot(&["gc", "--yes"]).json();
    assert_eq!(again["waste"]["bytes"], 0, "nothing is left to remove: {again}");

    assert_eq!(folder.turn("s"), second, "the session plays on");
    folder.publish("1.0.0");
    let back = folder.turn("s");
    assert_ne!(back, second);
    assert_eq!(folder.plans().len(), 2);
}

/// A session created but never played needs its plan; when that is gone, its packages' versions stay.
#[test]
fn what_a_session_may_need_stays() {
    let folder = Folder::new();
    let plan = folder.turn("s");
    folder.damage(&plan);
    let waste = folder.snapshot(&["gc", "--yes"]).json()["waste"].clone();
    assert_eq!(waste["plans"][0]["digest"], plan.as_str());
    assert_eq!((&waste["fragments"], &waste["blobs"]), (&json!([]), &json!([])), "its package versions stay");
    assert_eq!(folder.plans().len(), 0);
    assert_eq!(folder.turn("s"), plan, "it is linked again");
    assert_eq!(folder.plans().len(), 1);
}

#[test]
fn a_damaged_plan_is_named_and_replaced_by_the_next_turn() {
    let folder = Folder::new();
    let plan = folder.turn("s");
    folder.damage(&plan);
    assert!(folder.plans()[0]["damaged"].is_string());
    assert_eq!(folder.snapshot(&["show", &plan]).code(), "archive-damaged");
    assert_eq!(folder.turn("s"), plan);
    assert!(folder.plans()[0].get("damaged").is_none(), "the sound one took its place");
}

#[test]
fn a_folder_in_use_or_without_data_is_refused() {
    let folder = Folder::new();
    fs::create_dir(folder.path("data")).unwrap();
    for command in [&["ls"][..], &["show", "00000000"], &["gc", "--yes"]] {
        assert_eq!(folder.snapshot(command).code(), "unreadable-input");
    }
    let data = folder.data();
    let rows = covel(&["data", "--data", &data, "--session", "s", "--json"]);
    assert_eq!(rows.code(), "unreadable-input");
    let left = fs::read_dir(folder.path("data")).unwrap().count();
    assert_eq!(left, 0, "looking makes no store");

    let plan = folder.turn("s");
    let _open = Store::open(folder.path("data"), StoreOptions::default()).unwrap();
    for command in [&["ls"][..], &["show", &plan], &["gc"], &["gc", "--yes"]] {
        assert_eq!(folder.snapshot(command).code(), "store-locked");
    }
    let rows = covel(&["data", "--data", &data, "--session", "s", "--json"]);
    assert_eq!(rows.code(), "store-locked");
}

#[test]
fn a_session_is_noted_and_forked_from_there() {
    let folder = Folder::new();
    folder.turn("s");
    let noted = folder.snapshot(&["create", "s"]);
    assert_eq!(noted.status, 0, "{}{}", noted.out, noted.err);
    let noted = noted.json();
    assert_eq!((&noted["kind"], &noted["completedPlayerTurns"]), (&json!("manual"), &json!(1)));
    folder.turn("s");
    let forked = folder.snapshot(&["fork", "s", "--from", noted["id"].as_str().unwrap(), "--id", "f"]).json();
    assert_eq!((&forked["sessionId"], &forked["completedPlayerTurns"]), (&json!("f"), &json!(1)));
    let now = folder.snapshot(&["fork", "s"]).json();
    assert_eq!(now["completedPlayerTurns"], 2);
    let after = folder.snapshot(&["fork", "s", "--turn", noted["turnId"].as_str().unwrap()]).json();
    assert_eq!(after["completedPlayerTurns"], 1);
    for (command, code) in [
        (&["create", "nobody"][..], "session-not-found"),
        (&["fork", "s", "--from", "none"], "snapshot-not-found"),
        (&["fork", "s", "--turn", "none"], "turn-not-found"),
        (&["fork", "s", "--id", "f"], "session-already-exists"),
    ] {
        assert_eq!(folder.snapshot(command).code(), code, "{command:?}");
    }
    // The fork plays on by itself.
    folder.turn("f");
}
