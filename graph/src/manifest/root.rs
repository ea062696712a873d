//! The root manifest apart from `contributes` and `runtime`.

use super::{
    ROOT, names, present,
    source::{Context, Document, flag, label, text, texts},
};
use crate::{
    fragment::{AuthorDecl, ContractDecl, ContractRef, Fragment, LinkDecl, PackageKind, Provide},
    report,
    yaml::Node,
};

/// Reads identity, contracts and entry. `folder` is the name of the package's folder, when there is one.
pub(super) fn read(context: &mut Context<'_>, root: &Document, folder: Option<&str>) -> Fragment {
    context.file = ROOT.to_owned();
    let node = &root.node;
    let mut fragment = Fragment {
        plugin_id: text(node, "id").filter(|id| crate::ids::is_package_id(id)).unwrap_or_default(),
        kind: text(node, "kind").and_then(|kind| PackageKind::parse(&kind)).unwrap_or_default(),
        version: text(node, "version").unwrap_or_else(|| "0.0.0".to_owned()),
        display_name: label(node, "displayName"),
        description: label(node, "description"),
        tags: texts(node, "tags"),
        covel: text(node, "covel"),
        author: node.get("author").filter(|node| !node.entries().is_empty()).map(author),
        license: text(node, "license"),
        homepage: text(node, "homepage"),
        ..Fragment::default()
    };
    if fragment.display_name.is_empty() {
        fragment.display_name = vec![("en".to_owned(), fragment.plugin_id.clone())];
    }
    if let (Some(folder), Some(id)) = (folder, node.get("id"))
        && !fragment.plugin_id.is_empty()
        && folder != fragment.plugin_id
    {
        let message = format!("the id `{}` differs from the folder name `{folder}`", fragment.plugin_id);
        context.error_help("id-folder-mismatch", id.at, "id", message, "give the folder the package's id");
    }
    package_json(context, node, &fragment);
    contracts(context, node, &mut fragment);
    if let Some(entry) = node.get("entry") {
        fragment.entry = context.file_at("", entry, "entry");
    }
    fragment
}

fn author(node: &Node) -> AuthorDecl {
    let links = node.get("links").map(Node::items).unwrap_or_default();
    AuthorDecl {
        name: text(node, "name").unwrap_or_default(),
        url: text(node, "url"),
        about: label(node, "about"),
        links: links
            .iter()
            .map(|link| LinkDecl { label: label(link, "label"), url: text(link, "url").unwrap_or_default() })
            .collect(),
    }
}

/// A contract id with the node it stands at: `x@1` or `{contract: x@1}`.
fn contract_of(node: &Node) -> Option<String> {
    let found = node.text().or_else(|| node.get("contract").and_then(Node::text))?;
    crate::ids::is_contract_id(found).then(|| found.to_owned())
}

fn contracts(context: &mut Context<'_>, node: &Node, fragment: &mut Fragment) {
    let items = |key: &str| node.get(key).map(Node::items).unwrap_or_default();
    for (place, item) in items("provides").iter().enumerate() {
        let Some(contract) = contract_of(item) else {
            continue;
        };
        let path = format!("provides[{place}]");
        if fragment.provides.iter().any(|one| one.contract == contract) {
            context.error("duplicate-item", item.at, &path, format!("`{contract}` is provided twice"));
            continue;
        }
        if names::is_kernel_contract(&contract) {
            let message = format!("`{contract}` is the kernel's; naming it in `provides` satisfies nobody");
            context.warning_help("kernel-contract", item.at, &path, message, "declare it in `contributes.extensions`");
        }
        let origin = context.origin(item.at);
        fragment.provides.push(Provide { contract, default: flag(item, "default", false), origin });
    }
    for key in ["requires", "optional", "conflicts"] {
        let mut list: Vec<ContractRef> = Vec::new();
        for (place, item) in items(key).iter().enumerate() {
            let Some(contract) = contract_of(item) else {
                continue;
            };
            let path = format!("{key}[{place}]");
            if list.iter().any(|one| one.contract == contract) {
                context.warning("duplicate-item", item.at, &path, format!("`{contract}` is listed twice"));
                continue;
            }
            if key == "conflicts" && names::is_kernel_contract(&contract) {
                let message = format!("`{contract}` is the kernel's and cannot be named in `conflicts`");
                context.error_help("invalid-conflict", item.at, "conflicts", message, "name a contract of a package");
            }
            if key == "requires" && fragment.provides.iter().any(|one| one.contract == contract) {
                let message = format!("the package requires `{contract}`, which it provides itself");
                context.warning("requires-own", item.at, &path, message);
            }
            list.push(ContractRef { contract, origin: context.origin(item.at) });
        }
        if key != "conflicts" {
            context.consumable.extend(list.iter().map(|one| one.contract.clone()));
        }
        match key {
            "requires" => fragment.requires = list,
            "optional" => fragment.optional = list,
            _ => fragment.conflicts = list,
        }
    }
    for entry in node.get("contracts").map(Node::entries).unwrap_or_default() {
        let Some(schema) = entry.node.get("schema") else {
            continue;
        };
        let path = format!("contracts.{}.schema", entry.key);
        if let Some(schema) = context.schema_at("", schema, &path) {
            let origin = context.origin(entry.key_at);
            fragment.contracts.push(ContractDecl { contract: entry.key.clone(), schema, origin });
        }
    }
}

