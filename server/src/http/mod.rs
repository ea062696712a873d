//! The HTTP surface: routes, request checks, event streams, the page.
//!
//! Handlers translate; what a turn does is the engine's business. Every refusal is `{error, code, details?}` with a
//! snake_case code, and one table ([`error`]) says which status belongs to which engine error.

mod actions;
mod emitter;
pub mod error;
mod extract;
mod flow;
mod guard;
mod jobs;
mod model;
mod page;
mod plugins;
mod sessions;
mod spec_text;
mod stream;
mod traces;
mod worlds;

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use axum::{
    Router,
    extract::DefaultBodyLimit,
    middleware,
    routing::{delete, get, post},
};
use covel_exec::{Ambient, Engine, iso_time};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::{
    bus::{Bus, BusLimits},
    limits,
    running::Running,
};
pub use error::ApiError;
pub use guard::AllowedHosts;
pub use page::Page;

/// What all handlers share.
#[derive(Clone)]
pub struct AppState(Arc<Shared>);

/// See [`AppState`].
pub struct Shared {
    /// The engine.
    pub engine: Engine,
    /// Kept session events.
    pub bus: Arc<Bus>,
    /// Running actions.
    pub running: Arc<Running>,
    /// Time and fresh ids.
    pub ambient: Arc<dyn Ambient>,
    /// Names under which this server may be asked.
    pub hosts: AllowedHosts,
    /// The page.
    pub page: Page,
    /// New in every process.
    pub boot_id: String,
    /// Short name of the model gateway.
    pub gateway: String,
    /// Packages that could not be compiled.
    pub broken: Vec<BrokenPackage>,
    closing: AtomicBool,
    streams: CancellationToken,
}

/// A package that is shown but cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokenPackage {
    /// Its id, or its folder's name when the id could not be read.
    pub id: String,
    /// Found in a community folder?
    pub community: bool,
    /// The first thing wrong.
    pub error: String,
}

impl std::ops::Deref for AppState {
    type Target = Shared;
    fn deref(&self) -> &Shared {
        &self.0
    }
}

impl AppState {
    /// State around an engine.
    pub fn new(
        engine: Engine,
        ambient: Arc<dyn Ambient>,
        hosts: AllowedHosts,
        page: Page,
        broken: Vec<BrokenPackage>,
    ) -> Self {
        let gateway = engine.gateway().name().to_owned();
        let boot_id = format!("{:032x}", ambient.fresh_bits());
        let bus = Bus::new(boot_id.chars().take(12).collect::<String>(), BusLimits::default());
        Self(Arc::new(Shared {
            engine,
            bus,
            running: Arc::default(),
            ambient,
            hosts,
            page,
            boot_id,
            gateway,
            broken,
            closing: AtomicBool::new(false),
            streams: CancellationToken::new(),
        }))
    }
}

impl Shared {
    /// Now, as ISO text.
    pub fn now(&self) -> String {
        iso_time(self.ambient.now_millis())
    }

    /// A fresh id: 32 hex digits.
    pub fn fresh_id(&self) -> String {
        format!("{:032x}", self.ambient.fresh_bits())
    }

    /// Is the server stopping?
    pub fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Acquire)
    }

    /// Stops: new requests are refused, event streams end, running turns get [`limits::DRAIN_TIMEOUT`] and are then
    /// cancelled, the engine closes. Answers whether every turn ended by itself.
    pub async fn close(&self) -> bool {
        self.closing.store(true, Ordering::Release);
        self.streams.cancel();
        let drained = self.running.idle_within(limits::DRAIN_TIMEOUT).await;
        if !drained {
            self.running.cancel_all();
            self.running.idle_within(limits::CLOSE_TIMEOUT).await;
        }
        // A turn that neither ends nor heeds its cancellation must not keep the process; what it acknowledged is stored.
        if tokio::time::timeout(limits::CLOSE_TIMEOUT, self.engine.close()).await.is_err() {
            tracing::warn!("the engine did not close in time");
        }
        drained
    }
}

/// Puts what background jobs tell on the event streams, until the server stops.
pub async fn forward_jobs(state: AppState) {
    emitter::forward_jobs(state).await;
}

