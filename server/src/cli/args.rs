//! The one definition of commands and flags: help, man pages and completions come from it too.

use std::{net::SocketAddr, path::PathBuf};

use clap::{Args, Parser, Subcommand, ValueEnum};
use covel_graph::EffectsPolicy;

/// Play stories whose world runs on plugins.
#[derive(Debug, Parser)]
#[command(name = "covel", version, max_term_width = 100, arg_required_else_help = true)]
#[command(after_help = "Log lines go to standard error; set COVEL_LOG (for example COVEL_LOG=debug) for more of them.")]
pub struct Cli {
    /// What to do
    #[command(subcommand)]
    pub command: Command,
}

/// Commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Play: a server with the page on this machine, the shipped packages, the offline storyteller
    Play(PlayArgs),
    /// Serve packages and worlds of your own
    Serve(ServeArgs),
    /// Run one player turn in this process and print what happened
    Turn(TurnArgs),
    /// Show what would run: stages, layers and every edge with the line that caused it
    Plan(PlanArgs),
    /// Plans a data folder keeps; snapshots and forks of its sessions
    Snapshot(SnapshotArgs),
    /// Begin a package: files that validate, type-check and pass their cases
    New(NewArgs),
    /// Check packages and worlds without running any of their code
    Validate(ValidateArgs),
    /// Run the cases of a package (tests/runtime-cases.json) with scripted model replies
    TestRuntime(TestArgs),
    /// Print committed plugin data
    Data(DataArgs),
    /// Show what a turn did: who ran, who waited for whom, what was read, kept and dropped
    Trace(TraceArgs),
    /// Run a recorded turn again, with what it took from outside, and compare byte by byte
    Replay(ReplayArgs),
    /// Print the background jobs of a session
    Jobs(JobsArgs),
    /// Measure what turns cost on this machine
    Bench(BenchArgs),
    /// Print the man page of covel, or of one of its commands
    Man(ManArgs),
    /// Print a completion script
    Completions(CompletionArgs),
    /// Print the version
    Version(JsonArgs),
}

/// `--json` alone.
#[derive(Debug, Args)]
pub struct JsonArgs {
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// `covel play`.
#[derive(Debug, Args)]
pub struct PlayArgs {
    /// Port on this machine; the next free one when it is taken, any free one for 0
    #[arg(long, value_name = "PORT", default_value_t = crate::config::DEFAULT_PORT)]
    pub port: u16,
    /// Data folder [default: a folder of the user]
    #[arg(long, value_name = "DIR", env = "COVEL_DATA", hide_env_values = true)]
    pub data: Option<PathBuf>,
    /// More packages, trusted
    #[arg(long, value_name = "DIR", num_args = 1..)]
    pub plugins: Vec<PathBuf>,
    /// More packages, from the community
    #[arg(long, value_name = "DIR", num_args = 1..)]
    pub community: Vec<PathBuf>,
    /// More worlds
    #[arg(long, value_name = "DIR", num_args = 1..)]
    pub world: Vec<PathBuf>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub effects: EffectsArgs,
    /// Models to use instead of the offline storyteller
    #[arg(long, value_name = "FILE")]
    pub llm: Option<PathBuf>,
    /// Print the address as one JSON document
    #[arg(long)]
    pub json: bool,
}

/// What is done about runtimes of one layer that touch the same thing.
// Without texts of their own, or every help that names them is set in the long form.
#[allow(missing_docs)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Effects {
    Warn,
    Strict,
}

impl From<Effects> for EffectsPolicy {
    fn from(effects: Effects) -> Self {
        match effects {
            Effects::Warn => EffectsPolicy::Warn,
            Effects::Strict => EffectsPolicy::Strict,
        }
    }
}

/// `--effects`, wherever turns run.
#[derive(Debug, Default, Args)]
pub struct EffectsArgs {
    /// Runtimes that touch the same thing and may run at once: only warn of them, or run them one by one [default: warn]
    #[arg(long, value_name = "POLICY", value_enum, env = "COVEL_EFFECTS_POLICY", hide_env_values = true)]
    pub effects: Option<Effects>,
}

impl EffectsArgs {
    /// The policy asked for.
    pub fn policy(&self) -> EffectsPolicy {
        self.effects.map_or_else(EffectsPolicy::default, EffectsPolicy::from)
    }
}

