//! Setup beyond one execution: session needs, cycles, manual runs, blocks.
#![allow(clippy::unwrap_used)]

mod support;

use covel_exec::{ExecutionKind, ExecutionRequest, SetupState};
use covel_graph::package::Package;
use serde_json::json;
use std::sync::Arc;
use support::{package, row, stage};

const DONE: &str = "export default () => ({ outcome: 'success', completion: 'done' });";
const PENDING: &str = "export default () => ({ outcome: 'success', completion: 'pending' });";

/// A package of setup runtimes: name, needs, code.
fn steps(runtimes: &[(&str, &str, &str)]) -> Arc<Package> {
    let mut files =
        vec![("PLUGIN.md".to_owned(), "---\nid: steps\nkind: plugin\ndescription: Steps.\n---\n".to_owned())];
    for (name, needs, code) in runtimes {
        files.push((
            format!("runtimes/{name}/RUNTIME.md"),
            format!(
                "---\ntype: function\nschedule: {{ stage: setup, needs: [{needs}] }}\nfunction: {{ handler: ./h.js }}\n---\n"
            ),
        ));
        files.push((format!("runtimes/{name}/h.js"), (*code).to_owned()));
    }
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    package(&files)
}

fn start(session: &str) -> ExecutionRequest {
    ExecutionRequest { kind: ExecutionKind::Start, ..ExecutionRequest::player(session, "") }
}

fn manual(session: &str, runtime: &str) -> ExecutionRequest {
    ExecutionRequest {
        kind: ExecutionKind::Manual {
            runtime_id: runtime.into(),
            payload: json!({}).into(),
            message: String::new(),
            ignore_upstreams: false,
        },
        ..ExecutionRequest::player(session, "")
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_need_by_session_waits_until_the_other_is_really_done() {
    let stage = stage(
        vec![steps(&[
            ("slow", "", PENDING),
            ("by-session", "{ runtime: steps/slow, scope: session }", DONE),
            ("by-turn", "steps/slow", DONE),
        ])],
        json!([]),
    )
    .await;
    let session = stage.session().await;
    let turn = stage.turn(&session, "go").await;
    let setup = turn.setup.unwrap();
    assert_eq!(row(&setup, "steps/by-session").reason.as_deref(), Some("upstream-failed"));
    assert!(row(&setup, "steps/by-turn").reason.is_none(), "a success of this turn is enough for a need of this turn");
    let states = stage.engine.session(&session).unwrap().setup_runtimes;
    assert!(matches!(states["steps/by-session"], SetupState::Pending { attempts: 0, .. }), "{states:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn steps_that_need_each_other_by_session_are_blocked_and_the_others_run() {
    // Within one package such a cycle is refused when it is published; between packages nobody sees it before.
    let half = |id: &str, gives: &str, takes: &str| {
        let manifest = format!(
            "---\nid: {id}\nkind: plugin\ndescription: Half a cycle.\nprovides: [{gives}]\noptional: [{takes}]\nruntime:\n  type: function\n  schedule: {{ stage: setup, needs: [{{ contract: {takes}, scope: session }}] }}\n  io: {{ output: {{ contract: {gives} }} }}\n  function: {{ handler: ./h.js }}\n---\n"
        );
        package(&[("PLUGIN.md", &manifest), ("h.js", DONE)])
    };
    let stage = stage(
        vec![
            half("a", "made.by-a@1", "made.by-b@1"),
            half("b", "made.by-b@1", "made.by-a@1"),
            half("after-b", "made.after@1", "made.by-b@1"),
            steps(&[("first", "", DONE), ("second", "{ runtime: steps/first, scope: session }", DONE)]),
        ],
        json!([]),
    )
    .await;
    let session = stage.session().await;
    let turn = stage.engine.execute(start(&session), None).await.unwrap();
    assert!(turn.committed, "{turn:#?}");
    let states = stage.engine.session(&session).unwrap().setup_runtimes;
    for id in ["a", "b", "after-b"] {
        assert!(
            matches!(&states[id], SetupState::Blocked { reason, .. } if reason == "setup-session-cycle"),
            "{id}: {states:?}"
        );
    }
    for id in ["steps/first", "steps/second"] {
        assert!(matches!(states[id], SetupState::Done { .. }), "{id}: {states:?}");
    }
}

/// Covers: UIW-2
#[tokio::test(flavor = "multi_thread")]
async fn a_setup_step_run_by_name_is_done_for_the_session() {
    let form = "export default (ctx) => ({ outcome: 'success', completion: ctx.manualPayload && ctx.manualPayload.go ? 'done' : 'pending' });";
    let stage = stage(vec![steps(&[("form", "", form)])], json!([])).await;
    let session = stage.session().await;
    let first = stage.engine.execute(manual(&session, "steps/form"), None).await.unwrap();
    assert!(first.committed);
    assert!(!stage.engine.session(&session).unwrap().setup_runtimes.contains_key("steps/form"), "no attempt by name");
    let mut request = manual(&session, "steps/form");
    if let ExecutionKind::Manual { payload, .. } = &mut request.kind {
        *payload = json!({"go": true}).into();
    }
    assert!(stage.engine.execute(request, None).await.unwrap().committed);
    let record = stage.engine.session(&session).unwrap();
    assert!(matches!(record.setup_runtimes["steps/form"], SetupState::Done { .. }));
    assert_eq!(record.phase, covel_exec::Phase::Playing);
    assert_eq!(record.completed_player_turns, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_blocked_step_runs_again_only_after_it_was_asked_to() {
    let failing = "export default () => { throw new Error('not yet'); };";
    let stage = stage(vec![steps(&[("init", "", failing)])], json!([])).await;
    let session = stage.session().await;
    assert_eq!(stage.engine.retry_setup(&session, "steps/init").await.unwrap_err().code(), "setup-not-blocked");
    for _ in 0..3 {
        stage.turn(&session, "go").await;
    }
    assert!(stage.turn(&session, "go").await.setup.is_none(), "blocked: it is left alone");
    let record = stage.engine.retry_setup(&session, "steps/init").await.unwrap();
    assert!(matches!(record.setup_runtimes["steps/init"], SetupState::Pending { attempts: 0, .. }));
    // A session that plays sets up late, before the turn, and plays on.
    let turn = stage.turn(&session, "go").await;
    assert!(turn.committed && turn.setup.is_some(), "{turn:#?}");
    for _ in 0..2 {
        stage.turn(&session, "go").await;
    }
    stage.engine.waive_setup(&session, "steps/init").await.unwrap();
    assert!(stage.turn(&session, "go").await.setup.is_none());
    assert_eq!(stage.engine.waive_setup(&session, "steps/init").await.unwrap_err().code(), "setup-not-blocked");
}
