//! Sessions: creating, listing, ending, and the active plan each execution pins.

use std::{
    collections::BTreeMap,
    sync::{Arc, atomic::Ordering},
};

use covel_graph::{
    Json, PlanDigest, PluginId, SessionId,
    activation::{Activation, ActivationRequest, activate},
    archive::PlanHandle,
    link::{Linked, link},
    package::Package,
    world::World,
};

use crate::{
    activations::ActivationKey,
    active::{ActivePlan, LoadedPackage},
    engine::{Engine, Inner, SessionLock},
    error::ExecError,
    limits::{MAX_LOCALE_BYTES, MAX_SESSION_ID_BYTES},
    select::pending_setup,
    session::{Phase, SessionRecord, SessionStatus},
    world::{DIMENSIONS_CONTRACT, start::WorldStart},
};

/// Linked plans kept ready in memory.
const MAX_PLANS: usize = 64;

/// A session to create.
#[derive(Clone, Debug, Default)]
pub struct NewSession {
    /// Id; a fresh one when absent.
    pub id: Option<String>,
    /// World.
    pub world_id: Option<String>,
    /// Language; the world's own, else `en`, when absent.
    pub locale: Option<String>,
    /// Requested packages; the world's defaults, else every built-in package, when absent.
    pub plugins: Option<Vec<String>>,
    /// Excluded packages.
    pub excluded: Vec<String>,
    /// Community packages whose code may run in this session.
    pub approved: Vec<String>,
    /// Seed text.
    pub seed: Option<String>,
    /// Player settings: package -> key -> value.
    pub settings: BTreeMap<String, BTreeMap<String, Json>>,
}

impl Engine {
    /// Creates a session.
    ///
    /// # Errors
    /// A taken or bad id, an unknown world or package, an activation that cannot be.
    pub async fn create_session(&self, new: NewSession) -> Result<SessionRecord, ExecError> {
        let inner = &self.0;
        inner.check_open()?;
        let world = new.world_id.as_deref().map(|id| inner.world(id)).transpose()?;
        let id = match &new.id {
            Some(id) => id.clone(),
            None => format!("{}-{}", new.world_id.as_deref().unwrap_or("session"), inner.fresh_id(8)),
        };
        check_session_id(&id)?;
        if let Some(locale) = &new.locale {
            check_locale(locale)?;
        }
        let requested = match (&new.plugins, &world) {
            (Some(plugins), _) => plugins.clone(),
            (None, Some(world)) if !world.default_plugins.is_empty() => {
                let known = inner.packages.read();
                let defaults = world.default_plugins.iter().map(|plugin| plugin.as_str().to_owned());
                defaults.filter(|plugin| known.contains_key(plugin)).collect()
            }
            _ => inner.packages.read().keys().cloned().collect(),
        };
        for plugin in requested.iter().chain(&new.excluded).chain(&new.approved) {
            if !inner.packages.read().contains_key(plugin) {
                return Err(ExecError::PluginNotFound(plugin.clone()));
            }
        }
        for (plugin, values) in &new.settings {
            let package = inner.packages.read().get(plugin).cloned();
            let package = package.ok_or_else(|| ExecError::PluginNotFound(plugin.clone()))?;
            for (key, value) in values {
                covel_graph::check_setting(package.fragment(), key, value.value())
                    .map_err(|message| ExecError::Invalid { field: format!("settings.{plugin}.{key}"), message })?;
            }
        }
        for plugin in &new.approved {
            inner.activate_approved(plugin).await?;
        }
        let locale = new
            .locale
            .or_else(|| world.as_ref().map(|world| world.default_locale.clone()))
            .unwrap_or_else(|| "en".to_owned());
        let now = inner.now();
        let incarnation = inner.fresh_id(32);
        if !new.approved.is_empty() {
            inner.approvals.lock().insert(incarnation.clone(), new.approved.iter().cloned().collect());
        }
        let mut record = SessionRecord {
            seed: new.seed.or_else(|| inner.random_seed.clone()).unwrap_or_else(|| inner.fresh_id(32)),
            id: id.clone(),
            world_id: new.world_id,
            locale,
            status: SessionStatus::Active,
            phase: Phase::Setup,
            completed_player_turns: 0,
            setup_runtimes: BTreeMap::new(),
            requested_plugins: requested,
            excluded_plugins: new.excluded,
            active_plugins: Vec::new(),
            plan: None,
            settings: new.settings,
            incarnation: incarnation.clone(),
            triggers: BTreeMap::new(),
            turn_count: 0,
            not_applied: Vec::new(),
            seats: Vec::new(),
            story_turn: None,
            suspended: BTreeMap::new(),
            interrupted: None,
            created_at: now.clone(),
            updated_at: now,
        };
        let created = self.store_new(&mut record, world.as_deref()).await;
        if created.is_err() {
            inner.approvals.lock().remove(&incarnation);
        }
        created.map(|()| record)
    }

