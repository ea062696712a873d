//! `covel plan`: what would run, without running it.

use std::{collections::BTreeSet, path::PathBuf, sync::Arc};

use covel_graph::{
    Diagnostic, DiffDocument, EffectTable, EffectsPolicy, PluginId,
    activation::{self, Activation, ActivationRequest},
    archive::PlanHandle,
    explain::{PlanDocument, WhyDocument},
    link::{self, Linked},
    package::Package,
};

use super::{
    DONE, REFUSED, Streams,
    args::{PackageArgs, PlanArgs, PlanFormat},
    text,
};
use crate::{
    error::ServerError,
    load::{Loaded, Sources, load},
};

pub(super) fn run(arguments: &PlanArgs, streams: &mut Streams<'_>) -> Result<u8, ServerError> {
    if let Some(folders) = &arguments.diff {
        return diff(folders, arguments.json, streams);
    }
    let loaded = load_for(&arguments.packages)?.strict()?;
    let (activation, linked) = plan(&arguments.packages, &loaded)?;
    let refused =
        activation.unmet.iter().any(activation::Unmet::blocks) || linked.diagnostics.iter().any(Diagnostic::is_error);
    let format = if arguments.json { PlanFormat::Json } else { arguments.format.unwrap_or(PlanFormat::Text) };
    let handle = linked.handle().map_err(|error| ServerError::Internal(error.to_string()))?;
    if let Some(runtime) = &arguments.why {
        why(&handle, runtime, arguments.json, streams)?;
    } else {
        let diagnostics: Vec<Diagnostic> = loaded.diagnostics.iter().chain(&linked.diagnostics).cloned().collect();
        let document = match arguments.effects.policy() {
            EffectsPolicy::Warn => PlanDocument::of(&handle, &diagnostics),
            EffectsPolicy::Strict => {
                let packages = loaded.packages();
                let effects = EffectTable::of(&handle, packages.iter().map(|package| &*package.fragment));
                PlanDocument::strict(&handle, &diagnostics, &effects)
            }
        };
        print(&document, format, streams)?;
    }
    for rejected in &activation.rejected {
        streams.complain(&format!("covel: {} is left out: {}", rejected.plugin, rejected.message));
    }
    for unmet in &activation.unmet {
        streams.complain(&format!("covel: {}: {}", unmet.contract, unmet.message));
    }
    Ok(if refused { REFUSED } else { DONE })
}

/// Prints a plan in a form.
pub(super) fn print(document: &PlanDocument, format: PlanFormat, streams: &mut Streams<'_>) -> Result<(), ServerError> {
    match format {
        PlanFormat::Json => return streams.document(document),
        PlanFormat::Text => streams.print(&document.to_text()),
        PlanFormat::Mermaid => streams.print(&document.to_mermaid()),
        PlanFormat::Dot => streams.print(&document.to_dot()),
    }
    Ok(())
}

fn diff(folders: &[PathBuf], json: bool, streams: &mut Streams<'_>) -> Result<u8, ServerError> {
    let [from, to] = folders else {
        return Err(ServerError::Usage("--diff takes two folders".to_owned()));
    };
    let linked = |folder: &PathBuf| {
        let arguments = PackageArgs { plugins: vec![folder.clone()], ..PackageArgs::default() };
        let loaded = load_for(&arguments)?.strict()?;
        let (_, linked) = plan(&arguments, &loaded)?;
        linked.handle().map_err(|error| ServerError::Internal(error.to_string()))
    };
    let document = DiffDocument::of(&linked(from)?, &linked(to)?);
    if json {
        streams.document(&document)?;
    } else {
        streams.print(&document.to_text());
    }
    Ok(DONE)
}

fn why(plan: &PlanHandle, runtime: &str, json: bool, streams: &mut Streams<'_>) -> Result<(), ServerError> {
    let Some(document) = WhyDocument::of(plan, runtime) else {
        let ids = plan.runtimes.iter().map(|row| row.id.as_str());
        let ids = ids.collect::<Vec<_>>().join(", ");
        return Err(ServerError::Usage(format!("there is no active runtime {runtime:?} (active are: {ids})")));
    };
    if json {
        return streams.document(&document);
    }
    streams.print(&text::why(&document));
    Ok(())
}

/// Folders of the common flags, loaded.
pub(super) fn load_for(arguments: &PackageArgs) -> Result<Loaded, ServerError> {
    load(&sources_of(arguments)?)
}

/// Folders of the common flags.
pub(super) fn sources_of(arguments: &PackageArgs) -> Result<Sources, ServerError> {
    if arguments.plugins.is_empty() && arguments.community.is_empty() {
        return Err(ServerError::Usage("name at least one folder of packages with --plugins DIR".to_owned()));
    }
    Ok(Sources {
        plugins: arguments.plugins.clone(),
        community: arguments.community.clone(),
        worlds: arguments.world.iter().cloned().collect(),
    })
}

/// The packages that are asked for: those named, else all; less those excluded.
///
/// # Errors
/// When a name is no loaded package.
pub(super) fn requested(arguments: &PackageArgs, loaded: &Loaded) -> Result<Vec<String>, ServerError> {
    let packages = loaded.packages();
    let known: BTreeSet<&str> = packages.iter().map(|package| package.id()).collect();
    let named = arguments.enable.iter().flatten().chain(&arguments.exclude).chain(&arguments.approve);
    for id in named {
        if !known.contains(id.as_str()) {
            let ids = known.iter().copied().collect::<Vec<_>>().join(", ");
            return Err(ServerError::Usage(format!("there is no package {id:?} among those loaded ({ids})")));
        }
    }
    let all = || known.iter().map(|id| (*id).to_owned()).collect();
    let mut requested: Vec<String> = arguments.enable.clone().unwrap_or_else(all);
    requested.retain(|id| !arguments.exclude.contains(id));
    Ok(requested)
}

fn plan(arguments: &PackageArgs, loaded: &Loaded) -> Result<(Activation, Linked), ServerError> {
    let id = |text: &String| PluginId::from(text.as_str());
    let packages = loaded.packages();
    let needed = loaded.worlds.iter().flat_map(|world| world.required_contracts.iter());
    let activation = activation::activate(&ActivationRequest {
        packages: &packages,
        requested: requested(arguments, loaded)?.iter().map(id).collect(),
        excluded: arguments.exclude.iter().map(id).collect(),
        approved: arguments.approve.iter().map(id).collect(),
        required_contracts: needed.map(ToString::to_string).collect(),
    });
    let active: Vec<Arc<Package>> = packages
        .iter()
        .filter(|package| activation.active.iter().any(|id| id.as_str() == package.id()))
        .cloned()
        .collect();
    let linked = link::link(&active).map_err(|error| ServerError::Internal(error.to_string()))?;
    Ok((activation, linked))
}
