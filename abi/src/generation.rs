//! One activated package version.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fmt,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use covel_graph::{Json, PluginId};
use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::{engine::bytecode::Image, error::LoadError, js_host::HostInner, queue::Message};

/// Reads files of one package. A path is relative to the package root, with `/` between parts.
pub trait ModuleFiles: Send + Sync + 'static {
    /// The bytes of a file, or nothing when the package has no such file.
    fn read(&self, path: &str) -> Option<Arc<[u8]>>;
}

impl<F: Fn(&str) -> Option<Arc<[u8]>> + Send + Sync + 'static> ModuleFiles for F {
    fn read(&self, path: &str) -> Option<Arc<[u8]>> {
        self(path)
    }
}

/// A declared service: `contributes.services`. SVC-3
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DeclaredService {
    /// `<name>@<major>`.
    pub contract: String,
    /// `modelFacing: true`.
    pub model_facing: bool,
    /// `access: write`.
    pub write: bool,
}

/// What the manifest says the entry registers. Anything else it registers, and anything of this it does not, fails the
/// load (the two-way rule).
#[derive(Clone, Debug, Default)]
pub struct Declared {
    /// `contributes.tools`.
    pub tools: Vec<String>,
    /// `contributes.actions`.
    pub actions: Vec<String>,
    /// `contributes.services`; one for each registration.
    pub services: Vec<DeclaredService>,
    /// `contributes.hooks`: event and `enforce`. HKS-1
    pub hooks: Vec<(String, String)>,
    /// `contributes.extensions`: point and id. EXP-1
    pub extensions: Vec<(String, String)>,
    /// `contributes.wires`: wire ids.
    pub wires: Vec<String>,
    /// `contributes.forms`.
    pub forms: Vec<String>,
}

/// What to load.
pub struct GenerationSpec {
    /// The package.
    pub plugin_id: PluginId,
    /// Generation number, for messages.
    pub generation: u64,
    /// The package's files.
    pub files: Arc<dyn ModuleFiles>,
    /// The entry module, when the manifest has one.
    pub entry: Option<String>,
    /// What the manifest declares.
    pub declared: Declared,
    /// Heap limit in bytes, when other than the host's. Counted per isolate.
    pub heap_limit_bytes: Option<usize>,
}

impl GenerationSpec {
    /// A package without an entry.
    pub fn new(plugin_id: PluginId, generation: u64, files: Arc<dyn ModuleFiles>) -> Self {
        Self { plugin_id, generation, files, entry: None, declared: Declared::default(), heap_limit_bytes: None }
    }
}

/// A registered tool. TOL-1
#[derive(Clone, Debug, PartialEq)]
pub struct ToolInfo {
    /// Name, unique in the plugin.
    pub name: String,
    /// What the model reads.
    pub description: String,
    /// JSON Schema of the arguments, as providers can read it.
    pub json_schema: Json,
}

/// A registered action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActionInfo {
    /// Action.
    pub action: String,
    /// Description.
    pub description: Option<String>,
    /// `builtin` or `community`, as given.
    pub trust_level: Option<String>,
}

/// A registered service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceInfo {
    /// Name, unique in the plugin.
    pub name: String,
    /// `<name>@<major>`.
    pub contract: String,
    /// Description.
    pub description: Option<String>,
    /// May models import it?
    pub model_facing: bool,
    /// Is it a write service?
    pub write: bool,
}

/// A registered hook handler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookInfo {
    /// Event.
    pub event: String,
    /// `pre`, `normal` or `post`.
    pub enforce: String,
    /// Which handler of the generation, in registration order over all events.
    pub index: u32,
    /// Time limit in milliseconds, when given.
    pub timeout_ms: Option<u64>,
    /// Does it have a `match`?
    pub has_match: bool,
}