/// `package.json` must not say something else than the manifest.
fn package_json(context: &mut Context<'_>, node: &Node, fragment: &Fragment) {
    let Some(text) = context.reader.text("package.json", context.report) else {
        return;
    };
    let (file, at) = ("package.json", crate::Position { line: 1, column: 1 });
    let value: serde_json::Value = match serde_json::from_str(&text) {
        Ok(value) => value,
        Err(error) => {
            context.report.add(report::not_json(file, &text, &error));
            return;
        }
    };
    let field = |key: &str| value.get(key).and_then(serde_json::Value::as_str);
    if let (Some(version), Some(own)) = (field("version"), node.get("version"))
        && own.text().is_some_and(|own| own != version)
    {
        let message = format!("the version `{}` differs from `{version}` in package.json", fragment.version);
        context.error_help("version-mismatch", own.at, "version", message, "write the same version in both files");
    }
    if let Some(name) = field("name") {
        let bare = name.rsplit('/').next().unwrap_or(name);
        let bare = bare.strip_prefix("plugin-").unwrap_or(bare);
        if !fragment.plugin_id.is_empty() && bare != fragment.plugin_id && name != fragment.plugin_id {
            let message = format!("the name `{name}` differs from the package id `{}`", fragment.plugin_id);
            context.report.add(crate::Diagnostic::warning("name-mismatch", file, at, message).with_path("name"));
        }
    }
}

/// What is declared and needs an entry module, but there is none; what is provided, but by no runtime.
pub(super) fn check_unused(context: &mut Context<'_>, root: &Document, fragment: &Fragment) {
    context.file = ROOT.to_owned();
    let contributes = root.node.get("contributes");
    if !present(root.node.get("entry")) {
        for key in ["tools", "actions", "services", "extensions", "hooks", "wires", "forms"] {
            let Some(list) = contributes.and_then(|node| node.entry(key)) else {
                continue;
            };
            if !list.node.items().is_empty() {
                let path = format!("contributes.{key}");
                let message = format!("`{path}` declares what an entry module registers, but there is no `entry`");
                context.error_help("entry-missing", list.key_at, &path, message, "add `entry: ./server/index.js`");
            }
        }
    }
    for provide in &fragment.provides {
        let published =
            fragment.runtimes.iter().any(|runtime| runtime.output.contract.as_ref() == Some(&provide.contract));
        let served = fragment.services.iter().any(|service| service.contract == provide.contract);
        if published || served || names::is_kernel_contract(&provide.contract) {
            continue;
        }
        // Only a consumer in the same package makes this a finding; others are judged when packages are linked.
        let consumed = fragment.runtimes.iter().any(|runtime| {
            let inputs = runtime.inputs.iter().filter(|input| input.contract.as_ref() == Some(&provide.contract));
            let needs = runtime.needs.iter().filter(|need| need.contract.as_ref() == Some(&provide.contract));
            inputs.count() + needs.count() > 0
        });
        if consumed {
            let at = crate::Position { line: provide.origin.line, column: provide.origin.column };
            let message =
                format!("`{}` is provided and consumed here, but none of the runtimes publishes it", provide.contract);
            context.warning("provider-declared-only", at, "provides", message);
        }
    }
}