/// `covel serve`.
#[derive(Debug, Args)]
pub struct ServeArgs {
    /// Configuration file
    #[arg(long, value_name = "FILE")]
    pub config: PathBuf,
    /// Address to listen on, instead of the one in the file
    #[arg(long, value_name = "ADDRESS")]
    pub bind: Option<SocketAddr>,
    /// Data folder, instead of the one in the file
    #[arg(long, value_name = "DIR", env = "COVEL_DATA", hide_env_values = true)]
    pub data: Option<PathBuf>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub effects: EffectsArgs,
    /// Models, instead of those in the file
    #[arg(long, value_name = "FILE")]
    pub llm: Option<PathBuf>,
    /// Print the address as one JSON document
    #[arg(long)]
    pub json: bool,
}

/// Packages on a command line.
#[derive(Debug, Default, Args)]
pub struct PackageArgs {
    /// A package or a folder of packages, trusted (repeatable)
    #[arg(long, value_name = "DIR", num_args = 1..)]
    pub plugins: Vec<PathBuf>,
    /// A package or a folder of packages, from the community (repeatable)
    #[arg(long, value_name = "DIR", num_args = 1..)]
    pub community: Vec<PathBuf>,
    /// A community package whose code and runtimes may run (repeatable)
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    pub approve: Vec<String>,
    /// Use these packages only, and what they need [default: all]
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    pub enable: Option<Vec<String>>,
    /// Do not use these packages
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    pub exclude: Vec<String>,
    /// World
    #[arg(long, value_name = "DIR")]
    pub world: Option<PathBuf>,
}

/// `covel turn`.
#[derive(Debug, Args)]
pub struct TurnArgs {
    #[command(flatten)]
    #[allow(missing_docs)]
    pub packages: PackageArgs,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub effects: EffectsArgs,
    /// Data folder [default: a temporary one]
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Session, created when there is none of that id [default: a new one]
    #[arg(long, value_name = "ID")]
    pub session: Option<String>,
    /// What the player does
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub message: String,
    /// Language of a new session
    #[arg(long, value_name = "LOCALE")]
    pub locale: Option<String>,
    /// Seed of a new session: the same seed gives the same dice and the same offline story
    #[arg(long, value_name = "TEXT")]
    pub seed: Option<String>,
    /// A player setting of a new session, for example dice-check.sides=20 (repeatable)
    #[arg(long = "set", value_name = "PLUGIN.KEY=VALUE")]
    pub settings: Vec<String>,
    /// Model replies from a file instead of a model
    #[arg(long, value_name = "FILE", conflicts_with = "llm")]
    pub script: Option<PathBuf>,
    /// Models to use instead of the offline storyteller
    #[arg(long, value_name = "FILE")]
    pub llm: Option<PathBuf>,
    /// Run the background jobs of the session to their end; otherwise they stay in the data folder until a server
    /// or a later turn with this option takes them
    #[arg(long)]
    pub wait_jobs: bool,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// How `covel plan` prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PlanFormat {
    /// For reading
    Text,
    /// One JSON document
    Json,
    /// A Mermaid flow chart
    Mermaid,
    /// A Graphviz graph
    Dot,
}

/// `covel plan`.
#[derive(Debug, Args)]
pub struct PlanArgs {
    #[command(flatten)]
    #[allow(missing_docs)]
    pub packages: PackageArgs,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub effects: EffectsArgs,
    /// Form of the plan [default: text]
    #[arg(long, value_enum)]
    pub format: Option<PlanFormat>,
    /// Explain one runtime: what starts it, whom it waits for and who waits for it
    #[arg(long, value_name = "RUNTIME", conflicts_with = "format")]
    pub why: Option<String>,
    /// What changes from folder A to folder B: runtimes, edges, contracts, capabilities
    #[arg(
        long,
        num_args = 2,
        value_names = ["A", "B"],
        conflicts_with_all = ["why", "format", "plugins", "community", "approve", "enable", "exclude", "world"]
    )]
    pub diff: Option<Vec<PathBuf>>,
    /// The same as --format json
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
}

/// `covel snapshot`.
#[derive(Debug, Args)]
#[command(arg_required_else_help = true)]
pub struct SnapshotArgs {
    /// What to do with them
    #[command(subcommand)]
    pub action: SnapshotAction,
}

