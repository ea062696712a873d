//! Archives are trusted only after they have been checked.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use covel_graph::{
    ArchiveError, Discovery, Linked, PlanDigest, PlanHandle, compile_in_memory, decode_fragment, encode_fragment, link,
};

const PLUGIN: &str = "---\nid: p\nkind: plugin\ndescription: A package.\nprovides: [a@1]\n---\n";
const FIRST: &str =
    "---\ntype: agent\nschedule: { stage: pre-turn }\nio: { output: { contract: a@1 } }\n---\nSay something.\n";
const SECOND: &str = "---\ntype: agent\nschedule: { stage: pre-turn, needs: [p/first] }\n---\n";

fn linked() -> Linked {
    let files = [("PLUGIN.md", PLUGIN), ("runtimes/first/RUNTIME.md", FIRST), ("runtimes/second/RUNTIME.md", SECOND)];
    let compiled = compile_in_memory(&files, Discovery::Builtin);
    link(&[compiled.package.unwrap()]).unwrap()
}

#[test]
fn a_plan_is_read_back_as_it_was_built() {
    let linked = linked();
    let handle = linked.handle().unwrap();
    let back = rkyv::deserialize::<covel_graph::Plan, rkyv::rancor::Error>(&*handle).unwrap();
    assert_eq!(back, linked.plan);
    assert_eq!(handle.digest(), &linked.digest);
    assert_eq!(linked.digest.as_str().len(), 64);
    let copy = handle.clone();
    assert!(Arc::ptr_eq(copy.bytes(), handle.bytes()));
}

/// Values in LMDB start anywhere.
#[test]
fn alignment_does_not_matter() {
    let linked = linked();
    for shift in 0..16 {
        let mut padded = vec![0u8; shift];
        padded.extend_from_slice(&linked.bytes);
        let bytes: Arc<[u8]> = padded[shift..].into();
        assert!(PlanHandle::open(bytes, &linked.digest).unwrap().runtime_by_id("p/second").is_some());
    }
}

#[test]
fn a_handle_crosses_threads() {
    fn shared<T: Send + Sync + Clone + 'static>(_: &T) {}
    shared(&linked().handle().unwrap());
}

/// Every single flipped bit is noticed, in plans and in fragments.
#[test]
fn no_flipped_bit_passes() {
    let linked = linked();
    let fragment = {
        let files = [("PLUGIN.md", PLUGIN), ("runtimes/first/RUNTIME.md", FIRST)];
        let compiled = compile_in_memory(&files, Discovery::Builtin);
        compiled.package.unwrap().fragment.clone()
    };
    let archived = encode_fragment(&fragment).unwrap();
    assert_eq!(decode_fragment(&archived).unwrap(), *fragment);
    for at in 0..linked.bytes.len() {
        let mut bytes = linked.bytes.to_vec();
        bytes[at] ^= 1 << (at % 8);
        assert!(PlanHandle::open(bytes.into(), &linked.digest).is_err(), "plan byte {at}");
    }
    for at in 0..archived.len() {
        let mut bytes = archived.clone();
        bytes[at] ^= 1 << (at % 8);
        assert!(decode_fragment(&bytes).is_err(), "fragment byte {at}");
    }
    for length in 0..linked.bytes.len() {
        assert!(PlanHandle::open(linked.bytes[..length].into(), &linked.digest).is_err(), "cut at {length}");
    }
}

/// What was damaged and then sealed again with a fitting hash still may not lead outside its tables.
#[test]
fn indexes_are_checked_even_under_a_fitting_hash() {
    let linked = linked();
    let mut plan = linked.plan.clone();
    plan.order.hard.items[0] = 700;
    let (bytes, digest) = covel_graph::encode_plan(&plan).unwrap();
    let error = PlanHandle::open(bytes.as_slice().into(), &digest).unwrap_err();
    assert!(matches!(error, ArchiveError::Malformed { .. }), "{error}");

    let changes: [fn(&mut covel_graph::Plan); 8] = [
        |plan| plan.format = 9,
        |plan| plan.runtimes[0].plugin = 5,
        |plan| plan.runtimes[0].stage = 6,
        |plan| plan.stage_starts[2] = 90,
        |plan| plan.edge_starts[1] = 90,
        |plan| plan.edges[0].runtime = 90,
        |plan| plan.providers.starts[1] = 90,
        |plan| plan.order.by_id[0] = 90,
    ];
    for (place, change) in changes.iter().enumerate() {
        let mut plan = linked.plan.clone();
        change(&mut plan);
        let (bytes, digest) = covel_graph::encode_plan(&plan).unwrap();
        assert!(PlanHandle::open(bytes.as_slice().into(), &digest).is_err(), "change {place}");
    }
}

#[test]
fn each_refusal_says_what_it_is() {
    let linked = linked();
    let open = |bytes: Vec<u8>, digest: &PlanDigest| PlanHandle::open(bytes.into(), digest).unwrap_err().code();
    let good = linked.bytes.to_vec();
    let changed = |at: usize, byte: u8| {
        let mut bytes = good.clone();
        bytes[at] = byte;
        bytes
    };
    assert_eq!(open(Vec::new(), &linked.digest), "archive-foreign");
    assert_eq!(
        open(b"not an archive, but long enough to hold a whole header...".to_vec(), &linked.digest),
        "archive-foreign"
    );
    assert_eq!(open(changed(8, 9), &linked.digest), "archive-format");
    assert_eq!(open(changed(good.len() - 1, 1), &linked.digest), "archive-damaged");
    assert_eq!(open(good.clone(), &PlanDigest::from("00")), "archive-other-digest");
    let fragment = encode_fragment(&covel_graph::Fragment::default()).unwrap();
    assert_eq!(open(fragment, &linked.digest), "archive-foreign");
}