/// Everything an entry registered.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Registrations {
    /// Tools, by name.
    pub tools: Vec<ToolInfo>,
    /// Actions, by name.
    pub actions: Vec<ActionInfo>,
    /// Services, by name.
    pub services: Vec<ServiceInfo>,
    /// Hooks in registration order. HKS-3
    pub hooks: Vec<HookInfo>,
    /// Extension handlers: point and id.
    pub extensions: Vec<(String, String)>,
    /// Wires: kind and id.
    pub wires: Vec<(String, String)>,
    /// Form validators.
    pub forms: Vec<String>,
}

impl Registrations {
    pub(crate) fn len(&self) -> usize {
        self.tools.len()
            + self.actions.len()
            + self.services.len()
            + self.hooks.len()
            + self.extensions.len()
            + self.wires.len()
            + self.forms.len()
    }

    pub(crate) fn sort(&mut self) {
        self.tools.sort_by(|a, b| a.name.cmp(&b.name));
        self.actions.sort_by(|a, b| a.action.cmp(&b.action));
        self.services.sort_by(|a, b| a.name.cmp(&b.name));
        self.extensions.sort();
        self.wires.sort();
        self.forms.sort();
    }

    /// The first declaration without a registration, or services that do not match theirs.
    pub(crate) fn check_complete(&self, declared: &Declared) -> Result<(), LoadError> {
        let missing = |what: &str, name: &str| {
            Err(LoadError::Registration {
                message: format!("the manifest declares {what} `{name}`, but the entry does not register it"),
            })
        };
        for name in &declared.tools {
            if !self.tools.iter().any(|t| t.name == *name) {
                return missing("tool", name);
            }
        }
        for name in &declared.actions {
            if !self.actions.iter().any(|a| a.action == *name) {
                return missing("action", name);
            }
        }
        for (event, enforce) in &declared.hooks {
            if !self.hooks.iter().any(|h| h.event == *event && h.enforce == *enforce) {
                return missing("hook", &format!("{event} ({enforce})"));
            }
        }
        for (point, id) in &declared.extensions {
            if !self.extensions.iter().any(|(p, i)| p == point && i == id) {
                return missing("extension", &format!("{point} {id}"));
            }
        }
        for id in &declared.wires {
            if !self.wires.iter().any(|(_, i)| i == id) {
                return missing("wire", id);
            }
        }
        for name in &declared.forms {
            if !self.forms.contains(name) {
                return missing("form validator", name);
            }
        }
        let count = |services: &mut dyn Iterator<Item = DeclaredService>| {
            let mut counts: BTreeMap<DeclaredService, i64> = BTreeMap::new();
            for service in services {
                *counts.entry(service).or_default() += 1;
            }
            counts
        };
        let wanted = count(&mut declared.services.iter().cloned());
        let found = count(&mut self.services.iter().map(|s| DeclaredService {
            contract: s.contract.clone(),
            model_facing: s.model_facing,
            write: s.write,
        }));
        for service in wanted.keys().chain(found.keys()).collect::<BTreeSet<_>>() {
            let (w, f) = (wanted.get(service).copied().unwrap_or(0), found.get(service).copied().unwrap_or(0));
            if w != f {
                return Err(LoadError::Registration {
                    message: format!(
                        "the manifest declares {w} and the entry registers {f} services of contract `{}` (model-facing: {}, write: {})",
                        service.contract, service.model_facing, service.write
                    ),
                });
            }
        }
        Ok(())
    }
}

/// What closing found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CloseReport {
    /// Messages of disposers that failed. LIF-2
    pub failures: Vec<String>,
    /// Did the disposers exceed their time limit? LIF-4
    pub timed_out: bool,
}

/// An activated package version. Cloning is cheap; dropping the last clone runs the disposers and frees the isolate.
#[derive(Clone)]
pub struct Generation(pub(crate) Arc<GenerationInner>);

pub(crate) struct GenerationInner {
    pub(crate) key: u64,
    pub(crate) home: Home,
    pub(crate) spec: Arc<GenerationSpec>,
    pub(crate) images: Arc<Mutex<HashMap<String, Image>>>,
    pub(crate) registered: Arc<OnceLock<Registrations>>,
    pub(crate) closed: AtomicBool,
    pub(crate) host: Arc<HostInner>,
}

