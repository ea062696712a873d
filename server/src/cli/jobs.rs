//! `covel jobs`: the background jobs of a session.

use std::sync::Arc;

use covel_exec::{Engine, EngineOptions, JobDocument};
use covel_gateway::offline::OfflineGateway;

use super::{DONE, Streams, args::JobsArgs, runtime};
use crate::{error::ServerError, snapshots::require_store};

pub(super) fn run(arguments: &JobsArgs, streams: &mut Streams<'_>) -> Result<u8, ServerError> {
    // Opening would make a store; reading must not.
    require_store(&arguments.data)?;
    let jobs = runtime()?.block_on(async {
        let mut options = EngineOptions::new(&arguments.data, Arc::new(OfflineGateway::new(Vec::new())));
        options.job_workers = 0;
        let engine = Engine::open(options)?;
        let jobs = engine.jobs(&arguments.session);
        engine.close().await;
        jobs
    })?;
    if arguments.json {
        streams.document(&jobs)?;
    } else {
        for job in &jobs {
            streams.print(&line(job));
        }
    }
    Ok(DONE)
}

/// One job, one line.
pub(super) fn line(job: &JobDocument) -> String {
    let mut text = format!(
        "{} {} {} by {} since {}",
        job.job_id,
        job.runtime_id,
        job.status.as_str(),
        job.origin.activation.as_str(),
        job.updated_at
    );
    if let Some(reason) = &job.reason {
        text.push_str(&format!("  {reason}"));
    }
    if let Some(error) = &job.error {
        text.push_str(&format!("  [{}] {}", error.code, error.message));
    }
    text.push('\n');
    text
}
