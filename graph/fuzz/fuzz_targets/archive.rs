//! Archives: any bytes, changed archives, and payloads sealed again under a fitting hash.
//!
//! Nothing panics; nothing is accepted that is not, byte for byte, what the digest or the header's hash names; and what
//! is accepted can be walked to its last corner.
#![no_main]

use std::sync::{Arc, LazyLock};

use covel_graph::{
    Discovery, PlanDigest, PlanHandle, archive::FRAGMENT_FORMAT, decode_fragment, encode_fragment, link,
    plan::PLAN_FORMAT,
};
use covel_graph_fuzz::rules;
use libfuzzer_sys::fuzz_target;

const HEADER: usize = 48;
const ROOT: &str = "---\nid: p\nkind: plugin\ndescription: A package.\nprovides: [a@1]\ncontracts: { a@1: { schema: ./a.json } }\ncontributes:\n  settings:\n    - { key: k, type: slider, label: { en: K, zh: K }, default: 1, min: 0, max: 3 }\n  events: [{ topic: a.b, schema: ./a.json, description: It happened. }]\n---\nBody.\n";
const FIRST: &str =
    "---\ntype: agent\nschedule: { stage: pre-turn }\nio: { output: { contract: a@1 } }\n---\nSay it.\n";
const SECOND: &str = "---\ntype: agent\nschedule: { stage: pre-turn, needs: [p/first, p/third] }\n---\n";
const THIRD: &str = "---\ntype: agent\nschedule: { trigger: { type: event, topic: a.b } }\n---\n";
const SCHEMA: &str = r#"{"type":"object","properties":{"a":{"type":"string"}}}"#;

struct Good {
    fragment: Vec<u8>,
    plan: Vec<u8>,
    digest: PlanDigest,
}

static GOOD: LazyLock<Good> = LazyLock::new(|| {
    let files = [
        ("PLUGIN.md", ROOT),
        ("runtimes/first/RUNTIME.md", FIRST),
        ("runtimes/second/RUNTIME.md", SECOND),
        ("runtimes/third/RUNTIME.md", THIRD),
        ("a.json", SCHEMA),
    ];
    let compiled = rules::compile(&files, Discovery::Builtin);
    let package = compiled.package.unwrap_or_else(|| panic!("{:#?}", compiled.diagnostics));
    let linked = link(std::slice::from_ref(&package)).expect("links");
    Good {
        fragment: encode_fragment(&package.fragment).expect("archives"),
        plan: linked.bytes.to_vec(),
        digest: linked.digest,
    }
});

/// A header whose hash fits whatever follows.
fn sealed(tag: &[u8; 4], format: u32, payload: &[u8]) -> (Vec<u8>, PlanDigest) {
    let mut hasher = blake3::Hasher::new();
    hasher.update(tag).update(&format.to_le_bytes()).update(payload);
    let hash = hasher.finalize();
    let mut bytes = Vec::with_capacity(HEADER + payload.len());
    bytes.extend_from_slice(b"COVL");
    bytes.extend_from_slice(tag);
    bytes.extend_from_slice(&format.to_le_bytes());
    bytes.extend_from_slice(&[0; 4]);
    bytes.extend_from_slice(hash.as_bytes());
    bytes.extend_from_slice(payload);
    (bytes, PlanDigest::from(hash.to_hex().as_str()))
}

/// Changes named by four bytes each: a place, what to do, with what.
fn changed(bytes: &[u8], changes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for change in changes.chunks_exact(4).take(64) {
        if bytes.is_empty() {
            break;
        }
        let place = u16::from_le_bytes([change[0], change[1]]) as usize % bytes.len();
        match change[2] % 6 {
            0 => bytes[place] ^= 1 << (change[3] % 8),
            1 => bytes[place] = change[3],
            2 => bytes.truncate(place),
            3 => bytes.insert(place, change[3]),
            // What rkyv points with is relative and signed: small differences lead to neighbours.
            4 => bytes[place] = bytes[place].wrapping_add(change[3] % 16).wrapping_sub(8),
            _ => drop(bytes.remove(place)),
        }
    }
    bytes
}

fn open(bytes: &[u8], digest: &PlanDigest) -> bool {
    match PlanHandle::open(Arc::from(bytes), digest) {
        Ok(handle) => {
            rules::plan_is_walkable(&handle);
            true
        }
        Err(error) => {
            assert!(!error.code().is_empty() && error.to_string().len() < 4_000);
            false
        }
    }
}

fuzz_target!(|bytes: &[u8]| {
    let good = &*GOOD;
    let Some((mode, rest)) = bytes.split_first() else {
        return;
    };
    match mode % 4 {
        0 => {
            let accepted = open(rest, &good.digest);
            assert!(!accepted || rest == good.plan, "other bytes pass as the plan");
            if let Ok(fragment) = decode_fragment(rest) {
                assert!(encode_fragment(&fragment).is_ok());
            }
        }
        1 => {
            let plan = changed(&good.plan, rest);
            assert_eq!(open(&plan, &good.digest), plan == good.plan, "a changed plan");
            let fragment = changed(&good.fragment, rest);
            assert_eq!(decode_fragment(&fragment).is_ok(), fragment == good.fragment, "a changed fragment");
        }
        2 => {
            let (plan, digest) = sealed(b"PLAN", PLAN_FORMAT, &changed(&good.plan[HEADER..], rest));
            open(&plan, &digest);
            let same = plan == good.plan;
            assert_eq!(open(&plan, &good.digest), same, "another plan passes under this digest");
        }
        _ => {
            let (bytes, _) = sealed(b"FRAG", FRAGMENT_FORMAT, &changed(&good.fragment[HEADER..], rest));
            if let Ok(fragment) = decode_fragment(&bytes) {
                let again = encode_fragment(&fragment).expect("what was decoded can be archived");
                let back = decode_fragment(&again).expect("a fresh archive opens");
                assert!(encode_fragment(&back).expect("archives") == again, "a fragment changed in its archive");
            }
        }
    }
});