/// What `covel snapshot` does.
#[derive(Debug, Subcommand)]
pub enum SnapshotAction {
    /// List stored plans: digest, packages, size, the sessions that use them
    Ls(SnapshotListArgs),
    /// Show one stored plan, from its archive alone
    Show(SnapshotShowArgs),
    /// Find plans, package versions and files no session needs; remove them with --yes
    Gc(SnapshotGcArgs),
    /// Note the state of a session, to fork it from there later
    Create(SnapshotCreateArgs),
    /// Make a new session that is what another one is, or was
    Fork(SnapshotForkArgs),
}

/// `covel snapshot create`.
#[derive(Debug, Args)]
pub struct SnapshotCreateArgs {
    /// Session
    #[arg(value_name = "SESSION")]
    pub session: String,
    /// Data folder
    #[arg(long, value_name = "DIR")]
    pub data: PathBuf,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// `covel snapshot fork`.
#[derive(Debug, Args)]
pub struct SnapshotForkArgs {
    /// Session to fork
    #[arg(value_name = "SESSION")]
    pub session: String,
    /// Data folder
    #[arg(long, value_name = "DIR")]
    pub data: PathBuf,
    /// Start from this snapshot [default: the state now]
    #[arg(long, value_name = "SNAPSHOT", conflicts_with = "turn")]
    pub from: Option<String>,
    /// Start right after this turn
    #[arg(long, value_name = "TURN")]
    pub turn: Option<String>,
    /// Id of the new session [default: a fresh one]
    #[arg(long, value_name = "SESSION")]
    pub id: Option<String>,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// `covel snapshot ls`.
#[derive(Debug, Args)]
pub struct SnapshotListArgs {
    /// Data folder
    #[arg(long, value_name = "DIR")]
    pub data: PathBuf,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// `covel snapshot show`.
#[derive(Debug, Args)]
pub struct SnapshotShowArgs {
    /// Digest of the plan, or its beginning
    #[arg(value_name = "DIGEST")]
    pub digest: String,
    /// Data folder
    #[arg(long, value_name = "DIR")]
    pub data: PathBuf,
    /// Form of the plan [default: text]
    #[arg(long, value_enum)]
    pub format: Option<PlanFormat>,
    /// The same as --format json
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
}

/// `covel snapshot gc`.
#[derive(Debug, Args)]
pub struct SnapshotGcArgs {
    /// Data folder
    #[arg(long, value_name = "DIR")]
    pub data: PathBuf,
    /// Remove them; without this they are only listed
    #[arg(long)]
    pub yes: bool,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// What `covel new` begins with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Template {
    /// A function runtime with a setting, an event and stored data
    #[default]
    Function,
    /// An agent with a tool of its own
    Agent,
    /// A panel, the runtime its button starts, and an action
    Panel,
    /// A service other packages call
    Service,
    /// A provider of prompt segments
    Extension,
}

/// `covel new`.
#[derive(Debug, Args)]
pub struct NewArgs {
    /// Id of the package, and name of its folder: a lowercase letter, then lowercase letters, digits and `-`
    #[arg(value_name = "NAME", required_unless_present = "types")]
    pub name: Option<String>,
    /// What to begin with
    #[arg(long, value_enum, value_name = "TEMPLATE", default_value_t = Template::Function)]
    pub template: Template,
    /// Folder to make it in
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub dir: PathBuf,
    /// Make nothing; write the types this version knows into the node_modules of a package that is there
    #[arg(long, value_name = "DIR", conflicts_with_all = ["name", "template", "dir"])]
    pub types: Option<PathBuf>,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// A schema `covel validate` can print.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SchemaKind {
    /// Front matter of PLUGIN.md
    Plugin,
    /// Front matter of RUNTIME.md
    Runtime,
}

/// `covel validate`.
#[derive(Debug, Args)]
pub struct ValidateArgs {
    /// Packages, worlds, or folders of them
    #[arg(value_name = "DIR", required_unless_present = "schema")]
    pub dirs: Vec<PathBuf>,
    /// Treat warnings as errors
    #[arg(long)]
    pub warnings_as_errors: bool,
    /// Print the JSON Schema of a manifest, for editors, and check nothing
    #[arg(long, value_enum, value_name = "KIND", conflicts_with_all = ["dirs", "warnings_as_errors"])]
    pub schema: Option<SchemaKind>,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// `covel test-runtime`.
#[derive(Debug, Args)]
pub struct TestArgs {
    /// A package folder, or a package id below --plugins-dir; with /RUNTIME, only cases of that runtime
    #[arg(value_name = "DIR|ID")]
    pub target: String,
    /// Folder of packages: where ids are looked for [default: the folder that holds the package]
    #[arg(long, value_name = "DIR")]
    pub plugins_dir: Option<PathBuf>,
    /// Run this case only
    #[arg(long = "case", value_name = "NAME")]
    pub case_name: Option<String>,
    /// Load this package too (repeatable); a case's own withPlugins goes before it
    #[arg(long, value_name = "ID")]
    pub with_plugin: Vec<String>,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// `covel jobs`.
#[derive(Debug, Args)]
pub struct JobsArgs {
    /// Session
    #[arg(value_name = "SESSION")]
    pub session: String,
    /// Data folder
    #[arg(long, value_name = "DIR")]
    pub data: PathBuf,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// `covel data`.
#[derive(Debug, Args)]
pub struct DataArgs {
    /// Data folder
    #[arg(long, value_name = "DIR")]
    pub data: PathBuf,
    /// Session
    #[arg(long, value_name = "ID")]
    pub session: String,
    /// Of this package only
    #[arg(long, value_name = "ID")]
    pub plugin: Option<String>,
    /// Of this namespace only
    #[arg(long, value_name = "NS")]
    pub namespace: Option<String>,
    /// Hidden and kernel namespaces too
    #[arg(long)]
    pub hidden: bool,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// `covel trace`.
#[derive(Debug, Args)]
pub struct TraceArgs {
    /// Session
    #[arg(value_name = "SESSION")]
    pub session: String,
    /// Turn: its id, the number of a player turn, or `last`
    #[arg(value_name = "TURN")]
    pub turn: String,
    /// Data folder
    #[arg(long, value_name = "DIR")]
    pub data: PathBuf,
    /// Write a picture of it, one HTML file that needs nothing else
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// `covel replay`.
#[derive(Debug, Args)]
pub struct ReplayArgs {
    /// Session
    #[arg(value_name = "SESSION")]
    pub session: String,
    /// Turn: its id, the number of a player turn, or `last`
    #[arg(value_name = "TURN")]
    pub turn: String,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub packages: PackageArgs,
    /// Data folder
    #[arg(long, value_name = "DIR")]
    pub data: PathBuf,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// `covel man`.
#[derive(Debug, Args)]
pub struct ManArgs {
    /// Command whose page is wanted
    #[arg(value_name = "COMMAND")]
    pub page: Option<String>,
}

/// `covel completions`.
#[derive(Debug, Args)]
pub struct CompletionArgs {
    /// Shell
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}

/// `covel bench`.
#[derive(Debug, Args)]
pub struct BenchArgs {
    /// What to measure [default: all]
    #[arg(long, value_name = "PROFILE", value_enum, value_delimiter = ',')]
    pub profile: Vec<BenchProfile>,
    /// Seconds for each profile
    #[arg(long, value_name = "SECONDS", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=600))]
    pub seconds: u16,
    /// Folder to measure in, and to keep the last run in [default: a temporary one, and a folder of the user]
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Print one JSON document; times in microseconds
    #[arg(long)]
    pub json: bool,
}

/// What `covel bench` measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum BenchProfile {
    /// Walking plans of runtimes that do nothing
    Scheduler,
    /// Turns of JavaScript runtimes
    Js,
    /// Durable turns beside raw syncs, and many sessions at once
    Durable,
    /// Turns over HTTP, event streams back
    Http,
    /// Agents around a model that answers at once
    Agents,
}

impl BenchProfile {
    /// All of them, in the order they are measured.
    pub const ALL: [Self; 5] = [Self::Scheduler, Self::Js, Self::Durable, Self::Http, Self::Agents];

    /// As on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Scheduler => "scheduler",
            Self::Js => "js",
            Self::Durable => "durable",
            Self::Http => "http",
            Self::Agents => "agents",
        }
    }
}
