//! Log lines: to standard error, and those of plugins also to a list that cases read.

use std::{
    fmt::{self, Write},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use parking_lot::Mutex;
use serde::Serialize;
use tracing::{
    Event, Subscriber,
    field::{Field, Visit},
};
use tracing_subscriber::{
    EnvFilter, Layer,
    filter::{LevelFilter, Targets},
    layer::{Context, SubscriberExt},
    util::SubscriberInitExt,
};

use crate::limits;

/// Environment variable with the filter of standard error.
const VARIABLE: &str = "COVEL_LOG";
/// Target of what plugin code logs.
const PLUGIN_TARGET: &str = "covel::plugin";

/// A line a plugin logged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LogLine {
    /// `debug info warn error`.
    pub level: String,
    /// Text.
    pub message: String,
}

#[derive(Default)]
struct Kept {
    on: AtomicBool,
    lines: Mutex<Vec<LogLine>>,
}

/// Lines that plugins logged while keeping was on.
#[derive(Clone, Default)]
pub struct Logs(Arc<Kept>);

impl Logs {
    /// Keeps lines from now on, beginning with none.
    pub fn keep(&self) {
        self.0.lines.lock().clear();
        self.0.on.store(true, Ordering::Release);
    }

    /// The lines kept so far; the list is empty afterwards.
    pub fn take(&self) -> Vec<LogLine> {
        std::mem::take(&mut self.0.lines.lock())
    }
}

impl<S: Subscriber> Layer<S> for Logs {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        if !self.0.on.load(Ordering::Acquire) {
            return;
        }
        let mut text = Text::default();
        event.record(&mut text);
        let mut lines = self.0.lines.lock();
        if lines.len() < limits::MAX_CASE_LOGS {
            lines.push(LogLine { level: event.metadata().level().to_string().to_lowercase(), message: text.0 });
        }
    }
}

#[derive(Default)]
struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            // Writing to a string does not fail.
            let _ = write!(self.0, "{value:?}");
        }
    }
}

/// Starts logging for this process: warnings to standard error unless `COVEL_LOG` says otherwise. A second start
/// changes nothing.
pub fn start() -> Logs {
    let logs = Logs::default();
    let filter =
        EnvFilter::builder().with_default_directive(LevelFilter::WARN.into()).with_env_var(VARIABLE).from_env_lossy();
    let stderr = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_ansi(false).with_filter(filter);
    let kept = logs.clone().with_filter(Targets::new().with_target(PLUGIN_TARGET, LevelFilter::TRACE));
    let _ = tracing_subscriber::registry().with(stderr).with(kept).try_init();
    logs
}