    async fn store_new(&self, record: &mut SessionRecord, world: Option<&World>) -> Result<(), ExecError> {
        let inner = &self.0;
        let activation = inner.activate(record)?;
        if let Some(unmet) = activation.unmet.iter().find(|unmet| unmet.blocks()) {
            return Err(ExecError::Activation {
                code: "world-requirement-unmet".into(),
                message: unmet.message.clone(),
            });
        }
        record.active_plugins = activation.active.iter().map(|plugin| plugin.as_str().to_owned()).collect();
        let plan = inner.active_plan(&record.active_plugins).await?;
        record.plan = Some(plan.digest.clone());
        if pending_setup(&plan.plan, record).is_empty() {
            record.phase = Phase::Playing;
        }
        let content = world.map(|world| world.content_for(&record.locale));
        if content.is_some_and(|content| content.dimensions.is_some()) && plan.dimension_owner.is_none() {
            return Err(ExecError::Activation {
                code: "world-requirement-unmet".into(),
                message: format!(
                    "the world declares dimensions, so exactly one active package must provide {DIMENSIONS_CONTRACT}"
                ),
            });
        }
        let start = WorldStart::of(content, &record.created_at).map_err(|message| ExecError::Activation {
            code: "world-data-invalid".into(),
            message: format!("world {:?}: {message}", record.world_id.as_deref().unwrap_or_default()),
        })?;
        record.seats.clone_from(&start.seats);
        let now = record.created_at.clone();
        let key = SessionId::from(record.id.as_str());
        let json = Json::of(&*record).map_err(|error| ExecError::Internal(error.to_string()))?;
        let id = record.id.clone();
        inner
            .store
            .transact(move |tx| {
                if tx.read().has_session(&key)? {
                    return Err(ExecError::SessionExists(id));
                }
                tx.put_session(&key, &json)?;
                start.write(tx, &key, &now)?;
                Ok(())
            })
            .await
            .map_err(covel_store::TransactError::flatten)
    }

    /// One session.
    ///
    /// # Errors
    /// [`ExecError::SessionNotFound`].
    pub fn session(&self, id: &str) -> Result<SessionRecord, ExecError> {
        self.0.session(id)
    }

    /// All sessions, oldest first.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn sessions(&self) -> Result<Vec<SessionRecord>, ExecError> {
        let rows = self.0.store.read(|reader| reader.list_sessions())?;
        rows.into_iter().map(|row| decode(&row.record)).collect()
    }

    /// Deletes a session with everything it holds.
    ///
    /// # Errors
    /// [`ExecError::SessionNotFound`], [`ExecError::SessionBusy`].
    pub async fn delete_session(&self, id: &str) -> Result<(), ExecError> {
        let _lock = SessionLock::take(&self.0, id).await?;
        let record = self.0.session(id)?;
        let key = SessionId::from(id);
        self.0.drop_jobs_of(id);
        self.0
            .store
            .transact(move |tx| {
                crate::jobs::forget(tx, &key)?;
                tx.delete_session(&key)
            })
            .await
            .map_err(|error| ExecError::Store(error.flatten()))?;
        self.0.approvals.lock().remove(&record.incarnation);
        self.0.executions.forget(id);
        Ok(())
    }

    /// Pauses, resumes or ends a session. `ended` is final.
    ///
    /// # Errors
    /// [`ExecError::SessionNotFound`], [`ExecError::SessionBusy`], [`ExecError::SessionNotActive`] once ended.
    pub async fn set_status(&self, id: &str, status: SessionStatus) -> Result<SessionRecord, ExecError> {
        let (_lock, _) = self.0.take_settled(id).await?;
        let mut record = self.0.session(id)?;
        if record.status == SessionStatus::Ended {
            return Err(ExecError::SessionNotActive { id: id.to_owned(), status: "ended".into() });
        }
        record.status = status;
        record.updated_at = self.0.now();
        self.0.put_session(&record).await?;
        Ok(record)
    }

    /// The plan of a session's active set.
    ///
    /// # Errors
    /// [`ExecError::SessionNotFound`], or when it cannot be linked.
    pub async fn plan(&self, id: &str) -> Result<PlanHandle, ExecError> {
        let record = self.0.session(id)?;
        Ok(self.0.active_plan(&record.active_plugins).await?.plan.clone())
    }

    /// What these packages would become together, without a session.
    ///
    /// # Errors
    /// [`ExecError::PluginNotFound`], or when they cannot be linked.
    pub fn plan_for(&self, plugins: &[String]) -> Result<(Activation, Linked), ExecError> {
        let packages: Vec<Arc<Package>> =
            self.0.packages.read().values().map(|loaded| Arc::clone(&loaded.package)).collect();
        for plugin in plugins {
            if !packages.iter().any(|package| package.id() == plugin) {
                return Err(ExecError::PluginNotFound(plugin.clone()));
            }
        }
        let activation = activation_of(&packages, plugins, &[], &[], None);
        let active: Vec<Arc<Package>> = packages
            .into_iter()
            .filter(|package| activation.active.iter().any(|plugin| plugin.as_str() == package.id()))
            .collect();
        let linked = link(&active).map_err(|error| ExecError::Internal(error.to_string()))?;
        Ok((activation, linked))
    }
}

