//! A fragment: one compiled package version, as archived.
//!
//! Everything a turn needs to know about a package is here and checked; nothing is parsed again later.
//! JSON parts (schemas, defaults) are kept as text, so that a fragment archives as plain data.

use rkyv::{Archive, Deserialize as RkyvDeserialize, Serialize as RkyvSerialize};
use serde::{Deserialize, Serialize};

use crate::plan::Stage;

macro_rules! data {
    ($(#[$doc:meta])* pub struct $name:ident { $($(#[$fdoc:meta])* pub $field:ident : $ty:ty,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, Archive, RkyvSerialize, RkyvDeserialize, Serialize, Deserialize)]
        #[serde(rename_all = "camelCase", default)]
        pub struct $name { $($(#[$fdoc])* pub $field: $ty,)* }
    };
}
macro_rules! choice {
    ($(#[$doc:meta])* pub enum $name:ident { $($(#[$vdoc:meta])* $variant:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Archive, RkyvSerialize, RkyvDeserialize, Serialize, Deserialize)]
        pub enum $name { $($(#[$vdoc])* #[serde(rename = $text)] $variant,)* }
        impl $name {
            /// The word a manifest uses.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }
            /// Reads the word a manifest uses.
            pub fn parse(text: &str) -> Option<Self> {
                match text { $($text => Some(Self::$variant),)* _ => None }
            }
            /// All accepted words.
            pub const WORDS: &'static [&'static str] = &[$($text,)*];
        }
    };
}

/// Text for people: locale to string, in manifest order. A plain string has the single locale `en`.
pub type Text = Vec<(String, String)>;
/// JSON kept as text.
pub type JsonText = String;

choice! {/// Role of a package; trust comes from where it was found, not from this.
    pub enum PackageKind { #[default] /// An ordinary package.
        Plugin = "plugin", /// A package of the host's core set.
        Core = "core", }
}
choice! {/// What runs a runtime.
    pub enum RuntimeKind { #[default] /// A JavaScript or native handler.
        Function = "function", /// A model in a tool loop.
        Agent = "agent", }
}
choice! {/// What starts a runtime.
    pub enum TriggerKind { #[default] /// Every turn.
        Auto = "auto", /// Every `interval` logical turns.
        Scheduled = "scheduled", /// Only when asked for by name.
        Manual = "manual", /// When its topic is emitted.
        Event = "event", }
}
choice! {/// Who sees a runtime's text.
    pub enum Visibility { /// It is the story.
        Story = "story", #[default] /// It belongs to its package.
        Plugin = "plugin", /// It is bookkeeping.
        System = "system", }
}
choice! {/// How many providers a reference wants.
    pub enum Cardinality { #[default] /// Exactly one.
        One = "one", /// Every one there is.
        All = "all", }
}
choice! {/// Which execution's result an input or need reads.
    pub enum Scope { #[default] /// This execution's.
        Turn = "turn", /// The committed export from before this execution.
        Committed = "committed", /// The persistent setup record.
        Session = "session", }
}
choice! {/// How a manual or event activation runs.
    pub enum ManualExecution { #[default] /// In the caller's execution.
        Sync = "sync", /// As a durable job.
        Background = "background", }
}
choice! {/// Whether the turn waits for a runtime.
    pub enum CompletionMode { #[default] /// The turn waits.
        Await = "await", /// The runtime goes on as a job after the commit.
        Detached = "detached", }
}
choice! {/// What an agent must do to count as finished.
    pub enum CompletionRequire { #[default] /// Nothing in particular: a text answer will do.
        None = "none", /// A completing tool or `runtime-done`.
        Explicit = "explicit", /// At least one successful tool call.
        ToolUse = "tool-use", }
}
choice! {/// Where something is put in a prompt.
    pub enum PromptPosition { #[default] /// The system prompt.
        System = "system", /// Before the history.
        PreHistory = "pre-history", /// After the history.
        PostHistory = "post-history", /// A number of messages from the end (see `depth`).
        Depth = "depth", }
}
choice! {/// How own data is shown to a model.
    pub enum SelfDataFormat { #[default] /// Key and shortened value.
        Summary = "summary", /// Key and whole value.
        Full = "full", /// Keys only.
        IdsOnly = "ids-only", }
}
choice! {/// Who may call a service for what. WSV-1
    pub enum ServiceAccess { #[default] /// It only reads.
        Read = "read", /// It stages writes to its own data.
        Write = "write", }
}
choice! {/// Hook group. HKS-1
    pub enum Enforce { /// First.
        Pre = "pre", #[default] /// In between.
        Normal = "normal", /// Last.
        Post = "post", }
}

data! {/// A source place inside the package, for diagnostics and `covel plan`.
pub struct Origin {
    /// Package-relative file.
    pub file: String,
    /// Line from 1.
    pub line: u32,
    /// Column from 1.
    pub column: u32,
}}
data! {/// One file of the package, by content digest.
pub struct FileEntry {
    /// Package-relative path with `/`.
    pub path: String,
    /// BLAKE3 of the bytes, 64 hex digits.
    pub digest: String,
    /// Length in bytes.
    pub bytes: u64,
}}
data! {/// A contract a package provides.
pub struct Provide {
    /// Contract id.
    pub contract: String,
    /// Steps aside for a non-default provider.
    pub default: bool,
    /// Where it is written.
    pub origin: Origin,
}}
data! {/// A contract named in `requires`, `optional` or `conflicts`.
pub struct ContractRef {
    /// Contract id.
    pub contract: String,
    /// Where it is written.
    pub origin: Origin,
}}
data! {/// A public contract schema.
pub struct ContractDecl {
    /// Contract id.
    pub contract: String,
    /// JSON Schema text.
    pub schema: JsonText,
    /// Where it is written.
    pub origin: Origin,
}}
data! {/// An event topic.
pub struct EventDecl {
    /// Topic.
    pub topic: String,
    /// JSON Schema text of the payload.
    pub schema: JsonText,
    /// What it means.
    pub description: Text,
    /// Offered to models.
    pub advertise: bool,
    /// Where it is written.
    pub origin: Origin,
}}
data! {/// A choice of a `select` setting.
pub struct SettingOption {
    /// Stored value.
    pub value: String,
    /// Label.
    pub label: Text,
}}
data! {/// A setting.
pub struct SettingDecl {
    /// Key.
    pub key: String,
    /// `text textarea number integer toggle select slider slot`.
    pub kind: String,
    /// Label.
    pub label: Text,
    /// Description.
    pub description: Text,
    /// Default value, JSON; empty = none.
    pub default: JsonText,
    /// Lower bound.
    pub min: Option<f64>,
    /// Upper bound.
    pub max: Option<f64>,
    /// Step.
    pub step: Option<f64>,
    /// Choices.
    pub options: Vec<SettingOption>,
}}
data! {/// A data namespace.
pub struct DataDecl {
    /// Namespace.
    pub namespace: String,
    /// JSON Schema text of one value.
    pub schema: JsonText,
    /// Version.
    pub version: u32,
    /// Contracts whose world sources it takes.
    pub accepts: Vec<String>,
    /// Field searched by `memory-search`.
    pub search_text: Option<String>,
    /// What it is for.
    pub description: String,
    /// How world authors fill it.
    pub authoring: Option<AuthoringDecl>,
    /// Where it is written.
    pub origin: Origin,
}}
data! {/// How a world author fills a data namespace that accepts contracts.
pub struct AuthoringDecl {
    /// Title.
    pub title: Text,
    /// Summary.
    pub summary: Text,
    /// Hint for a generator.
    pub hint: String,
    /// Package-relative path of the example.
    pub example_path: Option<String>,
    /// The example, JSON.
    pub example: Option<JsonText>,
    /// The file a world keeps it in.
    pub source: Option<SourceDecl>,
    /// `offer`, `default` or empty.
    pub generate: String,
}}
data! {/// The world file a data namespace is authored in.
pub struct SourceDecl {
    /// `yaml`, `json` or `media`.
    pub kind: String,
    /// World-relative path.
    pub path: String,
    /// Field that identifies an item (`filename` for media).
    pub key: Option<String>,
    /// List fields whose items are translated one by one.
    pub locale_array_keys: Vec<String>,
    /// Kept from players and generic readers.
    pub hidden: bool,
    /// How items become lorebook entries, JSON; empty = they do not.
    pub lorebook: JsonText,
}}
data! {/// A projection of world source records into own data.
pub struct ProjectionDecl {
    /// Id.
    pub id: String,
    /// Exact source schema URI, such as `contract:<id>`.
    pub from: String,
    /// Package-relative handler module.
    pub handler: String,
    /// Outputs in manifest order.
    pub outputs: Vec<ProjectionOutput>,
    /// Where it is written.
    pub origin: Origin,
}}
data! {/// Where an output of a projection goes.
pub struct ProjectionOutput {
    /// Id.
    pub id: String,
    /// Own namespace.
    pub namespace: String,
    /// Key.
    pub key: String,
}}
data! {/// A link of an author.
pub struct LinkDecl {
    /// Label.
    pub label: Text,
    /// Address, https.
    pub url: String,
}}
data! {/// Who wrote a package.
pub struct AuthorDecl {
    /// Name.
    pub name: String,
    /// Address, https.
    pub url: Option<String>,
    /// A few words.
    pub about: Text,
    /// Links.
    pub links: Vec<LinkDecl>,
}}
data! {/// A hook declaration. HKS-1
pub struct HookDecl {
    /// Event name.
    pub event: String,
    /// Group.
    pub enforce: Enforce,
    /// Where it is written.
    pub origin: Origin,
}}
data! {/// A service declaration. SVC-3, WSV-1, MFS-1
pub struct ServiceDecl {
    /// Contract id.
    pub contract: String,
    /// Read or write.
    pub access: ServiceAccess,
    /// Importable by agents.
    pub model_facing: bool,
    /// Where it is written.
    pub origin: Origin,
}}
data! {/// An extension provider declaration. EXP-1
pub struct ExtensionDecl {
    /// Extension point.
    pub point: String,
    /// Id inside the package.
    pub id: String,
    /// Ascending order.
    pub order: i64,
    /// UI slot.
    pub slot: Option<String>,
    /// Own namespaces watched.
    pub watch: Vec<String>,
    /// Topics previewed.
    pub preview: Vec<String>,
    /// Where it is written.
    pub origin: Origin,
}}
data! {/// An argument of a command.
pub struct CommandArgument {
    /// Name.
    pub name: String,
    /// `string integer number boolean`.
    pub kind: String,
    /// Description.
    pub description: Text,
    /// Must be given.
    pub required: bool,
    /// Takes the rest.
    pub variadic: bool,
    /// Accepted values.
    pub choices: Vec<String>,
}}
data! {/// A player command.
pub struct CommandDecl {
    /// Name without the slash.
    pub name: String,
    /// Other names.
    pub aliases: Vec<String>,
    /// Description.
    pub description: Text,
    /// Arguments in order.
    pub arguments: Vec<CommandArgument>,
    /// The RPC action it runs.
    pub action: String,
    /// Extra context it asks for.
    pub context: Vec<String>,
    /// Where it is written.
    pub origin: Origin,
}}
data! {/// A static prompt part.
pub struct PromptDecl {
    /// Id.
    pub id: String,
    /// English text.
    pub content: String,
    /// Chinese text, if a variant has it.
    pub content_zh: Option<String>,
    /// Position.
    pub position: PromptPosition,
    /// Depth, for `Depth`.
    pub depth: u32,
    /// `system user assistant`.
    pub role: String,
}}
data! {/// A UI spec.
pub struct UiDecl {
    /// `right message left`.
    pub surface: String,
    /// Package-relative path.
    pub path: String,
    /// The spec, JSON; a `webview` holds its `html` inline.
    pub spec: JsonText,
}}
data! {/// A need. COM-1, EVT-4
pub struct NeedDecl {
    /// Runtime in the same package, full id.
    pub runtime: Option<String>,
    /// Contract.
    pub contract: Option<String>,
    /// How many.
    pub cardinality: Cardinality,
    /// `turn` or `session`.
    pub scope: Scope,
    /// Where it is written.
    pub origin: Origin,
}}
data! {/// An input binding. COM-1, COM-2
pub struct InputDecl {
    /// Name.
    pub name: String,
    /// From a runtime of the same package, full id.
    pub runtime: Option<String>,
    /// From a contract.
    pub contract: Option<String>,
    /// From the kernel (`turn-digest@1`).
    pub kernel: Option<String>,
    /// How many.
    pub cardinality: Cardinality,
    /// `turn` or `committed`.
    pub scope: Scope,
    /// RFC 6901 pointer.
    pub select: Option<String>,
    /// A missing value skips the runtime.
    pub required: bool,
    /// JSON Schema text the value must fit, or none.
    pub accepts: Option<JsonText>,
    /// A contract whose schema the value must fit.
    pub accepts_contract: Option<String>,
    /// Export key, for `committed`.
    pub record_as: Option<String>,
    /// Where it is written.
    pub origin: Origin,
}}
data! {/// Own data shown to an agent.
pub struct SelfDataDecl {
    /// Namespace.
    pub namespace: String,
    /// Wrapping tag.
    pub tag: String,
    /// Format.
    pub format: SelfDataFormat,
    /// Most entries.
    pub max_entries: u32,
}}
data! {/// What a runtime gives.
pub struct OutputDecl {
    /// Public contract.
    pub contract: Option<String>,
    /// Private JSON Schema text.
    pub schema: Option<JsonText>,
    /// A contract whose schema is the private schema.
    pub schema_contract: Option<String>,
    /// Export key.
    pub record_as: Option<String>,
}}
data! {/// A service imported as a tool. MFS-2
pub struct ServiceImport {
    /// Contract.
    pub contract: String,
    /// Tool name.
    pub tool_name: String,
}}
data! {/// The agent part of a runtime.
pub struct AgentDecl {
    /// Model slot.
    pub model: Option<String>,
    /// Reasoning is off.
    pub reasoning_disabled: bool,
    /// `required`, or a tool name after `name:`.
    pub tool_choice: Option<String>,
    /// Turns of history (`None`: shared history).
    pub history_max_turns: Option<u32>,
    /// Summaries in a limited history.
    pub include_summaries: bool,
    /// Framework tools.
    pub builtin_tools: Vec<String>,
    /// Own tools, resolved (defaults applied).
    pub plugin_tools: Vec<String>,
    /// Imported services.
    pub services: Vec<ServiceImport>,
    /// All tools deferred.
    pub defer_all: bool,
    /// Deferred tools.
    pub defer: Vec<String>,
    /// List events in the prompt.
    pub advertise_events: bool,
    /// Most tool-call steps (default 20).
    pub max_steps: u32,
    /// Whole runtime, milliseconds.
    pub timeout_ms: u64,
    /// One unstreamed call, milliseconds.
    pub call_timeout_ms: u64,
    /// First token of a streamed call, milliseconds (default 120000).
    pub first_token_timeout_ms: u64,
    /// Silence inside a stream, milliseconds (default 120000).
    pub idle_timeout_ms: u64,
    /// Retries (default 1, at most 5).
    pub max_retries: u32,
    /// Repeated calls that stop the loop (default 3, 0 = off).
    pub loop_detection: u32,
    /// Nested calls (default 10).
    pub max_recursion_depth: u32,
    /// What counts as finished.
    pub require: CompletionRequire,
    /// Tools that end the runtime.
    pub after_tools: Vec<String>,
}}
data! {/// The function part of a runtime.
pub struct FunctionDecl {
    /// Package-relative handler module.
    pub handler: String,
    /// Milliseconds (default 30000).
    pub timeout_ms: u64,
    /// Framework tools for `ctx.tools.call`.
    pub builtin_tools: Vec<String>,
    /// Own tools for `ctx.tools.call`.
    pub plugin_tools: Vec<String>,
    /// Model slot judged for a detached job.
    pub model: Option<String>,
}}
data! {/// Declared effects.
pub struct EffectsDecl {
    /// Keys read.
    pub reads: Vec<String>,
    /// Keys written.
    pub writes: Vec<String>,
    /// Writes do not disturb each other.
    pub parallel_safe: bool,
}}
data! {/// An allowed HTTP origin. MOD-9
pub struct HttpPermission {
    /// Origin, https.
    pub origin: String,
    /// Methods; empty = all.
    pub methods: Vec<String>,
}}
data! {/// Detached completion.
pub struct CompletionDecl {
    /// Mode.
    pub mode: CompletionMode,
    /// Wait before the next execution.
    pub settle: bool,
    /// Longest such wait, milliseconds.
    pub max_settle_wait_ms: u64,
    /// Longest time in the queue, milliseconds.
    pub max_queue_ms: u64,
    /// Longest execution, milliseconds.
    pub max_execution_ms: u64,
}}
data! {/// One runtime.
pub struct RuntimeDecl {
    /// Full id.
    pub id: String,
    /// Function or agent.
    pub kind: RuntimeKind,
    /// Label.
    pub description: Text,
    /// Stage, for auto and scheduled runtimes.
    pub stage: Option<Stage>,
    /// Trigger.
    pub trigger: TriggerKind,
    /// Topic, for event triggers.
    pub topic: Option<String>,
    /// Interval in logical turns (0 = none).
    pub interval: u32,
    /// First logical turn (0 = none).
    pub start_turn: u32,
    /// Turns between runs.
    pub cooldown_turns: u32,
    /// Most runs (0 = no limit).
    pub max_trigger_count: u32,
    /// Only reachable by delegation. COM-5
    pub subagent_only: bool,
    /// Hard needs.
    pub needs: Vec<NeedDecl>,
    /// Soft order.
    pub after: Vec<NeedDecl>,
    /// Detached completion.
    pub completion: CompletionDecl,
    /// How manual and event activations run.
    pub manual: ManualExecution,
    /// Inputs in manifest order.
    pub inputs: Vec<InputDecl>,
    /// Own data for the prompt.
    pub self_data: Vec<SelfDataDecl>,
    /// JSON Schema text of the activation payload.
    pub payload_schema: Option<JsonText>,
    /// Output.
    pub output: OutputDecl,
    /// Visibility.
    pub visibility: Visibility,
    /// Hidden from traces and people.
    pub concealed: bool,
    /// Agent part.
    pub agent: Option<AgentDecl>,
    /// Function part.
    pub function: Option<FunctionDecl>,
    /// Package-relative guard module.
    pub guard: Option<String>,
    /// Effects.
    pub effects: EffectsDecl,
    /// HTTP origins.
    pub http: Vec<HttpPermission>,
    /// English prompt body.
    pub prompt: String,
    /// Chinese prompt body.
    pub prompt_zh: Option<String>,
    /// Where the runtime is written.
    pub origin: Origin,
}}
data! {/// One compiled package version.
pub struct Fragment {
    /// Package id.
    pub plugin_id: String,
    /// Role.
    pub kind: PackageKind,
    /// Version (`0.0.0` when absent).
    pub version: String,
    /// Label.
    pub display_name: Text,
    /// Description.
    pub description: Text,
    /// Catalogue labels.
    pub tags: Vec<String>,
    /// Host range the author states; kept, not enforced.
    pub covel: Option<String>,
    /// Author.
    pub author: Option<AuthorDecl>,
    /// Licence.
    pub license: Option<String>,
    /// Home page, https.
    pub homepage: Option<String>,
    /// Contracts provided.
    pub provides: Vec<Provide>,
    /// Contracts that must be there.
    pub requires: Vec<ContractRef>,
    /// Contracts that may be there.
    pub optional: Vec<ContractRef>,
    /// Contracts no other active package may provide.
    pub conflicts: Vec<ContractRef>,
    /// Public schemas.
    pub contracts: Vec<ContractDecl>,
    /// Entry module.
    pub entry: Option<String>,
    /// Declared tools.
    pub tools: Vec<String>,
    /// Declared RPC actions.
    pub actions: Vec<String>,
    /// Player commands.
    pub commands: Vec<CommandDecl>,
    /// Services.
    pub services: Vec<ServiceDecl>,
    /// Extension providers.
    pub extensions: Vec<ExtensionDecl>,
    /// Hooks.
    pub hooks: Vec<HookDecl>,
    /// Wires.
    pub wires: Vec<String>,
    /// Form validators.
    pub forms: Vec<String>,
    /// Events.
    pub events: Vec<EventDecl>,
    /// Settings.
    pub settings: Vec<SettingDecl>,
    /// Data namespaces.
    pub data: Vec<DataDecl>,
    /// Projections of world sources.
    pub projections: Vec<ProjectionDecl>,
    /// UI specs.
    pub ui: Vec<UiDecl>,
    /// Static prompt parts.
    pub prompts: Vec<PromptDecl>,
    /// Messages: locale to (English, translation) pairs.
    pub messages: Vec<(String, Vec<(String, String)>)>,
    /// Runtimes, by id.
    pub runtimes: Vec<RuntimeDecl>,
    /// Every file of the package, by path.
    pub files: Vec<FileEntry>,
}}
