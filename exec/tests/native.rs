//! Runtimes in Rust, beside JavaScript ones.
#![allow(clippy::unwrap_used)]

mod support;

use std::{
    path::PathBuf,
    process::Command,
    sync::{Arc, Barrier},
};

use covel_exec::{NativeContext, NativeOutput, NativePackage, NativeRuntime, RuntimeStatus};
use covel_graph::{Stage, fragment::InputDecl};
use serde_json::json;
use support::{error_code, row, stage};

/// Meets its sibling: returns only when both run at the same time.
struct Meets(Arc<Barrier>);

impl NativeRuntime for Meets {
    fn run(&self, _: &NativeContext<'_>) -> Result<NativeOutput, String> {
        self.0.wait();
        Ok(NativeOutput::value(json!("met")))
    }
    fn is_heavy(&self) -> bool {
        true
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn heavy_runtimes_of_a_layer_run_at_the_same_time() {
    let barrier = Arc::new(Barrier::new(2));
    let pair = NativePackage::new("pair").runtime("left", Stage::PreTurn, Meets(Arc::clone(&barrier))).runtime(
        "right",
        Stage::PreTurn,
        Meets(barrier),
    );
    let stage = stage(Vec::new(), json!([])).await;
    stage.engine.publish_native(pair).await.unwrap();
    let session = stage.session().await;
    let turn = stage.turn(&session, "go").await;
    assert!(turn.committed);
    assert!(turn.runtimes.iter().all(|row| row.status == RuntimeStatus::Success && row.layer == 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn native_runtimes_bind_inputs_follow_events_and_fail_alone() {
    let source = NativePackage::new("source")
        .event("source.made", &json!({"type": "object", "required": ["n"]}))
        .runtime("make", Stage::PreTurn, |_: &NativeContext<'_>| {
            let mut output = NativeOutput::value(json!({"n": 4}));
            output.events.push(("source.made".into(), json!({"n": 4}).into()));
            Ok(output)
        })
        .provides("source.n@1")
        .runtime("broken", Stage::PreTurn, |_: &NativeContext<'_>| Err("no luck".to_owned()))
        .runtime("panics", Stage::PreTurn, |_: &NativeContext<'_>| panic!("a fault of the embedder"))
        .runtime("wrong", Stage::PreTurn, |_: &NativeContext<'_>| {
            let mut output = NativeOutput::default();
            output.events.push(("source.made".into(), json!({}).into()));
            Ok(output)
        });
    let sink = NativePackage::new("sink")
        .runtime("read", Stage::PostTurn, |ctx: &NativeContext<'_>| {
            let n = ctx.input("n").map(|slot| slot.value()["value"].clone());
            ctx.set("seen", "n", json!({"n": n}).into()).map_err(|error| error.message)?;
            Ok(NativeOutput::value(json!({"drawn": ctx.random_int(0, 6).map_err(|e| e.message)?})))
        })
        .input(InputDecl {
            name: "n".into(),
            contract: Some("source.n@1".into()),
            select: Some("/n".into()),
            required: true,
            ..InputDecl::default()
        })
        .follower("follow", "source.made", |ctx: &NativeContext<'_>| {
            let (topic, data) = ctx.trigger_event().ok_or("no event")?;
            Ok(NativeOutput::value(
                json!({"topic": topic, "data": data, "seen": ctx.get("seen", "n").map_err(|e| e.message)?}),
            ))
        });
    let stage = stage(Vec::new(), json!([])).await;
    stage.engine.publish_native(source).await.unwrap();
    stage.engine.publish_native(sink).await.unwrap();
    let session = stage.session().await;
    let turn = stage.turn(&session, "go").await;
    assert!(turn.committed, "{turn:#?}");
    assert_eq!(error_code(row(&turn, "source/broken")), "handler-failed");
    assert_eq!(error_code(row(&turn, "source/panics")), "handler-panicked");
    assert_eq!(error_code(row(&turn, "source/wrong")), "event-payload-invalid");
    assert_eq!(row(&turn, "sink/read").reads_from, ["source/make"]);
    let follow = row(&turn, "sink/follow");
    assert_eq!(
        *follow.output.as_ref().unwrap().value(),
        json!({"topic": "source.made", "data": {"n": 4}, "seen": {"n": 4}})
    );
    assert_eq!(follow.reads_from, ["sink/read", "source/make"]);
    assert_eq!(turn.events.len(), 1);
    assert!(stage.engine.publish_native(NativePackage::new("Not An Id")).await.is_err());
}

#[test]
fn the_embedding_example_runs_and_prints_a_committed_turn() {
    // Test programs are in target/<profile>/deps, examples beside it.
    let example = std::env::current_exe().unwrap().parent().unwrap().join("../examples/embed");
    assert!(example.exists(), "run `cargo test -p covel-exec`, which builds the examples too");
    let weather = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../plugins/world-init");
    let output = Command::new(example).arg(weather).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let turn: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(turn["committed"], json!(true), "{turn:#}");
    let ids: Vec<&str> =
        turn["runtimes"].as_array().unwrap().iter().map(|row| row["runtimeId"].as_str().unwrap()).collect();
    assert_eq!(ids, ["word-count/count"]);
    assert_eq!(turn["setup"]["runtimes"][0]["status"], json!("success"));
}
