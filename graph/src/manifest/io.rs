//! `io`: what a runtime takes and gives.

use super::{
    runtime::{Place, listed, target},
    shape::clip,
    source::{Context, count, flag, text},
};
use crate::{
    fragment::{
        Cardinality, Fragment, InputDecl, OutputDecl, RuntimeDecl, Scope, SelfDataDecl, SelfDataFormat, Visibility,
    },
    report::nearest,
    yaml::Node,
};

/// Entries of own data shown when none is stated.
const SELF_DATA_ENTRIES: u32 = 50;

/// Reads `io`.
pub(super) fn read(context: &mut Context<'_>, place: &Place<'_>, decl: &mut RuntimeDecl, fragment: &Fragment) {
    let Some(node) = place.node.get("io") else {
        return;
    };
    for entry in node.get("inputs").map(Node::entries).unwrap_or_default() {
        if let Some(input) = input(context, place, &entry.key, &entry.node) {
            decl.inputs.push(input);
        }
    }
    for item in node.get("selfData").map(Node::items).unwrap_or_default() {
        let (Some(namespace), Some(tag)) = (text(item, "namespace"), text(item, "as")) else {
            continue;
        };
        let tag = tag.trim().trim_start_matches('<').trim_end_matches('>').to_owned();
        decl.self_data.push(SelfDataDecl {
            namespace,
            tag,
            format: text(item, "format").and_then(|word| SelfDataFormat::parse(&word)).unwrap_or_default(),
            max_entries: count(item, "maxEntries", SELF_DATA_ENTRIES),
        });
    }
    if let Some(schema) = node.get("payloadSchema") {
        decl.payload_schema = context.schema_at(place.base, schema, &place.path("io.payloadSchema"));
    }
    decl.visibility = text(node, "visibility").and_then(|word| Visibility::parse(&word)).unwrap_or_default();
    decl.concealed = flag(node, "concealed", false);
    if let Some(output) = node.get("output") {
        decl.output = output_of(context, place, output, fragment);
    }
}

fn input(context: &mut Context<'_>, place: &Place<'_>, name: &str, node: &Node) -> Option<InputDecl> {
    let base = place.path(&format!("io.inputs.{name}"));
    let path = |field: &str| format!("{base}{field}");
    let from = node.get("from")?;
    let (runtime, contract, kernel) = (text(from, "runtime"), text(from, "contract"), text(from, "kernel"));
    if runtime.as_deref() == Some("") {
        context.warning(
            "empty-reference",
            from.at,
            &path(".from.runtime"),
            "an empty name binds nothing and is dropped",
        );
        return None;
    }
    let (runtime, contract) = if kernel.is_some() {
        if runtime.is_some() || contract.is_some() {
            let message = "name a `runtime`, a `contract` or a `kernel` value, not several";
            context.error("ambiguous-reference", from.at, &path(".from"), message);
        }
        (None, None)
    } else {
        target(context, from, &path(".from"), runtime, contract)?
    };
    if let Some(contract) = &contract {
        listed(context, from, &path(".from.contract"), contract);
    }
    let scope = text(node, "scope").and_then(|word| Scope::parse(&word)).unwrap_or_default();
    let record_as = text(node, "recordAs");
    match scope {
        Scope::Committed => {
            if let Some(select) = node.entry("select") {
                context.error(
                    "committed-select",
                    select.key_at,
                    &path(".select"),
                    "a committed input takes no `select`",
                );
            }
            if kernel.is_some() {
                context.error("committed-kernel", node.at, &path(".scope"), "a kernel value is of this turn only");
            } else if record_as.is_none() {
                let message = "a committed input names the export it reads with `recordAs`";
                context.error("record-as-missing", node.at, &path(".recordAs"), message);
            }
        }
        _ => {
            if let Some(entry) = node.entry("recordAs") {
                let message = "`recordAs` on an input is for `scope: committed`; here it has no effect";
                context.warning("record-as-unused", entry.key_at, &path(".recordAs"), message);
            }
        }
    }
    let (accepts, accepts_contract) = schema_reference(context, place, node.get("accepts"), &path(".accepts"));
    Some(InputDecl {
        name: name.to_owned(),
        runtime,
        contract,
        kernel,
        cardinality: text(from, "cardinality").and_then(|word| Cardinality::parse(&word)).unwrap_or_default(),
        scope,
        select: text(node, "select"),
        required: flag(node, "required", false),
        accepts,
        accepts_contract,
        record_as,
        origin: context.origin(node.at),
    })
}

/// A schema path, or `contract:<id>`: (schema text, contract).
fn schema_reference(
    context: &mut Context<'_>,
    place: &Place<'_>,
    node: Option<&Node>,
    path: &str,
) -> (Option<String>, Option<String>) {
    let Some(node) = node else {
        return (None, None);
    };
    match node.text().and_then(|text| text.strip_prefix("contract:")) {
        Some(contract) => (None, crate::ids::is_contract_id(contract).then(|| contract.to_owned())),
        None => (context.schema_at(place.base, node, path), None),
    }
}

fn output_of(context: &mut Context<'_>, place: &Place<'_>, node: &Node, fragment: &Fragment) -> OutputDecl {
    let contract = text(node, "contract");
    if let (Some(contract), Some(at)) = (&contract, node.get("contract")) {
        let provided = || fragment.provides.iter().map(|one| one.contract.as_str());
        if !provided().any(|one| one == contract) {
            let message = format!("the output contract `{}` is not listed in the root's `provides`", clip(contract));
            let help = match nearest(contract, provided()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("add `provides: [{contract}]`"),
            };
            context.error_help("contract-not-provided", at.at, &place.path("io.output.contract"), message, help);
        }
    }
    let (schema, schema_contract) =
        schema_reference(context, place, node.get("schema"), &place.path("io.output.schema"));
    let record_as = text(node, "recordAs");
    if record_as.is_some() && node.get("schema").is_none() {
        let message = "`recordAs` needs a `schema`";
        context.error("record-as-schema", node.at, &place.path("io.output.recordAs"), message);
    }
    OutputDecl { contract, schema, schema_contract, record_as }
}