/// All routes.
pub fn router(state: AppState) -> Router {
    let api = Router::new()
        .route("/health", get(health))
        .route("/worlds", get(worlds::list))
        .route("/worlds/{world}", get(worlds::one))
        .route("/plugins", get(plugins::list))
        .route("/plugins/{plugin}", get(plugins::one))
        .route("/ui-specs", get(plugins::ui_specs))
        .route("/sessions", get(sessions::list).post(sessions::create))
        .route("/sessions/{session}", get(sessions::one).patch(sessions::change).delete(sessions::remove))
        .route("/sessions/{session}/messages", get(sessions::messages))
        .route("/sessions/{session}/turns", get(sessions::turns))
        .route("/sessions/{session}/plan", get(sessions::plan))
        .route("/sessions/{session}/plugins", get(plugins::of_session))
        .route("/sessions/{session}/execution", get(sessions::execution))
        .route("/sessions/{session}/abort", post(sessions::abort))
        .route("/sessions/{session}/steer", post(flow::steer))
        .route("/sessions/{session}/suspensions", get(flow::suspensions))
        .route("/sessions/{session}/suspensions/{suspension}", delete(flow::discard))
        .route("/sessions/{session}/suspensions/{suspension}/resume", post(flow::resume))
        .route("/sessions/{session}/setup/{runtime}/retry", post(flow::retry_setup))
        .route("/sessions/{session}/setup/{runtime}/waive", post(flow::waive_setup))
        .route("/sessions/{session}/snapshots", get(flow::snapshots).post(flow::create_snapshot))
        .route("/sessions/{session}/fork", post(flow::fork))
        .route("/sessions/{session}/runtime-jobs", get(jobs::list))
        .route("/sessions/{session}/runtime-jobs/{job}", get(jobs::one))
        .route("/sessions/{session}/runtime-jobs/{job}/cancel", post(jobs::cancel))
        .route("/sessions/{session}/runtime-jobs/{job}/retry", post(jobs::retry))
        .route("/sessions/{session}/plugin-data", get(sessions::data))
        .route("/sessions/{session}/plugin-data/{plugin}", get(sessions::data_of_plugin))
        .route("/sessions/{session}/plugin-data/{plugin}/{namespace}", get(sessions::data_of_namespace))
        .route("/sessions/{session}/plugin-data/{plugin}/{namespace}/{key}", get(sessions::data_record))
        .route("/sessions/{session}/state", get(model::tables))
        .route("/sessions/{session}/characters", get(model::characters).post(model::put_character))
        .route("/sessions/{session}/character-schema", get(model::character_schema))
        .route("/sessions/{session}/lorebook", get(model::lorebook))
        .route(
            "/sessions/{session}/lorebook/{entry}",
            axum::routing::put(model::put_lore_entry).delete(model::delete_lore_entry),
        )
        .route("/sessions/{session}/dimensions", get(model::dimensions))
        .route("/sessions/{session}/seats", get(model::seats))
        .route("/sessions/{session}/seats/{seat}", axum::routing::put(model::switch_seat))
        .route("/traces/{session}/turns", get(traces::turns))
        .route("/traces/{session}/turns/{turn}", get(traces::one))
        .route("/actions", post(actions::act))
        .route("/events/stream", get(stream::events))
        .fallback(unknown_route)
        .method_not_allowed_fallback(unknown_method);
    Router::new()
        .nest("/api", api)
        .fallback(page::serve)
        .layer(DefaultBodyLimit::max(limits::MAX_BODY_BYTES))
        .layer(middleware::from_fn_with_state(state.clone(), guard::check))
        .with_state(state)
}

async fn health(axum::extract::State(state): axum::extract::State<AppState>) -> axum::response::Response {
    extract::ok(&json!({
        "status": if state.is_closing() { "stopping" } else { "ok" },
        "version": env!("CARGO_PKG_VERSION"),
        "bootId": state.boot_id,
        "operatorTokenRequired": false,
        "models": state.gateway,
        "storage": { "data": { "backend": "lmdb", "durable": true, "frontendMode": "remote" } },
    }))
}

async fn unknown_route(uri: axum::http::Uri) -> ApiError {
    ApiError::new(axum::http::StatusCode::NOT_FOUND, "route_not_found", format!("there is no route {}", uri.path()))
}

async fn unknown_method(method: axum::http::Method, uri: axum::http::Uri) -> ApiError {
    ApiError::new(
        axum::http::StatusCode::METHOD_NOT_ALLOWED,
        "method_not_allowed",
        format!("{} does not take {method}", uri.path()),
    )
}
