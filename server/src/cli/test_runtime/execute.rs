//! One case: an engine on an empty temporary store, one execution, then the checks.

use std::{collections::BTreeMap, sync::Arc};

use covel_exec::{
    DataFilter, Engine, EngineOptions, ExecError, ExecutionKind, ExecutionRequest, NewSession, ScriptedGateway,
    ScriptedReply, TurnDocument,
};
use covel_graph::Json;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{Bench, CaseReport, check};
use crate::{
    cli::{cases::Case, logging::Logs},
    error::ServerError,
};

/// Seed of every case, so that its dice fall the same way each time.
const SEED: &str = "covel-test-runtime";

pub(super) async fn run(bench: &Bench<'_>, case: &Case, logs: &Logs) -> Result<CaseReport, ServerError> {
    let folder = tempfile::tempdir()
        .map_err(|error| ServerError::Unwritable { path: std::env::temp_dir(), message: error.to_string() })?;
    let mut options = EngineOptions::new(folder.path(), Arc::new(ScriptedGateway::new(replies(case)?)));
    options.durable = false;
    let engine = Engine::open(options)?;
    logs.keep();
    let result = with_engine(&engine, bench, case).await;
    engine.close().await;
    let logs = logs.take();
    let (turn, plugin_data) = match result {
        Ok(played) => played,
        // The case asks for what the engine refuses (a setting out of range): that is the case's fault alone.
        Err(ServerError::Exec(error @ ExecError::Invalid { .. })) => {
            return Ok(CaseReport {
                name: case.name.clone(),
                ok: false,
                failures: vec![error.to_string()],
                commit_status: "failed",
                commit_error: None,
                turn: None,
                plugin_data: Vec::new(),
                logs,
            });
        }
        Err(error) => return Err(error),
    };
    let failures = check::failures(case, &bench.plugin_id, &turn, &plugin_data, &logs);
    Ok(CaseReport {
        name: case.name.clone(),
        ok: failures.is_empty(),
        failures,
        commit_status: if turn.committed { "committed" } else { "failed" },
        commit_error: turn.error.as_ref().map(|error| format!("[{}] {}", error.code, error.message)),
        turn: Some(turn),
        plugin_data,
        logs,
    })
}

async fn with_engine(
    engine: &Engine,
    bench: &Bench<'_>,
    case: &Case,
) -> Result<(TurnDocument, Vec<Value>), ServerError> {
    let companions = case.with_plugins.as_ref().unwrap_or(&bench.companions);
    let tested = case.plugin_id.clone().unwrap_or_else(|| bench.plugin_id.clone());
    let mut plugins = vec![bench.plugin_id.clone()];
    plugins.extend(companions.iter().filter(|id| **id != bench.plugin_id).cloned());
    let packages = bench.loaded.packages().into_iter().filter(|package| plugins.iter().any(|id| id == package.id()));
    for state in engine.publish(packages.collect()).await {
        if let Some(error) = state.error {
            return Err(ExecError::Package { plugin: state.plugin_id, message: error }.into());
        }
    }
    let session = engine
        .create_session(NewSession {
            id: Some("case".to_owned()),
            plugins: Some(plugins),
            locale: case.locale.clone(),
            seed: Some(SEED.to_owned()),
            settings: BTreeMap::from([(tested.clone(), case.user_settings.clone())]),
            ..NewSession::default()
        })
        .await?;
    let request =
        |runtime: Option<&String>, message: &str, payload: Option<&Json>, ignore_upstreams| ExecutionRequest {
            session_id: session.id.clone(),
            kind: match runtime {
                Some(runtime) => ExecutionKind::Manual {
                    runtime_id: check::full_id(bench, &tested, runtime),
                    payload: payload.cloned().unwrap_or_else(|| Json::from_value(json!({}))),
                    message: message.to_owned(),
                    ignore_upstreams,
                },
                None => ExecutionKind::Player { message: message.to_owned() },
            },
            cancel: CancellationToken::new(),
            request_id: None,
        };
    for (at, step) in case.before.iter().enumerate() {
        let asked = request(step.runtime_id.as_ref(), &step.message, step.payload.as_ref(), case.ignore_upstreams);
        let turn = engine.execute(asked, None).await?;
        if let Some(error) = turn.error {
            return Err(ExecError::Invalid {
                field: format!("before[{at}]"),
                message: format!("was not committed: [{}] {}", error.code, error.message),
            }
            .into());
        }
    }
    let asked = request(case.runtime_id.as_ref(), &case.message, case.payload.as_ref(), case.ignore_upstreams);
    let turn = engine.execute(asked, None).await?;
    let filter = DataFilter { plugin: Some(tested.clone()), namespace: None, key: None, hidden: true };
    let records = engine.data(&session.id, filter)?;
    let rows = records
        .iter()
        .map(|record| json!({ "namespace": record.namespace, "key": record.key, "value": record.value, "version": record.version }))
        .collect();
    Ok((turn, rows))
}

/// The model's lines, whichever way the case gives them.
fn replies(case: &Case) -> Result<Vec<ScriptedReply>, ServerError> {
    if !case.llm_responses.is_empty() {
        return Ok(case.llm_responses.clone());
    }
    if let Some(reply) = &case.llm_response {
        return Ok(vec![reply.clone()]);
    }
    let text = match (&case.llm_content, &case.llm_object) {
        (Some(text), _) => text.clone(),
        (None, Some(object)) => object.text().to_owned(),
        (None, None) => "OK".to_owned(),
    };
    serde_json::from_value(json!([{ "content": text, "finishReason": "stop" }]))
        .map_err(|error| ServerError::Internal(error.to_string()))
}
