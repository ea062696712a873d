//! A host that answers from memory, and shorthand for loading packages from text.
#![allow(dead_code, unused_imports, reason = "each test file uses its part")]
#![allow(clippy::unwrap_used)]

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use covel_abi::{
    CallContext, CallError, CallHost, CallLimits, CallRequest, CallTarget, DataRow, Declared, Generation,
    GenerationSpec, HostError, HostRequest, JsHost, JsOptions, LoadError, LogLevel,
};
use covel_graph::Json;
use futures_util::future::{BoxFuture, FutureExt};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// Answers from memory.
#[derive(Default)]
pub(crate) struct FakeHost {
    pub(crate) data: Mutex<BTreeMap<(String, String), Json>>,
    pub(crate) logs: Mutex<Vec<String>>,
    pub(crate) world_reads: Mutex<Vec<String>>,
    /// What clock and chance say, when they are given.
    pub(crate) given: Option<u8>,
}

impl CallHost for FakeHost {
    fn data_get(&self, namespace: &str, key: &str) -> Result<Option<Json>, HostError> {
        Ok(self.data.lock().unwrap().get(&(namespace.into(), key.into())).cloned())
    }
    fn data_list(&self, namespace: &str) -> Result<Vec<DataRow>, HostError> {
        let data = self.data.lock().unwrap();
        Ok(data
            .iter()
            .filter(|((n, _), _)| n == namespace)
            .map(|((_, key), value)| DataRow {
                key: key.clone(),
                value: value.clone(),
                created_at: "c".into(),
                updated_at: "u".into(),
            })
            .collect())
    }
    fn data_set(&self, namespace: &str, key: &str, value: Json) -> Result<(), HostError> {
        self.data.lock().unwrap().insert((namespace.into(), key.into()), value);
        Ok(())
    }
    fn data_delete(&self, namespace: &str, key: &str) -> Result<(), HostError> {
        self.data.lock().unwrap().remove(&(namespace.into(), key.into()));
        Ok(())
    }
    fn data_update(&self, namespace: &str, key: &str, ops: Json) -> Result<(), HostError> {
        self.data.lock().unwrap().insert((namespace.into(), key.into()), ops);
        Ok(())
    }
    fn random_int(&self, min: i64, max: i64) -> Result<i64, HostError> {
        if min < max {
            Ok(min)
        } else {
            Err(HostError { name: "RangeError", code: "invalid-input".into(), message: "min < max".into() })
        }
    }
    fn now_millis(&self) -> Option<u64> {
        self.given.map(|given| 1_000 + u64::from(given))
    }
    fn monotonic_micros(&self) -> Option<u64> {
        self.given.map(|given| 500 * u64::from(given))
    }
    fn random_unit(&self) -> Option<f64> {
        self.given.map(|given| 1.0 / f64::from(given))
    }
    fn random_bytes(&self, bytes: &mut [u8]) -> bool {
        self.given.inspect(|given| bytes.fill(*given)).is_some()
    }
    fn world(&self, part: &str) -> Result<Json, HostError> {
        self.world_reads.lock().unwrap().push(part.into());
        Ok(json!([{ "part": part }]).into())
    }
    fn store(&self, method: &str, argument: &Json) -> Result<Json, HostError> {
        Ok(json!({ "method": method, "argument": argument }).into())
    }
    fn log(&self, level: LogLevel, message: &str, meta: Option<&Json>) {
        let meta = meta.map(|m| format!(" {}", m.text())).unwrap_or_default();
        self.logs.lock().unwrap().push(format!("{level:?} {message}{meta}"));
    }
    fn request(&self, request: HostRequest) -> BoxFuture<'static, Result<Json, HostError>> {
        if let HostRequest::ServiceCall { request, settlement, .. } = &request
            && request.value()["contract"] == "kept@1"
        {
            assert!(settlement.keep());
        }
        async move {
            match request {
                HostRequest::ToolCall { name, .. } if name == "never" => std::future::pending().await,
                HostRequest::ToolCall { name, .. } if name == "fails" => {
                    Err(HostError { name: "ToolError", code: "EXECUTION_ERROR".into(), message: "no luck".into() })
                }
                HostRequest::ToolCall { name, arguments } => {
                    tokio::task::yield_now().await;
                    Ok(json!({ "tool": name, "arguments": arguments }).into())
                }
                HostRequest::GenerateText { options } | HostRequest::GenerateObject { options } => {
                    Ok(json!({ "options": options }).into())
                }
                HostRequest::ServiceCall { request, .. } if request.value()["contract"] == "never@1" => {
                    std::future::pending().await
                }
                // Its answer counts before anybody can give it up, and comes later.
                HostRequest::ServiceCall { request, .. } if request.value()["contract"] == "kept@1" => {
                    for _ in 0..50 {
                        tokio::task::yield_now().await;
                    }
                    Ok(json!("kept").into())
                }
                HostRequest::ServiceCall { request, timeout_ms, .. } => {
                    Ok(json!({ "request": request, "timeoutMs": timeout_ms }).into())
                }
            }
        }
        .boxed()
    }
}

/// A host with small limits.
pub(crate) fn host() -> JsHost {
    host_with(JsOptions { workers: 1, ..JsOptions::default() })
}

pub(crate) fn host_with(options: JsOptions) -> JsHost {
    JsHost::start(options).unwrap()
}

pub(crate) fn spec(plugin: &str, files: &[(&str, &str)]) -> GenerationSpec {
    let files: BTreeMap<String, Arc<[u8]>> =
        files.iter().map(|(p, t)| ((*p).to_owned(), Arc::from(t.as_bytes()))).collect();
    GenerationSpec::new(plugin.into(), 1, Arc::new(move |path: &str| files.get(path).cloned()))
}

pub(crate) async fn load(host: &JsHost, plugin: &str, files: &[(&str, &str)]) -> Generation {
    host.load(spec(plugin, files)).await.unwrap()
}

/// Loads a package whose entry is `entry.js`.
pub(crate) async fn load_entry(
    host: &JsHost,
    declared: Declared,
    files: &[(&str, &str)],
) -> Result<Generation, LoadError> {
    host.load(GenerationSpec { entry: Some("entry.js".into()), declared, ..spec("p", files) }).await
}

pub(crate) fn request(generation: &Generation, target: CallTarget) -> CallRequest {
    CallRequest {
        generation: generation.clone(),
        target,
        context: CallContext { writable: true, effects: true, ..CallContext::default() },
        host: Arc::new(FakeHost::default()),
        limits: CallLimits { timeout: Duration::from_secs(5), max_output_bytes: 100_000 },
        cancel: CancellationToken::new(),
    }
}

pub(crate) fn handler(module: &str) -> CallTarget {
    CallTarget::Handler { module: module.into() }
}

pub(crate) async fn run(host: &JsHost, request: CallRequest) -> Result<Value, CallError> {
    host.call(request).await.map(|output| output.value.value().clone())
}

/// Runs `code` as the body of an async handler.
pub(crate) async fn eval(code: &str) -> Result<Value, CallError> {
    let host = host();
    let generation =
        load(&host, "p", &[("h.js", &format!("export default async function handler(ctx) {{ {code} }}"))]).await;
    run(&host, request(&generation, handler("h.js"))).await
}
