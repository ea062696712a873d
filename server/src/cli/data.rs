//! `covel data`: what packages have stored.

use std::sync::Arc;

use covel_exec::{DataFilter, Engine, EngineOptions};
use covel_gateway::offline::OfflineGateway;
use serde_json::{Value, json};

use super::{DONE, Streams, args::DataArgs, runtime};
use crate::{error::ServerError, snapshots::require_store};

pub(super) fn run(arguments: &DataArgs, streams: &mut Streams<'_>) -> Result<u8, ServerError> {
    // Opening would make a store; reading must not.
    require_store(&arguments.data)?;
    let records = runtime()?.block_on(async {
        let options = EngineOptions::new(&arguments.data, Arc::new(OfflineGateway::new(Vec::new())));
        let engine = Engine::open(options)?;
        let filter = DataFilter {
            plugin: arguments.plugin.clone(),
            namespace: arguments.namespace.clone(),
            key: None,
            hidden: arguments.hidden,
        };
        let records = engine.session(&arguments.session).and_then(|_| engine.data(&arguments.session, filter));
        engine.close().await;
        records
    })?;
    if arguments.json {
        let rows: Vec<Value> = records
            .iter()
            .map(|record| {
                json!({
                    "pluginId": record.plugin_id,
                    "namespace": record.namespace,
                    "key": record.key,
                    "value": record.value,
                    "version": record.version,
                })
            })
            .collect();
        streams.document(&rows)?;
    } else {
        for record in &records {
            streams.print(&format!(
                "{}/{}/{} v{} {}\n",
                record.plugin_id,
                record.namespace,
                record.key,
                record.version,
                record.value.text()
            ));
        }
    }
    Ok(DONE)
}
