//! Which packages are active in a session: a pure function of what is installed, asked for, excluded and approved.
//!
//! The resolver starts from the requests and looks for the first thing that cannot stand: a plugin that must not
//! run, a default provider that is not needed, a conflict, a topic declared twice, a requirement nobody can meet.
//! It adds or bans one plugin and starts over from the surviving requests, so that nothing stays because of a plugin
//! that is gone. Every pass bans for good or restores at most once, so it ends; cycles of requirements settle.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{
    fragment::Fragment,
    ids::PluginId,
    manifest::{SEGMENT_POINT, is_kernel_contract},
    package::Package,
};

/// What to resolve.
#[derive(Clone, Debug, Default)]
pub struct ActivationRequest<'a> {
    /// Installed packages; their order does not matter.
    pub packages: &'a [Arc<Package>],
    /// What the player asked for, in that order.
    pub requested: Vec<PluginId>,
    /// What the player turned off. Stronger than anything else.
    pub excluded: BTreeSet<PluginId>,
    /// Community packages this session may run.
    pub approved: BTreeSet<PluginId>,
    /// Contracts the world needs.
    pub required_contracts: BTreeSet<String>,
}

/// The outcome, with reasons.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Activation {
    /// Active packages, by id.
    pub active: Vec<PluginId>,
    /// Those nobody asked for, by id.
    pub auto_added: Vec<AutoAdded>,
    /// Requests that were not met, in request order, then providers that were lost, by id.
    pub rejected: Vec<Rejected>,
    /// World requirements nobody meets, by contract.
    pub unmet: Vec<Unmet>,
}

/// A package added because something needs it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AutoAdded {
    /// The package.
    pub plugin: PluginId,
    /// The contract it was added for.
    pub contract: String,
    /// Who needs it: a package, or `None` for the world.
    pub needed_by: Option<PluginId>,
    /// The same as a sentence.
    pub reason: String,
}

/// A package that is not active although asked for or needed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Rejected {
    /// The package.
    pub plugin: PluginId,
    /// Stable code: `unknown-plugin excluded approval-required invalid-conflict superseded conflict
    /// event-topic-conflict missing-provider ambiguous-provider provider-excluded provider-approval-required
    /// provider-rejected`.
    pub code: String,
    /// The reason, for the player.
    pub message: String,
}

/// A contract the world needs and nobody provides.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Unmet {
    /// The contract.
    pub contract: String,
    /// `missing-provider`, `ambiguous-provider` (both block a session), `approval-required`, `excluded`.
    pub code: String,
    /// Installed packages that provide it, by id.
    pub candidates: Vec<PluginId>,
    /// The reason, for the player.
    pub message: String,
}

impl Unmet {
    /// May the session not be created?
    pub fn blocks(&self) -> bool {
        matches!(self.code.as_str(), "missing-provider" | "ambiguous-provider")
    }
}

/// The contracts a package satisfies for others: published and served ones, and, for the kernel's points and slots,
/// what it really provides. EXP-4
pub fn satisfies(fragment: &Fragment) -> BTreeSet<&str> {
    let provided = fragment.provides.iter().map(|one| one.contract.as_str());
    let served = fragment.services.iter().map(|one| one.contract.as_str());
    let mut all: BTreeSet<&str> = provided.chain(served).filter(|contract| !is_kernel_contract(contract)).collect();
    for extension in &fragment.extensions {
        all.insert(&extension.point);
        all.extend(extension.slot.as_deref());
    }
    if fragment.prompts.iter().any(|prompt| !prompt.content.trim().is_empty()) {
        all.insert(SEGMENT_POINT);
    }
    all
}

/// Resolves.
pub fn activate(request: &ActivationRequest<'_>) -> Activation {
    let mut packages: BTreeMap<&str, Candidate<'_>> = BTreeMap::new();
    for package in request.packages {
        packages.entry(package.id()).or_insert_with(|| Candidate::of(package));
    }
    let mut resolver = Resolver { request, packages, bans: BTreeMap::new(), restored: BTreeSet::new() };
    loop {
        let attempt = resolver.attempt();
        match attempt {
            Ok(set) => return resolver.outcome(&set),
            Err((plugin, ban)) => {
                resolver.ban(plugin, ban);
            }
        }
    }
}

