//! A row as written, and the packages it becomes.

use std::{collections::BTreeMap, sync::Arc};

use covel_graph::package::{Discovery, Package, compile_in_memory};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::kit::{Kit, STEPS, Service, Tool};

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Row {
    pub id: String,
    pub says: String,
    /// Why the row cannot be played yet.
    pub pending: Option<String>,
    /// It takes more than one turn to show: `<file>::<test>` that does.
    pub shown_in: Option<String>,
    /// Schemas of public contracts.
    #[serde(default)]
    pub contracts: BTreeMap<String, Value>,
    /// Schemas of topics; those not listed take any object.
    #[serde(default)]
    pub topics: BTreeMap<String, Value>,
    /// Schemas of records, by namespace.
    #[serde(default)]
    pub stores: BTreeMap<String, Value>,
    #[serde(default)]
    pub runtimes: BTreeMap<String, Runtime>,
    /// Services, as `package/name`.
    #[serde(default)]
    pub services: BTreeMap<String, Service>,
    /// Tools, as `package/name`.
    #[serde(default)]
    pub tools: BTreeMap<String, Tool>,
    /// What write services staged, as `provider service caller status [code]`, in order.
    pub operations: Option<Vec<String>>,
    /// Service calls, as `caller > provider name outcome [code]`, in order.
    pub calls: Option<Vec<String>>,
    /// What was published, and played for one turn, before.
    pub before: Option<Box<Before>>,
    /// Asks for one runtime by name instead of a player turn.
    pub manual: Option<String>,
    pub payload: Option<Value>,
    /// `before`: cancelled before it began; otherwise when this runtime has started.
    pub cancel: Option<String>,
    /// Turns played; what is stated is about the last.
    #[serde(default = "one")]
    pub turns: u32,
    /// What each runtime came to: an [`Ending`], or only its `is`.
    #[serde(default)]
    pub ends: BTreeMap<String, Value>,
    /// The packages are refused with this code before anything runs.
    pub unloadable: Option<String>,
    /// Nothing is kept, for this reason.
    pub refused: Option<String>,
    /// Dropped alone at commit, and why.
    #[serde(default)]
    pub isolated: BTreeMap<String, String>,
    /// Every record after it, as `namespace/key`.
    pub data: Option<BTreeMap<String, Value>>,
    /// Codes of notes that must be there.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Events that count, as `topic depth runtime`.
    pub events: Option<Vec<String>>,
    /// Runtimes that will run as jobs, in order.
    pub jobs: Option<Vec<String>>,
    /// Stored messages, as `role: text`.
    pub messages: Option<Vec<String>>,
    /// Counted player turns.
    pub count: Option<u32>,
    pub phase: Option<String>,
    /// The next turn of the same session has this outcome too (a row about misbehaving code).
    #[serde(default)]
    pub again: bool,
}

