//! Publishing packages: fragments into the store, code into isolates, both visible at once.

use std::{
    collections::BTreeMap,
    sync::{Arc, atomic::Ordering},
};

use covel_abi::{Declared, DeclaredService, GenerationSpec};
use covel_graph::{
    PluginId,
    archive::encode_fragment,
    fragment::{Fragment, ServiceAccess},
    package::{Discovery, Package, PackageFiles},
};

use crate::{
    active::LoadedPackage,
    engine::{Engine, Inner},
    error::ExecError,
    native::NativePackage,
};

/// What the host knows of a package. It never says anything about approval. STA-1
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackageState {
    /// Package.
    pub plugin_id: String,
    /// `discovered` (community code not yet activated), `loaded`, `error`.
    pub host_state: &'static str,
    /// Why its code is not there.
    pub error: Option<String>,
    /// Found in a community folder.
    pub community: bool,
}

/// A package and its state.
#[derive(Clone)]
pub struct PackageInfo {
    /// State.
    pub state: PackageState,
    /// Fragment and files.
    pub package: Arc<Package>,
}

impl Engine {
    /// Publishes packages. Built-in code is activated now, community code when a session approves it. A package that
    /// fails keeps its error; the others load. Publishing the same content again is free.
    pub async fn publish(&self, packages: Vec<Arc<Package>>) -> Vec<PackageState> {
        let mut states = Vec::with_capacity(packages.len());
        for package in packages {
            let id = package.id().to_owned();
            let current = self.0.packages.read().get(&id).cloned();
            if let Some(current) = current.filter(|c| c.package.digest == package.digest && c.error.is_none()) {
                states.push(state_of(&current));
                continue;
            }
            let mut loaded = LoadedPackage::new(Arc::clone(&package), self.0.next_epoch());
            if let Err(error) = archive(&self.0, &package).await {
                loaded.error = Some(error.to_string());
            } else if package.discovery == Discovery::Builtin {
                activate(&self.0, &mut loaded).await;
            }
            let loaded = Arc::new(loaded);
            states.push(state_of(&loaded));
            self.0.replace(loaded);
        }
        // Jobs of an earlier process may have waited for these.
        crate::jobs::pump(&self.0);
        states
    }

    /// Publishes a package of Rust runtimes.
    ///
    /// # Errors
    /// [`ExecError::Package`] when its id or a contract breaks the grammar.
    pub async fn publish_native(&self, native: NativePackage) -> Result<(), ExecError> {
        let fragment = native.fragment.clone();
        let refuse = |message: String| ExecError::Package { plugin: fragment.plugin_id.clone(), message };
        if !covel_graph::ids::is_package_id(&fragment.plugin_id) {
            return Err(refuse("a package id is a lowercase letter, then lowercase letters, digits, `-`".into()));
        }
        if let Some(bad) = fragment.provides.iter().find(|provide| !covel_graph::ids::is_contract_id(&provide.contract))
        {
            return Err(refuse(format!("{:?} is not a contract id", bad.contract)));
        }
        for (at, service) in native.services.iter().enumerate() {
            if !covel_graph::ids::is_contract_id(&service.contract) {
                return Err(refuse(format!("service {:?}: {:?} is not a contract id", service.name, service.contract)));
            }
            if native.services[..at].iter().any(|before| before.name == service.name) {
                return Err(refuse(format!("two services are named {:?}", service.name)));
            }
        }
        let bytes = encode_fragment(&fragment).map_err(|error| refuse(error.to_string()))?;
        let package = Package {
            fragment: Arc::new(fragment.clone()),
            digest: blake3::hash(&bytes).to_hex().to_string(),
            files: PackageFiles::default(),
            root: std::path::PathBuf::new(),
            discovery: Discovery::Builtin,
        };
        let mut loaded = LoadedPackage::new(Arc::new(package), self.0.next_epoch());
        loaded.native = Some(Arc::new(native));
        self.0.replace(Arc::new(loaded));
        crate::jobs::pump(&self.0);
        Ok(())
    }

    /// Published packages by id.
    pub fn packages(&self) -> Vec<PackageInfo> {
        let packages = self.0.packages.read();
        packages
            .values()
            .map(|loaded| PackageInfo { state: state_of(loaded), package: Arc::clone(&loaded.package) })
            .collect()
    }
}

fn state_of(loaded: &LoadedPackage) -> PackageState {
    let community = loaded.package.discovery == Discovery::Community;
    let has_code = loaded.package.has_server_code() && loaded.native.is_none();
    PackageState {
        plugin_id: loaded.id().to_owned(),
        host_state: match (&loaded.error, &loaded.generation) {
            (Some(_), None) => "error",
            (_, None) if has_code => "discovered",
            _ => "loaded",
        },
        error: loaded.error.clone(),
        community,
    }
}

