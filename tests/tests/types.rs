//! The TypeScript compiler over the author's library, the shipped packages, what `covel new` makes, and programs with
//! mistakes. It is installed from `typescript/package-lock.json`; Node.js and npm must be on the PATH.
#![allow(clippy::unwrap_used)]

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::{Arc, OnceLock},
};

use covel_abi::author::NODE_MODULES;
use covel_exec::{Engine, EngineOptions, ExecutionKind, ExecutionRequest, NewSession, ScriptedGateway};
use covel_graph::package::{Discovery, compile_in_memory};
use covel_server::cli::{self, Streams, logging::Logs};
use tempfile::TempDir;

/// As a package of `covel new` has it, for code anywhere below a folder.
const PROJECT: &str = include_str!("../../server/templates/common/tsconfig.json");

fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// The compiler's script.
fn compiler() -> &'static Path {
    static COMPILER: OnceLock<PathBuf> = OnceLock::new();
    COMPILER.get_or_init(|| {
        let (work, source) = (Path::new(env!("CARGO_TARGET_TMPDIR")).join("typescript"), here("typescript"));
        fs::create_dir_all(&work).unwrap();
        let script = work.join("node_modules/typescript/bin/tsc");
        let stamp = work.join("installed.json");
        let lock = fs::read(source.join("package-lock.json")).unwrap();
        if !script.is_file() || fs::read(&stamp).ok().as_ref() != Some(&lock) {
            for file in ["package.json", "package-lock.json", ".npmrc"] {
                fs::copy(source.join(file), work.join(file)).unwrap();
            }
            let npm = Command::new("npm").current_dir(&work).args(["ci", "--ignore-scripts"]).output().unwrap();
            assert!(npm.status.success(), "npm ci failed: {}", String::from_utf8_lossy(&npm.stderr));
            fs::write(&stamp, lock).unwrap();
        }
        script
    })
}

/// One complaint: file, line, code, message.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Complaint {
    file: String,
    line: usize,
    code: String,
    message: String,
}