fn one() -> u32 {
    1
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Before {
    #[serde(default)]
    pub contracts: BTreeMap<String, Value>,
    pub runtimes: BTreeMap<String, Runtime>,
}

/// A runtime as written.
#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Runtime {
    pub stage: Option<String>,
    /// Follows this topic.
    pub on: Option<String>,
    #[serde(default)]
    pub background: bool,
    #[serde(default)]
    pub manual_only: bool,
    #[serde(default)]
    pub needs: Vec<Value>,
    #[serde(default)]
    pub after: Vec<Value>,
    #[serde(default)]
    pub inputs: BTreeMap<String, Value>,
    /// Tools of its package that it may call.
    #[serde(default)]
    pub tools: Vec<String>,
    /// Its result is this contract.
    pub gives: Option<String>,
    /// Its result is kept as this export.
    pub records: Option<String>,
    /// It is the story and tells this.
    pub tells: Option<String>,
    /// Reads, writes and events, in order.
    #[serde(default)]
    pub does: Vec<Value>,
    /// It is refused at commit: it tests a record that a sibling of its layer has changed by then.
    #[serde(default)]
    pub clashes: bool,
    pub returns: Option<Value>,
    /// What a handler's result says beside its value.
    pub effects: Option<Value>,
    pub completion: Option<String>,
    pub throws: Option<String>,
    pub fails: Option<String>,
    pub skips: Option<String>,
    pub suspends: Option<String>,
    /// It never ends by itself.
    #[serde(default)]
    pub parks: bool,
    /// An agent that is kept from running by its guard, which answers this.
    pub guard: Option<Value>,
    /// The handler's body as code.
    pub code: Option<String>,
    /// Budget of attempts.
    pub budget: Option<u32>,
    #[serde(skip)]
    is_rival: bool,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Ending {
    /// `success` (when not stated), `failed <code>`, `skipped <reason>`, `suspended`, `absent`.
    pub is: Option<String>,
    /// Part of its output; `TURN` stands for this turn's id, `BEFORE` for the one before.
    pub sees: Option<Value>,
    /// Words of its error.
    pub says: Option<String>,
    pub layer: Option<u32>,
    pub depth: Option<u32>,
    pub reads_from: Option<Vec<String>>,
}

/// `a` is `story/a`; `w/a` stays.
pub fn full(name: &str) -> String {
    if name.contains('/') { name.to_owned() } else { format!("story/{name}") }
}

const HANDLER: &str = r#"
export default async (ctx) => {
  const read = {};
  const events = [];
  await play(ctx, DOES, read, events);
  const saw = { inputs: { ...ctx.inputs }, read, event: ctx.triggerEvent, activation: ctx.activation };
  BODY
};
"#;

impl Runtime {
    fn body(&self) -> String {
        if let Some(code) = &self.code {
            return code.clone();
        }
        let text = |value: &str| json!(value).to_string();
        if let Some(message) = &self.throws {
            return format!("throw new Error({});", text(message));
        }
        let with = "effects: { events, ...EFFECTS }";
        let effects = self.effects.clone().unwrap_or_else(|| json!({}));
        let body = if let Some(message) = &self.fails {
            format!("return {{ outcome: 'failed', error: {}, {with} }};", text(message))
        } else if let Some(reason) = &self.skips {
            format!("return {{ outcome: 'skipped', skipReason: {}, {with} }};", text(reason))
        } else if let Some(reason) = &self.suspends {
            format!("return {{ outcome: 'suspended', reason: {} }};", text(reason))
        } else if self.parks {
            "return new Promise(() => {});".to_owned()
        } else {
            let value = match (&self.tells, &self.returns) {
                (Some(told), _) => format!("{{ narrativeOutput: {}, ...saw }}", text(told)),
                (None, Some(value)) => value.to_string(),
                (None, None) => "saw".to_owned(),
            };
            let completion =
                self.completion.as_ref().map_or(String::new(), |word| format!("completion: {}, ", text(word)));
            format!("return {{ outcome: 'success', value: {value}, {completion}{with} }};")
        };
        body.replace("EFFECTS", &effects.to_string())
    }

    fn steps(&self, clash: Option<&str>) -> Value {
        let mut steps = self.does.clone();
        if let Some(name) = clash {
            steps.push(json!({"clash": name, "first": self.is_rival}));
        }
        Value::Array(steps)
    }

    /// The sibling a clashing runtime clashes with: it ends in the same layer and is committed first.
    fn rival(&self) -> Self {
        Self {
            stage: self.stage.clone(),
            on: self.on.clone(),
            manual_only: self.manual_only,
            needs: self.needs.clone(),
            after: self.after.clone(),
            inputs: self.inputs.clone(),
            returns: Some(json!({})),
            is_rival: true,
            ..Self::default()
        }
    }

    fn files(&self, id: &str, clash: Option<&str>) -> Vec<(String, String)> {
        let (_, local) = id.split_once('/').unwrap();
        let folder = format!("runtimes/{local}");
        let mut files = Vec::new();
        let mut inputs = Map::new();
        for (name, written) in &self.inputs {
            let mut from = written.as_object().unwrap().clone();
            let mut input = Map::new();
            for key in ["scope", "select", "required", "recordAs"] {
                if let Some(value) = from.remove(key) {
                    input.insert(key.into(), value);
                }
            }
            match from.remove("accepts") {
                Some(Value::String(contract)) => {
                    input.insert("accepts".into(), json!(format!("contract:{contract}")));
                }
                Some(schema) => {
                    let path = format!("{name}.json");
                    files.push((format!("{folder}/{path}"), schema.to_string()));
                    input.insert("accepts".into(), json!(format!("./{path}")));
                }
                None => {}
            }
            if let Some(Value::String(runtime)) = from.get_mut("runtime") {
                *runtime = full(runtime);
            }
            input.insert("from".into(), Value::Object(from));
            inputs.insert(name.clone(), Value::Object(input));
        }
        let mut io = json!({"inputs": inputs});
        let mut output = Map::new();
        if let Some(contract) = &self.gives {
            output.insert("contract".into(), json!(contract));
        }
        if let Some(key) = &self.records {
            output.insert("recordAs".into(), json!(key));
            output.insert("schema".into(), json!("../../any.json"));
        }
        if !output.is_empty() {
            io["output"] = Value::Object(output);
        }
        if self.tells.is_some() {
            io["visibility"] = json!("story");
        }
        let named = |list: &[Value]| -> Vec<Value> {
            list.iter().map(|one| one.as_str().map_or_else(|| one.clone(), |name| json!(full(name)))).collect()
        };
        let mut schedule = json!({"needs": named(&self.needs), "after": named(&self.after)});
        match (&self.on, self.manual_only) {
            (Some(topic), _) => schedule["trigger"] = json!({"type": "event", "topic": topic}),
            (None, true) => schedule["trigger"] = json!({"type": "manual"}),
            (None, false) => schedule["stage"] = json!(self.stage.as_deref().unwrap_or("pre-turn")),
        }
        if self.background {
            schedule["manual"] = json!({"execution": "background"});
        }
        if let Some(budget) = self.budget {
            schedule["trigger"] = json!({"type": "auto", "maxTriggerCount": budget});
        }
        let mut manifest = json!({"schedule": schedule, "io": io});
        if let Some(answer) = &self.guard {
            manifest["type"] = json!("agent");
            manifest["guard"] = json!("./guard.js");
            files.push((format!("{folder}/guard.js"), format!("export default () => ({answer});")));
        } else {
            manifest["type"] = json!("function");
            manifest["function"] = json!({"handler": "./handler.js", "timeoutMs": 5000});
            if !self.tools.is_empty() {
                manifest["function"]["tools"] = json!({"plugin": self.tools});
            }
            let code = STEPS.to_owned() + HANDLER;
            let code = code.replace("DOES", &self.steps(clash).to_string()).replace("BODY", &self.body());
            files.push((format!("{folder}/handler.js"), code));
        }
        let prompt = if self.guard.is_some() { "Look around.\n" } else { "" };
        files.push((format!("{folder}/RUNTIME.md"), format!("---\n{manifest}\n---\n{prompt}")));
        files
    }

    fn wants(&self) -> Vec<String> {
        let mut found: Vec<String> = Vec::new();
        let mut note = |value: &Value| found.extend(value["contract"].as_str().map(str::to_owned));
        self.needs.iter().chain(&self.after).chain(self.inputs.values()).for_each(&mut note);
        let accepted = self.inputs.values().filter_map(|input| input["accepts"].as_str().map(str::to_owned));
        found.extend(accepted);
        found
    }

    fn topics(&self) -> impl Iterator<Item = String> + '_ {
        let emitted = self.does.iter().filter_map(|step| step["emit"].as_str().map(str::to_owned));
        emitted.chain(self.on.clone())
    }
}

