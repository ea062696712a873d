//! The services of a plan, looked up by contract. Built once a plan, never changed: an execution sees one set.

use std::{collections::HashMap, sync::Arc};

use super::native::NativeService;
use crate::active::LoadedPackage;

/// One registered service.
pub(crate) struct ServiceRow {
    /// Index of the providing package in the plan.
    pub(crate) plugin: u32,
    /// The providing package.
    pub(crate) plugin_id: String,
    /// Name inside it.
    pub(crate) name: Arc<str>,
    /// Contract.
    pub(crate) contract: String,
    /// What it does, for people and models.
    pub(crate) description: Option<String>,
    /// Does it stage writes?
    pub(crate) write: bool,
    /// May models import it?
    pub(crate) model_facing: bool,
    /// Its code, when written in Rust.
    pub(crate) native: Option<Arc<dyn NativeService>>,
}

/// All services of a plan, by package id and name.
#[derive(Default)]
pub(crate) struct ServiceTable {
    rows: Vec<Arc<ServiceRow>>,
    by_contract: HashMap<String, Vec<u32>>,
}

impl ServiceTable {
    /// Gathers what the packages of a plan registered. Packages without active code have none. SVC-4
    pub(crate) fn new(packages: &[Arc<LoadedPackage>]) -> Self {
        let mut rows = Vec::new();
        for (plugin, package) in packages.iter().enumerate() {
            let plugin = u32::try_from(plugin).unwrap_or(u32::MAX);
            let registered =
                package.generation.as_ref().map(|code| &*code.registrations().services).unwrap_or_default();
            rows.extend(registered.iter().map(|service| ServiceRow {
                plugin,
                plugin_id: package.id().to_owned(),
                name: service.name.as_str().into(),
                contract: service.contract.clone(),
                description: service.description.clone(),
                write: service.write,
                model_facing: service.model_facing,
                native: None,
            }));
            let native = package.native.iter().flat_map(|native| &native.services);
            rows.extend(native.map(|service| ServiceRow {
                plugin,
                plugin_id: package.id().to_owned(),
                name: service.name.as_str().into(),
                contract: service.contract.clone(),
                description: service.description.clone(),
                write: service.write,
                model_facing: false,
                native: Some(Arc::clone(&service.handler)),
            }));
        }
        rows.sort_by(|a, b| (&a.plugin_id, &a.name).cmp(&(&b.plugin_id, &b.name)));
        let rows: Vec<Arc<ServiceRow>> = rows.into_iter().map(Arc::new).collect();
        let mut by_contract: HashMap<String, Vec<u32>> = HashMap::new();
        for (at, row) in rows.iter().zip(0_u32..).map(|(row, at)| (at, row)) {
            by_contract.entry(row.contract.clone()).or_default().push(at);
        }
        Self { rows, by_contract }
    }

    /// Services of a contract, by package id and name.
    pub(crate) fn of_contract<'a>(&'a self, contract: &str) -> impl Iterator<Item = &'a Arc<ServiceRow>> {
        self.by_contract.get(contract).into_iter().flatten().map(|at| &self.rows[*at as usize])
    }
}
