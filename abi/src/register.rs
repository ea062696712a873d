//! Registrations of an entry, checked against the manifest as they come (one half of the two-way rule).

use std::rc::Rc;

use covel_graph::Json;
use rquickjs::{Ctx, Function, Object, Result, Value as JsValue};
use serde_json::Value;

use crate::{
    bindings::{fenced, member, throw},
    from_js,
    generation::{ActionInfo, HookInfo, ServiceInfo, ToolInfo},
    host::HostError,
    isolate::State,
    limits::{MAX_HOST_ARGUMENT_BYTES, MAX_REGISTRATIONS},
};

pub(crate) fn install<'js>(ctx: &Ctx<'js>, host: &Object<'js>, state: &Rc<State>) -> Result<()> {
    let shared = Rc::clone(state);
    let register =
        Function::new(ctx.clone(), move |c: Ctx<'js>, kind: String, name: String, details: JsValue<'js>| {
            fenced(&c, || {
                let details = from_js::from_js(&c, details, MAX_HOST_ARGUMENT_BYTES).unwrap_or_else(|_| Json::null());
                add(&shared, &kind, &name, details.value()).map_err(|message| {
                    // Kept as well: an entry that catches the error does not load either.
                    shared.registration_error.borrow_mut().get_or_insert_with(|| message.clone());
                    throw(&c, &HostError::new("plugin_registration_invalid", message))
                })
            })
        })?;
    host.set("register", register)
}

/// Adds one registration; answers a hook's index, else 0.
fn add(state: &State, kind: &str, name: &str, details: &Value) -> std::result::Result<u32, String> {
    let declared = &state.blueprint.spec.declared;
    let mut all = state.registrations.borrow_mut();
    if all.len() >= MAX_REGISTRATIONS {
        return Err(format!("an entry registers at most {MAX_REGISTRATIONS} things"));
    }
    let undeclared = |what: &str, list: &str| {
        Err(format!(
            "the entry registers {what} `{}`, which `contributes.{list}` does not declare",
            name.replace('\0', " ")
        ))
    };
    let twice = |what: &str| Err(format!("the entry registers {what} `{}` twice", name.replace('\0', " ")));
    match kind {
        "tool" => {
            if !declared.tools.iter().any(|n| n == name) {
                return undeclared("tool", "tools");
            }
            if all.tools.iter().any(|t| t.name == name) {
                return twice("tool");
            }
            all.tools.push(ToolInfo {
                name: name.to_owned(),
                description: member(details, "description").unwrap_or_default(),
                json_schema: Json::from_value(details.get("jsonSchema").cloned().unwrap_or(Value::Null)),
            });
        }
        "rpc" => {
            if !declared.actions.iter().any(|n| n == name) {
                return undeclared("action", "actions");
            }
            if all.actions.iter().any(|a| a.action == name) {
                return twice("action");
            }
            all.actions.push(ActionInfo {
                action: name.to_owned(),
                description: member(details, "description"),
                trust_level: member(details, "trustLevel"),
            });
        }
        "service" => {
            let contract = member(details, "contract").unwrap_or_default();
            if !covel_graph::ids::is_contract_id(&contract) {
                return Err(format!("service `{name}`: `{contract}` is not a contract (`<name>@<major>`)"));
            }
            let access = member(details, "access");
            if access.as_deref().is_some_and(|access| access != "read" && access != "write") {
                return Err(format!("service `{name}`: its access is `read` or `write`"));
            }
            if !declared.services.iter().any(|s| s.contract == contract) {
                return Err(format!(
                    "the entry registers a service of contract `{contract}`, which `contributes.services` does not declare"
                ));
            }
            if all.services.iter().any(|s| s.name == name) {
                return twice("service");
            }
            all.services.push(ServiceInfo {
                name: name.to_owned(),
                contract,
                description: member(details, "description"),
                model_facing: details.get("modelFacing").and_then(Value::as_bool).unwrap_or(false),
                write: access.as_deref() == Some("write"),
            });
        }
        "extension" => {
            let (point, id) = (member(details, "point").unwrap_or_default(), member(details, "id").unwrap_or_default());
            if !declared.extensions.iter().any(|(p, i)| *p == point && *i == id) {
                return undeclared("extension", "extensions");
            }
            if all.extensions.iter().any(|(p, i)| *p == point && *i == id) {
                return twice("extension");
            }
            all.extensions.push((point, id));
        }
        "hook" => {
            let (event, enforce) =
                (member(details, "event").unwrap_or_default(), member(details, "enforce").unwrap_or_default());
            if !declared.hooks.iter().any(|(e, f)| *e == event && *f == enforce) {
                return Err(format!(
                    "the entry registers a hook on `{event}` with enforce `{enforce}`, which `contributes.hooks` does not declare"
                ));
            }
            let index = u32::try_from(all.hooks.len()).unwrap_or(u32::MAX);
            all.hooks.push(HookInfo {
                event,
                enforce,
                index,
                timeout_ms: details.get("timeoutMs").and_then(Value::as_u64),
                has_match: details.get("hasMatch").and_then(Value::as_bool).unwrap_or(false),
            });
            return Ok(index);
        }
        "form" => {
            if !declared.forms.iter().any(|n| n == name) {
                return undeclared("form validator", "forms");
            }
            if all.forms.iter().any(|f| f == name) {
                return twice("form validator");
            }
            all.forms.push(name.to_owned());
        }
        "wires" => {
            if !all.wires.is_empty() {
                return Err("the entry calls registerWires twice".to_owned());
            }
            for (kind, ids) in details.as_object().into_iter().flatten() {
                for id in ids.as_array().into_iter().flatten().filter_map(Value::as_str) {
                    if !declared.wires.iter().any(|w| w == id) {
                        return Err(format!(
                            "the entry registers wire `{id}`, which `contributes.wires` does not declare"
                        ));
                    }
                    if all.wires.iter().any(|(k, i)| k == kind && i == id) {
                        return Err(format!("the entry registers {kind} wire `{id}` twice"));
                    }
                    all.wires.push((kind.clone(), id.to_owned()));
                }
            }
        }
        _ => return Err(format!("unknown kind of registration `{kind}`")),
    }
    Ok(0)
}