/// Writes runtimes out as packages and compiles them; the error is the codes of the diagnostics.
pub fn packages(
    runtimes: &BTreeMap<String, Runtime>,
    contracts: &BTreeMap<String, Value>,
    topics: &BTreeMap<String, Value>,
    stores: &BTreeMap<String, Value>,
    kit: Kit<'_>,
) -> Result<Vec<Arc<Package>>, Vec<String>> {
    let mut by_package: ByPackage = BTreeMap::new();
    for (name, runtime) in runtimes {
        let id = full(name);
        let (plugin, local) = id.split_once('/').unwrap();
        let list = by_package.entry(plugin.to_owned()).or_default();
        if runtime.clashes {
            list.push((format!("{plugin}/aa-{local}"), runtime.rival(), Some(local.to_owned())));
        }
        list.push((id.clone(), runtime.clone(), runtime.clashes.then(|| local.to_owned())));
    }
    for plugin in kit.packages() {
        by_package.entry(plugin).or_default();
    }
    // Topics and schemas belong to the first package.
    let first = by_package.keys().find(|plugin| *plugin == "story").or(by_package.keys().next()).cloned();
    let mut all_topics: BTreeMap<String, Value> = topics.clone();
    for topic in runtimes.values().flat_map(Runtime::topics) {
        all_topics.entry(topic).or_insert_with(|| json!({}));
    }
    let mut owned: Vec<&String> = Vec::new();
    let mut compiled = Vec::new();
    for (plugin, list) in &by_package {
        let mut files = vec![("any.json".to_owned(), "{}".to_owned())];
        let mut gives: Vec<&String> = list.iter().filter_map(|(_, runtime, _)| runtime.gives.as_ref()).collect();
        gives.sort();
        gives.dedup();
        let mut wants: Vec<String> = list.iter().flat_map(|(_, runtime, _)| runtime.wants()).collect();
        wants.sort();
        wants.dedup();
        let mut schemas = Map::new();
        for (contract, schema) in contracts {
            let ours =
                gives.contains(&contract) || first.as_ref() == Some(plugin) && !gives_anywhere(&by_package, contract);
            if ours && !owned.contains(&contract) {
                owned.push(contract);
                let path = format!("{}.schema.json", contract.replace('@', "-"));
                files.push((path.clone(), schema.to_string()));
                schemas.insert(contract.clone(), json!({"schema": format!("./{path}")}));
            }
        }
        let mut contributes = Map::new();
        if first.as_ref() == Some(plugin) {
            let mut events = Vec::new();
            for (at, (topic, schema)) in all_topics.iter().enumerate() {
                files.push((format!("topic{at}.json"), schema.to_string()));
                events.push(
                    json!({"topic": topic, "schema": format!("./topic{at}.json"), "description": "It happened."}),
                );
            }
            contributes.insert("events".into(), json!(events));
            let mut data = Map::new();
            for (at, (namespace, schema)) in stores.iter().enumerate() {
                files.push((format!("store{at}.json"), schema.to_string()));
                data.insert(namespace.clone(), json!({"schema": format!("./store{at}.json"), "version": 1}));
            }
            contributes.insert("data".into(), Value::Object(data));
        }
        let mut root = json!({
            "id": plugin, "kind": "plugin", "description": "A package of a table.", "provides": gives,
            "optional": wants, "contracts": schemas, "contributes": contributes,
        });
        if let Some((code, services, tools)) = kit.entry(plugin) {
            files.push(("entry.js".to_owned(), code));
            root["entry"] = json!("./entry.js");
            root["contributes"]["services"] = json!(services);
            root["contributes"]["tools"] = json!(tools);
        }
        files.push(("PLUGIN.md".to_owned(), format!("---\n{root}\n---\n")));
        for (id, runtime, clash) in list {
            files.extend(runtime.files(id, clash.as_deref()));
        }
        let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        let found = compile_in_memory(&files, Discovery::Builtin);
        match found.package {
            Some(package) => compiled.push(package),
            None => {
                let errors = found.diagnostics.iter().filter(|one| one.is_error());
                return Err(errors.map(|one| format!("{} ({one})", one.code)).collect());
            }
        }
    }
    Ok(compiled)
}

/// Runtimes by package: id, what is written, and the record it clashes over.
type ByPackage = BTreeMap<String, Vec<(String, Runtime, Option<String>)>>;

fn gives_anywhere(packages: &ByPackage, contract: &str) -> bool {
    packages.values().flatten().any(|(_, runtime, _)| runtime.gives.as_deref() == Some(contract))
}