/// A package seen by the resolver.
struct Candidate<'a> {
    package: &'a Package,
    satisfies: BTreeSet<&'a str>,
}

impl<'a> Candidate<'a> {
    fn of(package: &'a Arc<Package>) -> Self {
        Self { package, satisfies: satisfies(&package.fragment) }
    }

    fn provides_as_default(&self, contract: &str) -> bool {
        self.package.fragment.provides.iter().any(|one| one.default && one.contract == contract)
    }
}

/// Why a package cannot be active.
#[derive(Clone, Debug)]
struct Ban {
    code: &'static str,
    message: String,
    /// The package whose activity is the reason; when it goes, the reason goes.
    because_of: Option<String>,
}

/// A package in the set under construction.
#[derive(Clone)]
struct Member {
    /// For auto-added ones: the contract, and who needs it.
    added: Option<(String, Option<String>)>,
}

/// Accepted packages in order of acceptance.
#[derive(Default)]
struct Set<'a> {
    order: Vec<&'a str>,
    members: BTreeMap<&'a str, Member>,
}

struct Resolver<'a> {
    request: &'a ActivationRequest<'a>,
    packages: BTreeMap<&'a str, Candidate<'a>>,
    bans: BTreeMap<String, Ban>,
    restored: BTreeSet<String>,
}

type Verdict = (String, Ban);

impl<'a> Resolver<'a> {
    fn ban(&mut self, plugin: String, ban: Ban) {
        self.bans.insert(plugin.clone(), ban);
        // What was banned only because this one was active gets one more chance.
        let freed: Vec<String> = self
            .bans
            .iter()
            .filter(|(id, ban)| ban.because_of.as_deref() == Some(plugin.as_str()) && !self.restored.contains(*id))
            .map(|(id, _)| id.clone())
            .collect();
        for id in freed {
            self.bans.remove(&id);
            self.restored.insert(id);
        }
    }

