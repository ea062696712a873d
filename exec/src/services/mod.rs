//! Services between packages: a package registers a function, others find it by contract and call it.
//!
//! - [`table`]: which services a plan has, frozen with it.
//! - [`client`]: `discover` and `call`: who may call what, chains, queues, time limits.
//! - [`run`]: one call: the provider's code, its answer, what it stages.
//! - [`host`]: what may be asked on behalf of whom.
//! - [`operation`]: what write services stage, and the records of it.
//! - [`native`]: services written in Rust. [`trace`]: what a trace keeps of calls.
//!
//! What a provider reads goes through its caller (`call_host/provider.rs`), so that dependencies are the caller's and
//! the cascade at commit voids exactly what hangs on something lost. Not here: what a provider's context looks like
//! (`view_host.rs`), the commit of operations (`commit.rs`).

pub(crate) mod client;
mod host;
pub mod native;
pub mod operation;
mod run;
pub(crate) mod table;
pub mod trace;

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use covel_abi::{CallError, HostError};
use covel_graph::package::Discovery;
use parking_lot::Mutex;

pub(crate) use client::Client;
pub(crate) use host::{ToolHost, serve_guard};

use crate::{active::LoadedPackage, engine::Inner, session::SessionRecord, tools::ToolFailure};

/// An error of the service layer itself. Codes: `invalid-input invalid-output unavailable refused cycle depth closed
/// provider-error`; a provider's `conflict` keeps its own name.
pub(crate) fn error(code: &str, message: impl Into<String>) -> HostError {
    HostError { name: "ServiceError", code: code.to_owned(), message: message.into() }
}

/// How an error of a service looks to a model whose tool did not handle it; none for other errors. TOL-4, WSV-14
pub(crate) fn tool_failure(fault: &CallError) -> Option<ToolFailure> {
    let CallError::Thrown { name, code, message, .. } = fault else { return None };
    let code = match (name.as_str(), code.as_deref()) {
        ("TimeoutError", Some("timeout")) => "timeout",
        ("AbortError", Some("cancelled")) => "CANCELLED",
        // Unchanged, and marked: the provider looked at it and said no.
        ("ToolError", Some("conflict")) => "conflict",
        ("ServiceError", Some(code)) => CODES.into_iter().find(|known| *known == code)?,
        _ => return None,
    };
    Some(ToolFailure { code, message: message.clone(), details: None })
}

/// Codes of the service layer.
const CODES: [&str; 8] =
    ["invalid-input", "invalid-output", "unavailable", "refused", "cycle", "depth", "closed", "provider-error"];

/// Which community code a session lets run, asked at every call: a grant may be taken back while an execution runs.
/// SVC-8
#[derive(Clone, Default)]
pub(crate) struct Grants(Option<Live>);

#[derive(Clone)]
struct Live {
    approvals: Arc<Mutex<HashMap<String, HashSet<String>>>>,
    incarnation: String,
}

impl Grants {
    /// May the code of this package run now?
    pub(crate) fn allow(&self, package: &LoadedPackage) -> bool {
        let Some(live) = &self.0 else { return true };
        package.package.discovery != Discovery::Community
            || !package.package.has_server_code()
            || live.approvals.lock().get(&live.incarnation).is_some_and(|granted| granted.contains(package.id()))
    }
}

impl Inner {
    /// The grants of a session. A replay repeats what was allowed when it was recorded.
    pub(crate) fn grants(&self, session: &SessionRecord) -> Grants {
        let live = || Live { approvals: Arc::clone(&self.approvals), incarnation: session.incarnation.clone() };
        Grants(self.played.is_none().then(live))
    }
}
