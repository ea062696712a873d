//! The modules every isolate can import: the kernel, zod, the SDK, subsets of node modules.

include!(concat!(env!("OUT_DIR"), "/modules.rs"));

/// Bare names plugin code may import, for messages.
pub(crate) const IMPORTABLE: &str = "`@covel/plugin-handlers-utils` (and /extension-points, /plugin-api, /dimensions, /prompts), `zod`, \
     `node:assert`, `node:buffer`, `node:crypto`, `node:path`, `node:timers`, `node:url`, `node:util`";

/// The source of a host module.
pub(crate) fn source(name: &str) -> Option<&'static str> {
    MODULES.iter().find(|(n, _)| *n == name).map(|(_, source)| *source)
}

/// The host module plugin code means by a bare specifier. `covel:` modules are the kernel's own.
pub(crate) fn importable(specifier: &str) -> Option<&'static str> {
    let wanted = match specifier {
        "zod/v4" => "zod",
        // Its name in packages of earlier hosts.
        "@covel/tools" => "@covel/plugin-handlers-utils",
        "assert" | "buffer" | "crypto" | "path" | "timers" | "url" | "util" => {
            return importable(&format!("node:{specifier}"));
        }
        "node:assert/strict" | "assert/strict" => "node:assert",
        other => other,
    };
    MODULES.iter().map(|(name, _)| *name).find(|name| *name == wanted && !name.starts_with("covel:"))
}
