//! Services and tools of a row, and the entry that registers them.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};

/// What the steps of handlers, services and tools do.
pub const STEPS: &str = r#"
const filled = (value, input) => {
  if (typeof value === 'string' && value.startsWith('$')) return input?.[value.slice(1)];
  if (Array.isArray(value)) return value.map((one) => filled(one, input));
  if (value !== null && typeof value === 'object') {
    return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, filled(one, input)]));
  }
  return value;
};
const values = (rows) => rows.map((row) => [row.key, row.value]);
async function play(ctx, steps, read, events, input) {
  for (const written of steps) {
    const step = written.all || written.then ? written : filled(written, input);
    const data = ctx.pluginData;
    if (step.set) await data.set(...step.set);
    else if (step.delete) await data.delete(...step.delete);
    else if (step.update) await data.update(...step.update);
    else if (step.get) read[step.as ?? step.get.join('/')] = await data.get(...step.get);
    else if (step.list) read[step.as ?? step.list] = values(await data.list(step.list));
    else if (step.clash) {
      const seen = (await data.get('clash', step.clash)) ?? {};
      const op = step.first ? { op: 'inc', path: '/n', by: 1 } : { op: 'test', path: '', value: seen };
      await data.update('clash', step.clash, [op]);
    }
    else if (step.emit) events.push({ topic: step.emit, data: step.data ?? {} });
    else if (step.call) {
      const as = step.as ?? step.call.name ?? step.call.contract;
      const aborted = step.aborted ? AbortSignal.abort(new Error(step.aborted)) : undefined;
      const signal = step.abortAfter === undefined ? aborted : AbortSignal.timeout(step.abortAfter);
      try {
        read[as] = await ctx.services.call(step.call, { timeoutMs: step.timeoutMs, signal });
      } catch (error) {
        if (step.strict) throw error;
        read[as] = { error: error.code ?? error.name, name: error.name };
        if (step.words) read[as].words = error.message;
      }
    }
    else if (step.discover) read[step.as ?? step.discover] = await ctx.services.discover(step.discover);
    else if (step.tool) {
      try {
        read[step.as ?? step.tool] = await ctx.tools.call(step.tool, step.args ?? {});
      } catch (error) {
        read[step.as ?? step.tool] = { error: error.code };
      }
    }
    else if (step.draw) read[step.draw] = ctx.random.int(0, 1_000_000);
    else if (step.world) read[step.as ?? step.world] = ctx.world[step.world];
    else if (step.keys) read.keys = Object.keys(ctx).sort();
    else if (step.all) await Promise.all(step.all.map((one) => play(ctx, [one], read, events, input)));
    else if (step.then) await play(ctx, step.then, read, events, input);
    else if (step.wait) await new Promise((done) => setTimeout(done, step.wait));
    else if (step.throw) throw Object.assign(new Error(step.throw), { code: step.code, name: step.named ?? 'Error' });
    else throw new Error('a step the table runner does not know');
  }
}
"#;

/// A service as written; named `package/name`.
#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Service {
    pub contract: String,
    /// `write` for a write service.
    pub access: Option<String>,
    pub description: Option<String>,
    #[serde(default)]
    pub model_facing: bool,
    /// Zod expressions; any value when not stated.
    pub input: Option<String>,
    pub output: Option<String>,
    /// What it does, as runtimes do; `$name` stands for a member of the input.
    #[serde(default)]
    pub does: Vec<Value>,
    /// What it answers; what it read when not stated.
    pub gives: Option<Value>,
    /// Its handler's body as code; `input` and `ctx` are there.
    pub code: Option<String>,
    /// What the manifest says instead: `none`, or a declaration.
    pub declared: Option<Value>,
}

/// A tool as written; named `package/name`.
#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Tool {
    #[serde(default)]
    pub does: Vec<Value>,
    pub code: Option<String>,
}

/// What packages of a row have besides runtimes.
#[derive(Clone, Copy)]
pub struct Kit<'a> {
    pub services: &'a BTreeMap<String, Service>,
    pub tools: &'a BTreeMap<String, Tool>,
}

fn of<'a, T>(all: &'a BTreeMap<String, T>, plugin: &str) -> Vec<(&'a str, &'a T)> {
    let in_package = all.iter().filter_map(|(id, one)| Some((id.split_once('/')?, one)));
    in_package.filter(|((package, _), _)| *package == plugin).map(|((_, name), one)| (name, one)).collect()
}

impl Kit<'_> {
    /// Packages that have something.
    pub fn packages(&self) -> impl Iterator<Item = String> + '_ {
        let ids = self.services.keys().chain(self.tools.keys());
        ids.filter_map(|id| Some(id.split_once('/')?.0.to_owned()))
    }

    /// The entry of a package, if it needs one, and what the manifest declares.
    pub fn entry(&self, plugin: &str) -> Option<(String, Vec<Value>, Vec<String>)> {
        let (services, tools) = (of(self.services, plugin), of(self.tools, plugin));
        if services.is_empty() && tools.is_empty() {
            return None;
        }
        let mut code = format!("{STEPS}\nexport default (covel) => {{\nconst {{ z, tool }} = covel.toolkit;\n");
        let mut declared = Vec::new();
        for (name, service) in services {
            let body = service.code.clone().unwrap_or_else(|| {
                let gives = service.gives.as_ref().map_or_else(
                    || "{ read, caller: ctx.callerPluginId }".to_owned(),
                    |value| format!("filled({value}, input)"),
                );
                let steps = Value::Array(service.does.clone());
                format!("const read = {{}}; await play(ctx, {steps}, read, [], input); return {gives};")
            });
            code.push_str(&format!(
                "covel.registerService({{ name: {}, contract: {}, access: {}, modelFacing: {}, description: {}, \
                 input: {}, output: {}, handler: async (input, ctx) => {{ {body} }} }});\n",
                json!(name),
                json!(service.contract),
                json!(service.access.as_deref().unwrap_or("read")),
                service.model_facing,
                json!(service.description.as_deref().unwrap_or("")),
                service.input.as_deref().unwrap_or("z.any()"),
                service.output.as_deref().unwrap_or("z.any()"),
            ));
            match &service.declared {
                Some(Value::String(word)) if word == "none" => {}
                Some(other) => declared.push(other.clone()),
                None => {
                    let mut one = json!({"contract": service.contract});
                    if service.access.as_deref() == Some("write") {
                        one["access"] = json!("write");
                    }
                    if service.model_facing {
                        one["modelFacing"] = json!(true);
                    }
                    declared.push(one);
                }
            }
        }
        let mut named = Vec::new();
        for (name, tool) in tools {
            let body = tool.code.clone().unwrap_or_else(|| {
                let steps = Value::Array(tool.does.clone());
                format!("const read = {{}}; await play(ctx, {steps}, read, [], args); return read;")
            });
            code.push_str(&format!(
                "covel.registerTool(tool({{ name: {0}, description: {0}, parameters: z.looseObject({{}}), \
                 execute: async (args, ctx) => {{ {body} }} }}));\n",
                json!(name)
            ));
            named.push(name.to_owned());
        }
        code.push_str("};\n");
        Some((code, declared, named))
    }
}