/// Keeps fragment and files in the store, by digest.
async fn archive(inner: &Inner, package: &Package) -> Result<(), ExecError> {
    let fragment = encode_fragment(&package.fragment)
        .map_err(|error| ExecError::Package { plugin: package.id().to_owned(), message: error.to_string() })?;
    let files: Vec<(String, Arc<[u8]>)> = package
        .fragment
        .files
        .iter()
        .filter_map(|file| Some((file.digest.clone(), Arc::clone(package.files.get(&file.path)?))))
        .collect();
    // What lies under a digest counts only if it is what belongs there: a damaged archive, or one of another version
    // of the compiler, is written anew.
    let (files, fragment) = inner.store.read(|reader| {
        let mut missing = Vec::new();
        for (digest, bytes) in files {
            if reader.get_blob(&digest)? != Some(&*bytes) {
                missing.push((digest, bytes));
            }
        }
        let kept = reader.get_fragment(&package.digest)? == Some(&*fragment);
        Ok::<_, covel_store::StoreError>((missing, (!kept).then_some(fragment)))
    })?;
    if files.is_empty() && fragment.is_none() {
        return Ok(());
    }
    let digest = package.digest.clone();
    inner
        .store
        .transact(move |tx| {
            for (digest, bytes) in &files {
                tx.delete_blob(digest)?;
                tx.put_blob(digest, bytes)?;
            }
            if let Some(fragment) = &fragment {
                tx.delete_fragment(&digest)?;
                tx.put_fragment(&digest, fragment)?;
            }
            Ok::<_, covel_store::StoreError>(())
        })
        .await
        .map_err(|error| ExecError::Store(error.flatten()))
}

/// Runs a package's entry, if it has code, and attaches what it registered.
pub(crate) async fn activate(inner: &Inner, loaded: &mut LoadedPackage) {
    if !loaded.package.has_server_code() || loaded.native.is_some() {
        return;
    }
    let files = loaded.package.files.clone();
    let reader = move |path: &str| files.get(path).cloned();
    let mut spec = GenerationSpec::new(PluginId::from(loaded.id()), loaded.epoch, Arc::new(reader));
    spec.entry.clone_from(&loaded.fragment().entry);
    spec.declared = declared(loaded.fragment());
    match inner.js.load(spec).await {
        Ok(generation) => {
            loaded.tools = generation.tools().iter().map(|tool| (tool.name.clone(), tool.clone())).collect();
            loaded.generation = Some(generation);
            loaded.error = None;
        }
        Err(error) => {
            tracing::warn!(plugin = loaded.id(), code = error.code(), "{error}");
            loaded.error = Some(error.to_string());
        }
    }
}

fn declared(fragment: &Fragment) -> Declared {
    Declared {
        tools: fragment.tools.clone(),
        actions: fragment.actions.clone(),
        services: fragment
            .services
            .iter()
            .map(|service| DeclaredService {
                contract: service.contract.clone(),
                model_facing: service.model_facing,
                write: service.access == ServiceAccess::Write,
            })
            .collect(),
        hooks: fragment.hooks.iter().map(|hook| (hook.event.clone(), hook.enforce.as_str().to_owned())).collect(),
        extensions: fragment.extensions.iter().map(|e| (e.point.clone(), e.id.clone())).collect(),
        wires: fragment.wires.clone(),
        forms: fragment.forms.clone(),
    }
}

impl Inner {
    /// Makes a publication the current one. Plans of the one before are let go, so that its isolate is freed once
    /// the executions that pin it have ended. REL-10
    fn replace(&self, loaded: Arc<LoadedPackage>) {
        let before = {
            let mut packages = self.packages.write();
            self.registry.fetch_add(1, Ordering::SeqCst);
            packages.insert(loaded.id().to_owned(), loaded)
        };
        if let Some(before) = before {
            self.plans.lock().retain(|epochs, _| !epochs.contains(&before.epoch));
        }
    }

    /// Activates the code of a community package that a session approved.
    pub(crate) async fn activate_approved(&self, plugin: &str) -> Result<(), ExecError> {
        let current = self.packages.read().get(plugin).cloned();
        let current = current.ok_or_else(|| ExecError::PluginNotFound(plugin.to_owned()))?;
        if current.generation.is_some() || !current.package.has_server_code() {
            return Ok(());
        }
        let mut loaded = LoadedPackage::new(Arc::clone(&current.package), self.next_epoch());
        activate(self, &mut loaded).await;
        let failed = loaded.error.clone();
        self.replace(Arc::new(loaded));
        match failed {
            Some(message) => Err(ExecError::Package { plugin: plugin.to_owned(), message }),
            None => Ok(()),
        }
    }
}

/// Settings of a package for a session: defaults, then the world's, then the player's. PKG-3
pub(crate) fn resolve_settings(
    package: &LoadedPackage,
    world: Option<&covel_graph::world::World>,
    player: Option<&BTreeMap<String, covel_graph::Json>>,
) -> covel_graph::Json {
    let fragment = package.fragment();
    let mut settings = package.setting_defaults.clone();
    let known = |key: &str| fragment.settings.iter().any(|setting| setting.key == key);
    let from_world = world.and_then(|world| world.plugin_settings.get(fragment.plugin_id.as_str()));
    // A world's value that does not fit is left out, as publishing and `covel validate` say.
    let fits = |key: &str, value: &covel_graph::Json| covel_graph::check_setting(fragment, key, value.value()).is_ok();
    for (key, value) in from_world.into_iter().flatten().filter(|(key, value)| fits(key, value)) {
        settings.insert(key.clone(), value.value().clone());
    }
    for (key, value) in player.into_iter().flatten().filter(|(key, _)| known(key)) {
        settings.insert(key.clone(), value.value().clone());
    }
    covel_graph::Json::from_value(serde_json::Value::Object(settings))
}