/// What the compiler says of the project in a folder.
fn check(folder: &Path) -> Vec<Complaint> {
    let run = Command::new("node")
        .arg(compiler())
        .args(["-p", ".", "--pretty", "false"])
        .current_dir(folder)
        .output()
        .unwrap();
    let text = String::from_utf8(run.stdout).unwrap();
    let mut complaints: Vec<Complaint> = Vec::new();
    for line in text.lines() {
        // `error TS2688: Words.` is about the project itself.
        if let Some((code, message)) = line.strip_prefix("error ").and_then(|rest| rest.split_once(": ")) {
            complaints.push(Complaint { file: String::new(), line: 0, code: code.into(), message: message.into() });
            continue;
        }
        // `a/b.ts(3,5): error TS2322: Words.`, then indented lines that say more.
        let Some((place, rest)) = line.split_once("): error ").filter(|_| !line.starts_with(' ')) else {
            match complaints.last_mut() {
                Some(last) if line.starts_with(' ') => last.message.push_str(line),
                _ => panic!("{line}\n{text}"),
            }
            continue;
        };
        let (file, at) = place.rsplit_once('(').unwrap();
        let (code, message) = rest.split_once(": ").unwrap();
        let line = at.split(',').next().unwrap().parse().unwrap();
        complaints.push(Complaint { file: file.into(), line, code: code.into(), message: message.into() });
    }
    assert_eq!(run.status.success(), complaints.is_empty(), "{text}{}", String::from_utf8_lossy(&run.stderr));
    complaints.sort();
    complaints
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// An empty project that finds the SDK and zod as `covel new` lays them out.
fn project() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in NODE_MODULES {
        write(&folder.path().join("node_modules").join(path), text);
    }
    write(&folder.path().join("package.json"), r#"{ "name": "checked", "private": true, "type": "module" }"#);
    write(&folder.path().join("tsconfig.json"), PROJECT);
    folder
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_name() == "node_modules" {
            continue;
        }
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// A command line of the program, in this process.
fn covel(arguments: &[&str]) -> (u8, String) {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let logs = Logs::default();
    let line = ["covel"].iter().chain(arguments).map(Into::into);
    let status = cli::run(line, &mut Streams { out: &mut out, err: &mut err, logs: &logs });
    (status, format!("{}{}", String::from_utf8_lossy(&out), String::from_utf8_lossy(&err)))
}

/// A declaration of the SDK.
fn declarations(file: &str) -> String {
    fs::read_to_string(here("../abi/sdk/src").join(format!("{file}.d.ts"))).unwrap()
}

/// Members an interface declares itself, each with whether it may be missing.
fn members(name: &str) -> BTreeMap<String, bool> {
    let texts = ["contexts", "services", "extension-points", "hooks", "plugin-api"].map(declarations);
    let start = format!("export interface {name}");
    let (text, at) = texts
        .iter()
        .find_map(|text| {
            let at = text.match_indices(&start).find(|(at, _)| text[at + start.len()..].starts_with([' ', '<']))?.0;
            Some((text, at))
        })
        .unwrap_or_else(|| panic!("no interface {name}"));
    text[at..]
        .lines()
        .skip(1)
        .take_while(|line| *line != "}")
        .filter_map(|line| {
            let line = line.strip_prefix("  ").filter(|line| line.starts_with(char::is_alphabetic))?;
            let line = line.strip_prefix("readonly ").unwrap_or(line);
            let end = line.find(|c: char| !c.is_alphanumeric())?;
            Some((line[..end].to_owned(), line[end..].starts_with('?')))
        })
        .collect()
}

/// Members of an interface and those it extends. What is declared again is what the last one says.
fn all_members(names: &[&str]) -> BTreeMap<String, bool> {
    names.iter().flat_map(|name| members(name)).collect()
}

/// The guide's tables name the members and exports that are declared, in the same words.
///
/// Covers: SDK-1
#[test]
fn the_guide_lists_what_is_declared() {
    let guide = fs::read_to_string(here("../docs/authors.md")).unwrap();
    let guide = guide.split_once("\n## Types\n").unwrap().1;
    let listed = |name: &str| -> Vec<String> {
        let row = guide.lines().find(|line| line.starts_with(&format!("| `{name}` |")));
        let row = row.unwrap_or_else(|| panic!("the guide has no row of {name}"));
        let mut names: Vec<String> = row.split('`').rev().nth(1).unwrap().split(' ').map(str::to_owned).collect();
        names.sort();
        names
    };
    for name in [
        "CallIdentity",
        "GuardContext",
        "FunctionContext",
        "ToolContext",
        "RpcContext",
        "BaseServiceContext",
        "ServiceContext",
        "WriteServiceContext",
        "ExtensionContext",
        "HookContext",
        "PluginAPI",
    ] {
        assert_eq!(listed(name), members(name).into_keys().collect::<Vec<_>>(), "{name}");
    }
    let index = declarations("index");
    let modules = index.lines().filter_map(|line| line.strip_prefix("export * from \"./")?.strip_suffix(".js\";"));
    for module in modules.chain(["extension-points", "plugin-api", "dimensions", "prompts"]) {
        let text = declarations(module);
        let mut names: Vec<&str> = text
            .lines()
            .filter_map(|line| {
                let rest = line.strip_prefix("export ")?;
                let rest = ["function ", "const ", "class "].iter().find_map(|kind| rest.strip_prefix(kind))?;
                rest.split(|c: char| !c.is_alphanumeric() && c != '_').next()
            })
            .collect();
        names.sort_unstable();
        assert_eq!(listed(module), names, "{module}");
    }
}

/// What the host gives is declared, and what is declared without a question mark is given.
///
/// Covers: SDK-1
#[tokio::test(flavor = "multi_thread")]
async fn contexts_are_what_their_types_say() {
    let manifest = "---\nid: looker\nkind: plugin\ndescription: Looks at its contexts.\nentry: ./entry.js\n\
        contributes: { actions: [look], commands: [{ name: look, description: Looks., action: look }], tools: [look], services: [looker.look@1, { contract: looker.change@1, access: write }] }\n---\n";
    let function = "---\ntype: function\nschedule: { trigger: { type: manual } }\nfunction: { handler: ./handler.js, tools: { plugin: [look] } }\n---\n";
    let agent = "---\ntype: agent\nschedule: { stage: pre-turn }\nagent: { model: plugin }\nguard: ./guard.js\n---\nNever asked.\n";
    let entry = "export default function (covel) {
        const { tool, z } = covel.toolkit;
        covel.registerTool(tool({ name: 'look', description: 'l', parameters: z.object({}), execute: (_, ctx) => ({ keys: Object.keys(ctx) }) }));
        const [input, output] = [z.any(), z.any()];
        covel.registerService({ name: 'look', contract: 'looker.look@1', input, output, handler: (_, ctx) => Object.keys(ctx) });
        covel.registerService({ name: 'change', contract: 'looker.change@1', access: 'write', input, output, handler: (_, ctx) => Object.keys(ctx) });
        covel.registerRpc('look', (_, ctx) => ({ ok: true, data: { RpcContext: Object.keys(ctx), ActionStore: Object.keys(ctx.store) } }));
        globalThis.api = Object.keys(covel);
    }";
    let handler = "export default async (ctx) => ({ outcome: 'success', value: {
        FunctionContext: Object.keys(ctx), PluginAPI: globalThis.api, ToolContext: (await ctx.tools.call('look', {})).keys,
        ServiceContext: await ctx.services.call({ contract: 'looker.look@1', input: {} }) } });";
    let other = "---\nid: other\nkind: plugin\ndescription: Calls a write service.\nruntime:\n  type: function\n  schedule: { trigger: { type: manual } }\n  \
        function: { handler: ./h.js }\n---\n";
    let calls = "export default async (ctx) => ({ outcome: 'success', value: { WriteServiceContext: await ctx.services.call({ contract: 'looker.change@1', input: {} }) } });";
    let guard = "export default async (ctx) => ({ skip: true, GuardContext: Object.keys(ctx) });";
    let looker = compile_in_memory(
        &[
            ("PLUGIN.md", manifest),
            ("entry.js", entry),
            ("runtimes/see/RUNTIME.md", function),
            ("runtimes/see/handler.js", handler),
            ("runtimes/ask/RUNTIME.md", agent),
            ("runtimes/ask/guard.js", guard),
        ],
        Discovery::Builtin,
    );
    let other = compile_in_memory(&[("PLUGIN.md", other), ("h.js", calls)], Discovery::Builtin);
    let packages = [looker, other].map(|made| made.package.unwrap_or_else(|| panic!("{:?}", made.diagnostics)));
    let folder = tempfile::tempdir().unwrap();
    let mut options = EngineOptions::new(folder.path(), Arc::new(ScriptedGateway::new(Vec::new())));
    options.durable = false;
    let engine = Engine::open(options).unwrap();
    for state in engine.publish(packages.to_vec()).await {
        assert_eq!(state.error, None);
    }
    let session = engine.create_session(NewSession::default()).await.unwrap().id;
    let mut seen: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for runtime in [None, Some("looker/see"), Some("other")] {
        let mut request = ExecutionRequest::player(&session, "hello");
        if let Some(runtime) = runtime {
            request.kind = ExecutionKind::Manual {
                runtime_id: runtime.into(),
                payload: serde_json::json!({}).into(),
                message: String::new(),
                ignore_upstreams: false,
            };
        }
        let turn = engine.execute(request, None).await.unwrap();
        assert!(turn.committed, "{turn:#?}");
        for row in &turn.runtimes {
            let output = row.output.as_ref().unwrap_or_else(|| panic!("{row:#?}"));
            seen.extend(serde_json::from_value::<BTreeMap<String, Vec<String>>>(output.value().clone()).unwrap());
        }
    }
    let looked = engine.command(&session, "/look", None).await.unwrap().data.unwrap();
    seen.extend(serde_json::from_value::<BTreeMap<String, Vec<String>>>(looked.value().clone()).unwrap());
    let interfaces: [(&str, &[&str]); 8] = [
        ("RpcContext", &["RpcContext"]),
        ("ActionStore", &["StoreReader", "ActionStore"]),
        ("GuardContext", &["CallIdentity", "GuardContext"]),
        ("FunctionContext", &["CallIdentity", "GuardContext", "FunctionContext"]),
        ("ToolContext", &["CallIdentity", "ToolContext"]),
        ("ServiceContext", &["BaseServiceContext", "ServiceContext"]),
        ("WriteServiceContext", &["BaseServiceContext", "WriteServiceContext"]),
        ("PluginAPI", &["PluginAPI"]),
    ];
    let mut wrong = Vec::new();
    for (name, parts) in interfaces {
        let declared = all_members(parts);
        let given = seen.get(name).unwrap_or_else(|| panic!("{name} was not seen: {seen:?}"));
        // An action's context has parts of a runtime's; only those of its type are promised.
        if name != "RpcContext" {
            let unknown = given.iter().filter(|key| !declared.contains_key(*key));
            wrong.extend(unknown.map(|key| format!("{name}.{key} is not declared")));
        }
        let missing = declared.iter().filter(|(key, optional)| !**optional && !given.contains(key));
        wrong.extend(missing.map(|(key, _)| format!("{name}.{key} is declared, but not given")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Implementations fit their declarations, and the declarations stand on their own.
///
/// Covers: SDK-1
#[test]
fn the_authors_library() {
    let folder = project();
    let sdk = folder.path().join("sdk");
    copy(&here("../abi/sdk"), &sdk);
    assert_eq!(check(&sdk), []);
}

/// Covers: SDK-1
#[test]
fn the_shipped_packages() {
    let folder = project();
    let plugins = here("../plugins");
    let mut files = 0;
    for entry in fs::read_dir(&plugins).unwrap() {
        let entry = entry.unwrap();
        if entry.path().join("PLUGIN.md").is_file() {
            copy(&entry.path(), &folder.path().join(entry.file_name()));
            files += 1;
        }
    }
    assert!(files >= 5);
    assert_eq!(check(folder.path()), []);
}

/// Each template validates, passes its cases and type-checks, and its cases are not of the kind that cannot fail.
///
/// Covers: SDK-1
#[test]
fn what_covel_new_makes() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().display().to_string();
    for template in ["function", "agent", "panel", "service", "extension"] {
        let name = format!("my-{template}");
        let package = folder.path().join(&name);
        let path = package.display().to_string();
        let (status, text) = covel(&["new", &name, "--template", template, "--dir", &dir]);
        assert_eq!(status, 0, "{text}");
        let (status, text) = covel(&["validate", &path, "--warnings-as-errors"]);
        assert_eq!(status, 0, "{template}: {text}");
        let (status, text) = covel(&["test-runtime", &path]);
        assert_eq!(status, 0, "{template}: {text}");
        assert_eq!(check(&package), [], "{template}");
        // A mistake in its code is found, so the check looks at it.
        let code = fs::read_dir(package.join("server")).unwrap().next().unwrap().unwrap().path();
        fs::write(&code, format!("{}\nexport const wrong = fetch;\n", fs::read_to_string(&code).unwrap())).unwrap();
        assert_eq!(check(&package).len(), 1, "{template}");
    }
}

/// A checkout of a package holds no `node_modules`; the types come back by command.
#[test]
fn types_are_written_again() {
    let folder = tempfile::tempdir().unwrap();
    let (dir, package) = (folder.path().display().to_string(), folder.path().join("tide"));
    assert_eq!(covel(&["new", "tide", "--dir", &dir]).0, 0);
    fs::remove_dir_all(package.join("node_modules")).unwrap();
    assert!(!check(&package).is_empty());
    let (status, text) = covel(&["new", "--types", &package.display().to_string()]);
    assert_eq!((status, check(&package)), (0, vec![]), "{text}");
}

/// Covers: SDK-1, SDK-4
#[test]
fn programs_with_mistakes() {
    let folder = project();
    let cases = here("cases/types");
    copy(&cases, folder.path());
    let mut wanted: BTreeMap<(String, usize), (String, String)> = BTreeMap::new();
    for entry in fs::read_dir(&cases).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if !name.ends_with(".ts") && !name.ends_with(".js") {
            continue;
        }
        let text = fs::read_to_string(cases.join(&name)).unwrap();
        for (at, line) in text.lines().enumerate() {
            if let Some((_, note)) = line.split_once("//~ ") {
                let (code, words) = note.split_once(' ').unwrap();
                wanted.insert((name.clone(), at + 1), (code.to_owned(), words.to_owned()));
            }
        }
    }
    assert!(wanted.len() >= 50, "{}", wanted.len());
    let mut wrong = Vec::new();
    for Complaint { file, line, code, message } in check(folder.path()) {
        match wanted.remove(&(file.clone(), line)) {
            Some((expected, words)) if expected == code && message.contains(&words) => {}
            Some((expected, words)) => {
                wrong.push(format!("{file}:{line}: wanted {expected} {words}, found {code} {message}"))
            }
            None => wrong.push(format!("{file}:{line}: {code} {message}")),
        }
    }
    wrong.extend(wanted.iter().map(|((file, line), (code, _))| format!("{file}:{line}: {code} is not found")));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