/// Which worker slot a generation's isolate lives in.
///
/// Code with an entry stays where it was loaded. Other code has no state before its first call, so that call may still
/// choose: it goes where its batch has fewest calls, and stays there. Packages whose runtimes share a layer are spread over
/// the workers that way, in whatever order they were loaded.
pub(crate) struct Home(AtomicUsize);

/// Set in [`Home`] while the first call may still choose.
const UNSETTLED: usize = 1 << (usize::BITS - 1);

impl Home {
    pub(crate) fn new(slot: usize, settled: bool) -> Self {
        Self(AtomicUsize::new(if settled { slot } else { slot | UNSETTLED }))
    }

    pub(crate) fn slot(&self) -> usize {
        self.0.load(Ordering::SeqCst) & !UNSETTLED
    }

    pub(crate) fn is_settled(&self) -> bool {
        self.0.load(Ordering::SeqCst) & UNSETTLED == 0
    }

    /// Settles on a slot, unless that has been done. The slot that was left, if another was chosen.
    pub(crate) fn settle(&self, slot: usize) -> Option<usize> {
        let before = self.0.load(Ordering::SeqCst);
        if before & UNSETTLED == 0 {
            return None;
        }
        self.0
            .compare_exchange(before, slot, Ordering::SeqCst, Ordering::SeqCst)
            .ok()
            .map(|before| before & !UNSETTLED)
            .filter(|left| *left != slot)
    }
}

/// What a worker needs to make (and make again) the isolate of a generation. It does not keep the generation alive.
#[derive(Clone)]
pub(crate) struct Blueprint {
    pub(crate) key: u64,
    pub(crate) spec: Arc<GenerationSpec>,
    pub(crate) images: Arc<Mutex<HashMap<String, Image>>>,
    pub(crate) registered: Arc<OnceLock<Registrations>>,
}

impl GenerationInner {
    pub(crate) fn blueprint(&self) -> Blueprint {
        Blueprint {
            key: self.key,
            spec: Arc::clone(&self.spec),
            images: Arc::clone(&self.images),
            registered: Arc::clone(&self.registered),
        }
    }
}

impl Generation {
    /// The package.
    pub fn plugin_id(&self) -> &PluginId {
        &self.0.spec.plugin_id
    }

    /// The generation number given at load.
    pub fn number(&self) -> u64 {
        self.0.spec.generation
    }

    /// Everything the entry registered.
    pub fn registrations(&self) -> &Registrations {
        static NONE: Registrations = Registrations {
            tools: Vec::new(),
            actions: Vec::new(),
            services: Vec::new(),
            hooks: Vec::new(),
            extensions: Vec::new(),
            wires: Vec::new(),
            forms: Vec::new(),
        };
        self.0.registered.get().unwrap_or(&NONE)
    }

    /// Registered tools, sorted by name.
    pub fn tools(&self) -> &[ToolInfo] {
        &self.registrations().tools
    }

    /// One tool.
    pub fn tool(&self, name: &str) -> Option<&ToolInfo> {
        self.tools().iter().find(|tool| tool.name == name)
    }

    /// Registered actions, sorted by name.
    pub fn actions(&self) -> &[ActionInfo] {
        &self.registrations().actions
    }

    /// Runs the disposers, last registered first, and frees the isolate. Calls still running are cancelled; later calls
    /// are refused. A second close does nothing. LIF-2
    pub async fn close(&self) -> CloseReport {
        if self.0.closed.swap(true, Ordering::SeqCst) {
            return CloseReport::default();
        }
        let (reply, done) = oneshot::channel();
        self.0.host.send(self.0.home.slot(), Message::Close { key: self.0.key, reply: Some(reply) });
        done.await.unwrap_or_default()
    }
}

impl Drop for GenerationInner {
    fn drop(&mut self) {
        if !self.closed.swap(true, Ordering::SeqCst) {
            self.host.send(self.home.slot(), Message::Close { key: self.key, reply: None });
        }
    }
}

impl fmt::Debug for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Generation")
            .field("plugin_id", self.plugin_id())
            .field("number", &self.number())
            .finish_non_exhaustive()
    }
}