/// Letters, digits, `_`, `-`, `.`; 1 to 128 bytes.
pub(crate) fn check_session_id(id: &str) -> Result<(), ExecError> {
    let fits = !id.is_empty()
        && id.len() <= MAX_SESSION_ID_BYTES
        && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'));
    if fits {
        return Ok(());
    }
    Err(ExecError::Invalid {
        field: "id".into(),
        message: format!("a session id has 1 to {MAX_SESSION_ID_BYTES} letters, digits, `_`, `-`, `.`"),
    })
}

/// A language tag: letters, digits, `-`, `_`. It is shown to models, so nothing else gets in.
fn check_locale(locale: &str) -> Result<(), ExecError> {
    let fits = !locale.is_empty()
        && locale.len() <= MAX_LOCALE_BYTES
        && locale.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    if fits {
        return Ok(());
    }
    Err(ExecError::Invalid {
        field: "locale".into(),
        message: format!("a language tag has 1 to {MAX_LOCALE_BYTES} letters, digits, `-`, `_`"),
    })
}

fn decode(record: &Json) -> Result<SessionRecord, ExecError> {
    serde_json::from_value(record.value().clone())
        .map_err(|error| ExecError::Internal(format!("a session record cannot be read: {error}")))
}

fn activation_of(
    packages: &[Arc<Package>],
    requested: &[String],
    excluded: &[String],
    approved: &[String],
    world: Option<&World>,
) -> Activation {
    activate(&ActivationRequest {
        packages,
        requested: requested.iter().map(|id| PluginId::from(id.as_str())).collect(),
        excluded: excluded.iter().map(|id| PluginId::from(id.as_str())).collect(),
        approved: approved.iter().map(|id| PluginId::from(id.as_str())).collect(),
        required_contracts: world
            .map(|world| world.required_contracts.iter().map(|contract| contract.as_str().to_owned()).collect())
            .unwrap_or_default(),
    })
}

impl Inner {
    pub(crate) fn world(&self, id: &str) -> Result<Arc<World>, ExecError> {
        self.worlds.read().get(id).cloned().ok_or_else(|| ExecError::WorldNotFound(id.to_owned()))
    }

    pub(crate) fn session(&self, id: &str) -> Result<SessionRecord, ExecError> {
        let found = self.store.read(|reader| reader.get_session(&SessionId::from(id)))?;
        decode(&found.ok_or_else(|| ExecError::SessionNotFound(id.to_owned()))?)
    }

    pub(crate) async fn put_session(&self, record: &SessionRecord) -> Result<(), ExecError> {
        let key = SessionId::from(record.id.as_str());
        let json = Json::of(record).map_err(|error| ExecError::Internal(error.to_string()))?;
        let now = self.now();
        let stored = self.store.transact(move |tx| {
            tx.set_cause("host", "session", &now);
            tx.put_session(&key, &json)
        });
        stored.await.map_err(|error| ExecError::Store(error.flatten()))
    }