    /// One pass from the surviving requests: the settled set, or the first package that cannot stand.
    fn attempt(&self) -> Result<Set<'a>, Verdict> {
        let mut set = Set::default();
        for id in &self.request.requested {
            if self.bans.contains_key(id.as_str()) || set.members.contains_key(id.as_str()) {
                continue;
            }
            let Some((key, _)) = self.packages.get_key_value(id.as_str()) else {
                return Err(self.verdict(
                    id.as_str(),
                    "unknown-plugin",
                    format!("no package `{id}` is installed"),
                    None,
                ));
            };
            self.admissible(key)?;
            set.order.push(key);
            set.members.insert(key, Member { added: None });
        }
        loop {
            self.check_pairs(&set)?;
            let added = self.meet_requirements(&mut set)?;
            if !added {
                break;
            }
        }
        self.drop_unneeded(&mut set);
        Ok(set)
    }

    fn verdict(&self, id: &str, code: &'static str, message: String, because_of: Option<&str>) -> Verdict {
        (id.to_owned(), Ban { code, message, because_of: because_of.map(str::to_owned) })
    }

    /// May this package run here at all?
    fn admissible(&self, id: &str) -> Result<(), Verdict> {
        let package = self.packages[id].package;
        if self.request.excluded.contains(id) {
            return Err(self.verdict(id, "excluded", format!("`{id}` is turned off in this session"), None));
        }
        if package.needs_approval() && !self.request.approved.contains(id) {
            let message = format!("`{id}` comes from the community and is not approved in this session");
            return Err(self.verdict(id, "approval-required", message, None));
        }
        if let Some(conflict) = package.fragment.conflicts.iter().find(|one| is_kernel_contract(&one.contract)) {
            let message = format!("`{id}` names the kernel contract `{}` in `conflicts`", conflict.contract);
            return Err(self.verdict(id, "invalid-conflict", message, None));
        }
        Ok(())
    }

    /// Default providers step aside; conflicts and topics declared twice go against the later one.
    fn check_pairs(&self, set: &Set<'a>) -> Result<(), Verdict> {
        for id in &set.order {
            for provide in self.packages[id].package.fragment.provides.iter().filter(|one| one.default) {
                let other = set.order.iter().find(|other| {
                    let candidate = &self.packages[*other];
                    *other != id
                        && candidate.satisfies.contains(provide.contract.as_str())
                        && !candidate.provides_as_default(&provide.contract)
                });
                if let Some(other) = other {
                    let message = format!(
                        "`{id}` is the default provider of `{}` and steps aside for `{other}`",
                        provide.contract
                    );
                    return Err(self.verdict(id, "superseded", message, Some(other)));
                }
            }
        }
        let mut topics: BTreeMap<&str, &str> = BTreeMap::new();
        for (place, id) in set.order.iter().enumerate() {
            let fragment = &self.packages[id].package.fragment;
            for earlier in &set.order[..place] {
                let other = &self.packages[earlier];
                let forward = fragment.conflicts.iter().find(|one| other.satisfies.contains(one.contract.as_str()));
                let backward = || {
                    let own = &self.packages[id].satisfies;
                    other.package.fragment.conflicts.iter().find(|one| own.contains(one.contract.as_str()))
                };
                if let Some(conflict) = forward.or_else(backward) {
                    let message = format!("`{id}` and `{earlier}` exclude each other over `{}`", conflict.contract);
                    return Err(self.verdict(id, "conflict", message, Some(earlier)));
                }
            }
            for event in &fragment.events {
                match topics.get(event.topic.as_str()) {
                    Some(first) if first != id => {
                        let message = format!(
                            "`{id}` declares the event topic `{}`, which `{first}` declares already",
                            event.topic
                        );
                        return Err(self.verdict(id, "event-topic-conflict", message, Some(first)));
                    }
                    _ => {
                        topics.insert(&event.topic, id);
                    }
                }
            }
        }
        Ok(())
    }

    /// Adds the provider of one missing contract. `true` when it did.
    fn meet_requirements(&self, set: &mut Set<'a>) -> Result<bool, Verdict> {
        let met =
            |set: &Set<'a>, contract: &str| set.order.iter().any(|id| self.packages[id].satisfies.contains(contract));
        for id in set.order.clone() {
            for reference in &self.packages[id].package.fragment.requires {
                let contract = reference.contract.as_str();
                if met(set, contract) {
                    continue;
                }
                match self.provider_for(contract) {
                    Ok(provider) => {
                        set.order.push(provider);
                        set.members
                            .insert(provider, Member { added: Some((contract.to_owned(), Some(id.to_owned()))) });
                        return Ok(true);
                    }
                    Err(missing) => {
                        let message = format!("`{id}` requires `{contract}`: {}", missing.message);
                        return Err(self.verdict(id, missing.code_for_dependant(), message, None));
                    }
                }
            }
        }
        for contract in &self.request.required_contracts {
            if met(set, contract) {
                continue;
            }
            if let Ok(provider) = self.provider_for(contract) {
                set.order.push(provider);
                set.members.insert(provider, Member { added: Some((contract.clone(), None)) });
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The one package that could be added for a contract.
    fn provider_for(&self, contract: &str) -> Result<&'a str, Missing<'a>> {
        let all: Vec<&'a str> = self
            .packages
            .iter()
            .filter(|(_, candidate)| candidate.satisfies.contains(contract))
            .map(|(id, _)| *id)
            .collect();
        let names = |ids: &[&str]| ids.iter().map(|id| format!("`{id}`")).collect::<Vec<_>>().join(", ");
        if all.is_empty() {
            return Err(Missing::new(Lack::Nobody, "no installed package provides it".into(), all));
        }
        let usable: Vec<&'a str> =
            all.iter().copied().filter(|id| self.admissible(id).is_ok() && !self.bans.contains_key(*id)).collect();
        if let [only] = usable[..] {
            return Ok(only);
        }
        if !usable.is_empty() {
            let message = format!("several packages provide it and none was chosen: {}", names(&usable));
            return Err(Missing::new(Lack::Several, message, all));
        }
        let reason = |code: &str| {
            all.iter()
                .copied()
                .filter(|id| match self.admissible(id) {
                    Err((_, ban)) => ban.code == code,
                    Ok(()) => false,
                })
                .collect::<Vec<_>>()
        };
        let (unapproved, excluded) = (reason("approval-required"), reason("excluded"));
        if !unapproved.is_empty() {
            let message = format!("{} would provide it but is not approved in this session", names(&unapproved));
            return Err(Missing::new(Lack::Approval, message, all));
        }
        if excluded.len() == all.len() {
            let message = format!("{} would provide it but is turned off in this session", names(&excluded));
            return Err(Missing::new(Lack::Excluded, message, all));
        }
        let why: Vec<String> = all.iter().filter_map(|id| self.bans.get(*id)).map(|ban| ban.message.clone()).collect();
        Err(Missing::new(Lack::Rejected, format!("its provider cannot be active: {}", why.join("; ")), all))
    }

    /// Auto-added packages that nothing needs any more, directly or through others, go.
    fn drop_unneeded(&self, set: &mut Set<'a>) {
        let provider_of = |contract: &str| {
            set.order.iter().copied().filter(|id| self.packages[id].satisfies.contains(contract)).collect::<Vec<_>>()
        };
        let mut needed: BTreeSet<&str> = BTreeSet::new();
        let mut queue: Vec<&str> = set.order.iter().copied().filter(|id| set.members[id].added.is_none()).collect();
        for contract in &self.request.required_contracts {
            queue.extend(provider_of(contract));
        }
        while let Some(id) = queue.pop() {
            if needed.insert(id) {
                for reference in &self.packages[id].package.fragment.requires {
                    queue.extend(provider_of(&reference.contract));
                }
            }
        }
        let keep: BTreeSet<&str> = needed;
        set.order.retain(|id| keep.contains(id));
        set.members.retain(|id, _| keep.contains(id));
    }

    fn outcome(&self, set: &Set<'a>) -> Activation {
        let mut auto_added = Vec::new();
        for (id, member) in &set.members {
            if let Some((contract, needed_by)) = &member.added {
                let who = needed_by.as_ref().map_or("the world".to_owned(), |id| format!("`{id}`"));
                auto_added.push(AutoAdded {
                    plugin: PluginId::from(*id),
                    contract: contract.clone(),
                    needed_by: needed_by.as_deref().map(PluginId::from),
                    reason: format!("{who} requires `{contract}`, which only `{id}` provides"),
                });
            }
        }
        let mut rejected = Vec::new();
        let mut named = BTreeSet::new();
        let requested = self.request.requested.iter().map(PluginId::as_str);
        // Requests first, in their order; a lost provider nobody asked for is worth a word too.
        for id in requested.chain(self.bans.keys().map(String::as_str)) {
            if let (Some(ban), true) = (self.bans.get(id), named.insert(id)) {
                rejected.push(Rejected { plugin: id.into(), code: ban.code.to_owned(), message: ban.message.clone() });
            }
        }
        let mut unmet = Vec::new();
        for contract in &self.request.required_contracts {
            if set.order.iter().any(|id| self.packages[id].satisfies.contains(contract.as_str())) {
                continue;
            }
            if let Err(missing) = self.provider_for(contract) {
                unmet.push(Unmet {
                    contract: contract.clone(),
                    code: missing.code_for_world().to_owned(),
                    candidates: missing.candidates.iter().map(|id| PluginId::from(*id)).collect(),
                    message: format!("the world needs `{contract}`: {}", missing.message),
                });
            }
        }
        Activation { active: set.members.keys().map(|id| PluginId::from(*id)).collect(), auto_added, rejected, unmet }
    }
}

/// Why no provider could be added.
struct Missing<'a> {
    lack: Lack,
    message: String,
    candidates: Vec<&'a str>,
}

#[derive(Clone, Copy)]
enum Lack {
    Nobody,
    Several,
    Approval,
    Excluded,
    Rejected,
}

impl<'a> Missing<'a> {
    fn new(lack: Lack, message: String, candidates: Vec<&'a str>) -> Self {
        Self { lack, message, candidates }
    }

    fn code_for_dependant(&self) -> &'static str {
        match self.lack {
            Lack::Nobody => "missing-provider",
            Lack::Several => "ambiguous-provider",
            Lack::Approval => "provider-approval-required",
            Lack::Excluded => "provider-excluded",
            Lack::Rejected => "provider-rejected",
        }
    }

    fn code_for_world(&self) -> &'static str {
        match self.lack {
            Lack::Nobody | Lack::Rejected => "missing-provider",
            Lack::Several => "ambiguous-provider",
            Lack::Approval => "approval-required",
            Lack::Excluded => "excluded",
        }
    }
}
