//! Front matter: any bytes as a manifest, and the same manifest with other line ends and a byte-order mark.
#![no_main]

use covel_graph::{Compiled, Discovery};
use covel_graph_fuzz::rules;
use libfuzzer_sys::fuzz_target;

const GOOD: &str = "---\nid: p\nkind: plugin\ndescription: A package.\n---\n";

fn findings(compiled: &Compiled) -> Vec<(String, u32)> {
    compiled.diagnostics.iter().map(|finding| (finding.code.clone(), finding.line)).collect()
}

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let plain = rules::compile(&[("PLUGIN.md", &text)], Discovery::Builtin);
    rules::compile(&[("PLUGIN.md", GOOD), ("PLUGIN.zh.md", &text)], Discovery::Builtin);
    rules::compile(&[("PLUGIN.md", GOOD), ("runtimes/r/RUNTIME.md", &text)], Discovery::Builtin);
    rules::compile(&[("PLUGIN.md", GOOD), ("locales/zh-CN.yaml", &text)], Discovery::Builtin);
    if !text.contains('\u{feff}') {
        let marked = rules::compile(&[("PLUGIN.md", &format!("\u{feff}{text}"))], Discovery::Builtin);
        assert_eq!(findings(&plain), findings(&marked), "a byte-order mark changed the findings");
    }
    if !text.contains('\r') {
        let windows = rules::compile(&[("PLUGIN.md", &text.replace('\n', "\r\n"))], Discovery::Builtin);
        assert_eq!(findings(&plain), findings(&windows), "Windows line ends changed the findings");
    }
});