    /// Re-resolves the active set from the player's request, exclusions and live grants. REL-6
    pub(crate) fn activate(&self, record: &SessionRecord) -> Result<Arc<Activation>, ExecError> {
        let approved = self.approvals.lock().get(&record.incarnation).cloned().unwrap_or_default();
        let mut approved: Vec<String> = approved.into_iter().collect();
        approved.sort_unstable();
        let world = record.world_id.as_deref().and_then(|id| self.world(id).ok());
        let world = world.as_deref();
        let key = ActivationKey::new([&record.requested_plugins, &record.excluded_plugins, &approved], world);
        let known = self.activations.get(key, self.registry.load(Ordering::SeqCst));
        let activation = known.unwrap_or_else(|| {
            // Version and packages under one lock, so that an outcome is never kept for a later registry.
            let (version, packages) = {
                let packages = self.packages.read();
                let all: Vec<_> = packages.values().map(|loaded| Arc::clone(&loaded.package)).collect();
                (self.registry.load(Ordering::SeqCst), all)
            };
            let (requested, excluded) = (&record.requested_plugins, &record.excluded_plugins);
            let outcome = Arc::new(activation_of(&packages, requested, excluded, &approved, world));
            self.activations.put(key, version, Arc::clone(&outcome));
            outcome
        });
        if activation.active.is_empty() {
            let why = activation.rejected.first().map(|r| format!("; {}: {}", r.plugin, r.message)).unwrap_or_default();
            return Err(ExecError::Activation {
                code: "no-active-plugins".into(),
                message: format!("no package is active in session {:?}{why}", record.id),
            });
        }
        Ok(activation)
    }

    /// The linked plan of a set of packages: from memory, from the store by digest, or linked now.
    pub(crate) async fn active_plan(&self, plugins: &[String]) -> Result<Arc<ActivePlan>, ExecError> {
        let mut loaded = Vec::with_capacity(plugins.len());
        for plugin in plugins {
            let found = self.packages.read().get(plugin).cloned();
            loaded.push(found.ok_or_else(|| ExecError::PluginNotFound(plugin.clone()))?);
        }
        loaded.sort_by(|a, b| a.id().cmp(b.id()));
        let key: Vec<u64> = loaded.iter().map(|loaded| loaded.epoch).collect();
        if let Some(plan) = self.plans.lock().get(&key) {
            return Ok(Arc::clone(plan));
        }
        let plan = self.open_plan(&loaded).await?;
        let digest = plan.digest().as_str().to_owned();
        let active = Arc::new(ActivePlan::new(plan, digest, loaded).under(self.effects));
        let mut plans = self.plans.lock();
        if plans.len() >= MAX_PLANS {
            plans.clear();
        }
        plans.insert(key, Arc::clone(&active));
        Ok(active)
    }

    async fn open_plan(&self, loaded: &[Arc<LoadedPackage>]) -> Result<PlanHandle, ExecError> {
        let mut hasher = blake3::Hasher::new();
        // Another version of the compiler may link the same packages otherwise.
        hasher.update(covel_graph::compiler_id().as_bytes());
        for loaded in loaded {
            hasher.update(loaded.package.digest.as_bytes());
        }
        let name = format!("plan:{}", hasher.finalize().to_hex());
        let stored = self.store.read(|reader| {
            let Some(digest) = reader.get_meta(&name)? else { return Ok(None) };
            let digest = PlanDigest::from(digest.value().as_str().unwrap_or_default());
            let bytes = reader.get_plan(&digest)?.map(Arc::<[u8]>::from);
            Ok::<_, covel_store::StoreError>(bytes.map(|bytes| (bytes, digest)))
        })?;
        let mut unusable = None;
        if let Some((bytes, digest)) = stored {
            match PlanHandle::open(bytes, &digest) {
                Ok(plan) if links(&plan, loaded) => return Ok(plan),
                Ok(_) => tracing::warn!("the plan {digest} is kept under the name of another; it is linked again"),
                // A damaged or foreign archive is rebuilt, never trusted.
                Err(error) => {
                    tracing::warn!("the stored plan {digest} is rebuilt: {error}");
                    unusable = Some(digest);
                }
            }
        }
        let packages: Vec<Arc<Package>> = loaded.iter().map(|loaded| Arc::clone(&loaded.package)).collect();
        let linked = link(&packages).map_err(|error| ExecError::Internal(error.to_string()))?;
        let plan = linked.handle().map_err(|error| ExecError::Internal(error.to_string()))?;
        let (digest, bytes) = (linked.digest.clone(), linked.bytes.to_vec());
        self.store
            .transact(move |tx| {
                // Putting a digest that is there writes nothing, so the unusable bytes must go first.
                if let Some(unusable) = unusable {
                    tx.delete_plan(&unusable)?;
                }
                tx.put_plan(&digest, &bytes)?;
                tx.put_meta(&name, &Json::from_value(digest.as_str().into()))
            })
            .await
            .map_err(|error| ExecError::Store(error.flatten()))?;
        Ok(plan)
    }
}

/// Is this a plan of exactly these package versions?
fn links(plan: &PlanHandle, loaded: &[Arc<LoadedPackage>]) -> bool {
    plan.plugins.len() == loaded.len()
        && plan.plugins.iter().zip(loaded).all(|(plugin, loaded)| {
            plugin.id.as_str() == loaded.id() && plugin.fragment.as_str() == loaded.package.digest
        })
}
