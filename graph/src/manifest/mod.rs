//! Manifests: `PLUGIN.md`, `RUNTIME.md`, their translations, and the files they name, to one [`Fragment`].
//!
//! Reading goes on after a problem, so that an author sees all of them in one run. The result counts only when the
//! report has no error.

mod contributes;
mod editor;
mod framework;
mod grammar;
mod io;
mod locale;
mod names;
mod root;
mod runtime;
mod shape;
mod source;
mod tables;
mod together;
mod ui;
mod work;

use std::collections::BTreeMap;

pub use editor::{ManifestKind, manifest_schema};
pub use names::{FRAMEWORK_TOOLS, KERNEL_POINTS, KERNEL_SLOTS};
pub(crate) use names::{SEGMENT_POINT, is_kernel_contract};

use crate::{
    diagnostic::{Diagnostic, Position},
    files::Reader,
    fragment::Fragment,
    ids,
    limits::MAX_RUNTIMES_PER_PACKAGE,
    report::Report,
    yaml::Node,
};
use source::{Context, Document};

const ROOT: &str = "PLUGIN.md";

/// Reads a whole package.
pub(crate) fn read(reader: &mut Reader, folder: Option<&str>, report: &mut Report) -> Fragment {
    let mut context = Context::new(reader, report);
    let Some(mut root) = root_document(&mut context) else {
        return Fragment::default();
    };
    shape::check(ROOT, &root.node, &tables::PLUGIN, context.report);
    let mut subs = runtime_documents(&mut context);
    for (_, document) in &subs {
        shape::check(&document.file, &document.node, &tables::RUNTIME, context.report);
    }

    if context.report.is_oversized() {
        let plugin_id = root.node.get("id").and_then(Node::text).filter(|id| ids::is_package_id(id));
        return Fragment { plugin_id: plugin_id.unwrap_or_default().to_owned(), ..Fragment::default() };
    }

    let overlays = locale::read(&mut context, &mut root, &mut subs);
    let mut fragment = root::read(&mut context, &root, folder);
    fragment.messages = overlays.messages;
    contributes::read(&mut context, &root, &mut fragment);

    let inline = root.node.get("runtime").filter(|node| !node.entries().is_empty());
    if let (Some(node), false) = (inline, subs.is_empty()) {
        context.error(
            "layout",
            node.at,
            "runtime",
            "a package has either one inline `runtime` or folders under `runtimes/`, not both",
        );
    } else if let Some(node) = inline {
        let id = fragment.plugin_id.clone();
        let decl = runtime::read(&mut context, runtime::Place::inline(&id, node, &root), &fragment);
        fragment.runtimes.push(decl);
    }
    for (rid, document) in &subs {
        let id = format!("{}/{rid}", fragment.plugin_id);
        let decl = runtime::read(&mut context, runtime::Place::folder(&id, rid, document), &fragment);
        fragment.runtimes.push(decl);
    }
    fragment.runtimes.sort_by(|a, b| a.id.cmp(&b.id));
    together::check(&mut context, &fragment);
    framework::check(&mut context, &fragment);
    root::check_unused(&mut context, &root, &fragment);
    fragment
}

fn root_document(context: &mut Context<'_>) -> Option<Document> {
    if context.reader.get(ROOT, context.report).is_none() {
        // A manifest that could not be read (too large, not UTF-8) has been reported already.
        if !context.report.has_errors() {
            let missing =
                Diagnostic::error("plugin-md-missing", ROOT, Position::default(), "the package has no PLUGIN.md")
                    .with_help("add a PLUGIN.md with front matter: id, kind and description");
            context.report.add(missing);
        }
        return None;
    }
    Document::load(context, ROOT)
}

/// `runtimes/<rid>/RUNTIME.md`, by rid.
fn runtime_documents(context: &mut Context<'_>) -> Vec<(String, Document)> {
    let mut folders: BTreeMap<String, bool> = BTreeMap::new();
    let mut stray = Vec::new();
    for path in context.reader.paths() {
        if path == "RUNTIME.md" {
            stray.push((path.to_owned(), "the root manifest is PLUGIN.md; RUNTIME.md belongs into `runtimes/<name>/`"));
        }
        let Some(rest) = path.strip_prefix("runtimes/") else {
            if path != ROOT && path.ends_with("/PLUGIN.md") {
                stray.push((path.to_owned(), "only the root of a package holds a PLUGIN.md"));
            }
            continue;
        };
        match rest.split_once('/') {
            Some((rid, "RUNTIME.md")) => {
                folders.insert(rid.to_owned(), true);
            }
            Some((rid, file)) => {
                if file == "PLUGIN.md" || file.ends_with("/PLUGIN.md") {
                    stray.push((path.to_owned(), "the manifest of a runtime folder is RUNTIME.md"));
                }
                folders.entry(rid.to_owned()).or_insert(false);
            }
            None => {}
        }
    }
    for (path, message) in stray {
        context.report.add(Diagnostic::error("layout", &path, Position { line: 1, column: 1 }, message));
    }
    if folders.len() > MAX_RUNTIMES_PER_PACKAGE {
        let message = format!("a package may have at most {MAX_RUNTIMES_PER_PACKAGE} runtimes");
        context.report.add(Diagnostic::error("too-many-runtimes", "runtimes", Position::default(), message));
        return Vec::new();
    }
    let mut documents = Vec::new();
    for (rid, has_manifest) in folders {
        let file = format!("runtimes/{rid}/RUNTIME.md");
        if !has_manifest {
            // A folder of shared modules is fine; one with a manifest that could not be read was reported.
            continue;
        }
        if !ids::is_package_id(&rid) {
            let message = format!("`{}` is not a runtime name", shape::clip(&rid));
            let help = "start with a lowercase letter, then lowercase letters, digits and `-`";
            context.report.add(Diagnostic::error("bad-id", &file, Position::default(), message).with_help(help));
            continue;
        }
        if let Some(document) = Document::load(context, &file) {
            documents.push((rid, document));
        }
    }
    documents
}

/// Is the node there and not empty?
fn present(node: Option<&Node>) -> bool {
    node.is_some_and(|node| node.value != crate::yaml::Yaml::Null)
}
