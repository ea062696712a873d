//! A host that starts again: what is compiled, what is taken as it was, and what is never trusted.
#![allow(clippy::unwrap_used)]

mod support;

use std::{
    fs,
    path::{Path, PathBuf},
};

use covel_exec::{COMPILED_NAMES, Engine, NewSession, PackageShelf};
use covel_graph::{CacheUse, Discovery, Json, PackageCache, PlanDigest, Publication, Shelf};
use covel_store::StoreError;
use serde_json::json;
use support::open;
use tempfile::TempDir;

const COUNT: usize = 12;

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// Packages of one runtime; the first has a warning, the second a file in a folder that reading passes over.
fn folders(root: &Path, count: usize) -> Vec<PathBuf> {
    (0..count)
        .map(|at| {
            let dir = root.join(format!("p{at:03}"));
            let handler = if at == 1 { "./node_modules/h.js" } else { "./handler.js" };
            let extra = if at == 0 { "optional: [no.body@1]\n" } else { "" };
            let manifest = format!(
                "---\nid: p{at:03}\nkind: plugin\ndescription: A package.\n{extra}runtime:\n  type: function\n  schedule: {{ stage: pre-turn }}\n  function: {{ handler: {handler} }}\n---\n"
            );
            write(&dir.join("PLUGIN.md"), &manifest);
            write(&dir.join(handler), "export default () => ({ outcome: 'success', value: {} });");
            dir
        })
        .collect()
}

/// One run of a host: reads what the last one kept, publishes, keeps, and hands the engine out.
async fn run(data: &Path, dirs: &[PathBuf]) -> (Engine, Publication) {
    let shelf = PackageShelf::open(data);
    let published =
        PackageCache::default().publish(dirs, Discovery::Builtin, shelf.as_ref().map(|shelf| shelf as &dyn Shelf));
    drop(shelf);
    let engine = open(data, json!([]));
    let packages = published.compiled.iter().filter_map(|one| one.package.clone()).collect();
    for state in engine.publish(packages).await {
        assert_eq!(state.error, None, "{}", state.plugin_id);
    }
    engine.remember(published.remember.clone()).await.unwrap();
    (engine, published)
}

async fn start(data: &Path, dirs: &[PathBuf]) -> Publication {
    let (engine, published) = run(data, dirs).await;
    engine.close().await;
    published
}

fn used(compiled: usize, reopened: usize) -> CacheUse {
    CacheUse { compiled, reopened, ..CacheUse::default() }
}

/// Replaces the stored fragment of a package.
async fn put_fragment(engine: &Engine, digest: &str, bytes: Vec<u8>) {
    let digest = digest.to_owned();
    let put = engine.store().transact(move |tx| {
        tx.delete_fragment(&digest)?;
        tx.put_fragment(&digest, &bytes)?;
        Ok::<_, StoreError>(())
    });
    put.await.unwrap();
}

fn stored(engine: &Engine, digest: &str) -> Vec<u8> {
    engine.shelf().fragment(digest).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_start_compiles_only_what_changed() {
    let root = TempDir::new().unwrap();
    let (data, dirs) = (root.path().join("data"), folders(&root.path().join("plugins"), 200));
    let first = start(&data, &dirs).await;
    assert_eq!(first.used, used(200, 0));

    let second = start(&data, &dirs).await;
    assert_eq!(second.used, used(0, 200));
    assert!(second.remember.is_empty());
    for (a, b) in first.compiled.iter().zip(&second.compiled) {
        let (one, two) = (a.package.as_ref().unwrap(), b.package.as_ref().unwrap());
        assert_eq!((&one.fragment, &one.digest, one.discovery), (&two.fragment, &two.digest, two.discovery));
        assert_eq!((&a.plugin_id, &a.diagnostics), (&b.plugin_id, &b.diagnostics));
        assert!(one.files.iter().eq(two.files.iter()) && one.root == two.root);
    }

    write(&dirs[7].join("handler.js"), "export default () => ({ outcome: 'skipped' });");
    write(&dirs[1].join("node_modules/h.js"), "export default () => ({ outcome: 'skipped' });");
    assert_eq!(start(&data, &dirs).await.used, used(2, 198));
    assert_eq!(start(&data, &dirs).await.used, used(0, 200));
}

/// A package under another folder name may be wrong there, so it is compiled.
#[tokio::test(flavor = "multi_thread")]
async fn a_renamed_folder_is_compiled() {
    let root = TempDir::new().unwrap();
    let (data, dirs) = (root.path().join("data"), folders(&root.path().join("plugins"), 3));
    start(&data, &dirs).await;
    let moved = root.path().join("plugins/other");
    fs::rename(&dirs[2], &moved).unwrap();
    let again = start(&data, &[dirs[0].clone(), dirs[1].clone(), moved]).await;
    assert_eq!(again.used, used(1, 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn damaged_fragments_and_records_are_compiled_and_replaced() {
    let root = TempDir::new().unwrap();
    let (data, dirs) = (root.path().join("data"), folders(&root.path().join("plugins"), COUNT));
    let first = start(&data, &dirs).await;
    let digests: Vec<String> = first.compiled.iter().map(|one| one.package.as_ref().unwrap().digest.clone()).collect();

    // Another bit, or another end, of another package's fragment each.
    let (engine, published) = run(&data, &dirs).await;
    assert_eq!(published.used, used(0, COUNT));
    let sound: Vec<Vec<u8>> = digests.iter().map(|digest| stored(&engine, digest)).collect();
    for (at, digest) in digests.iter().enumerate() {
        let mut bytes = sound[at].clone();
        match at {
            0 => bytes.clear(),
            1 => bytes.truncate(bytes.len() - 1),
            2 => bytes.clone_from(&sound[3]),
            _ => {
                let place = (at - 3) * (bytes.len() - 1) / (COUNT - 4);
                bytes[place] ^= 1 << (at % 8);
            }
        }
        put_fragment(&engine, digest, bytes).await;
    }
    engine.close().await;
    drop(engine);

    let (engine, published) = run(&data, &dirs).await;
    assert_eq!(published.used, used(COUNT, 0), "none of them is trusted");
    for (sound, digest) in sound.iter().zip(&digests) {
        assert_eq!(*sound, stored(&engine, digest), "the sound one took its place");
    }
    // Records: each loses its last sign.
    let names = engine.store().read(|reader| reader.list_meta()).unwrap();
    let names: Vec<String> = names.into_iter().filter(|name| name.starts_with(COMPILED_NAMES)).collect();
    assert_eq!(names.len(), COUNT);
    let shelf = engine.shelf();
    let put = engine.store().transact(move |tx| {
        for (at, name) in names.iter().enumerate() {
            let mut record = shelf.record(&name[COMPILED_NAMES.len()..]).unwrap();
            if at % 2 == 0 {
                record = record.replace("\"diagnostics\":[", "\"diagnostics\": [");
            } else {
                record.pop();
            }
            tx.put_meta(name, &Json::from_value(json!({ "record": record })))?;
        }
        Ok::<_, StoreError>(())
    });
    put.await.unwrap();
    engine.close().await;
    drop(engine);
    assert_eq!(start(&data, &dirs).await.used, used(COUNT, 0));
    assert_eq!(start(&data, &dirs).await.used, used(0, COUNT));
}

/// Every byte of a stored plan, and every length, on the way a turn takes.
#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_or_misnamed_plan_is_linked_again() {
    let root = TempDir::new().unwrap();
    let (data, dirs) = (root.path().join("data"), folders(&root.path().join("plugins"), 2));
    let (engine, _) = run(&data, &dirs).await;
    let session = engine.create_session(NewSession::default()).await.unwrap().id;
    let sound = engine.plan(&session).await.unwrap();
    let alone = NewSession { plugins: Some(vec!["p000".into()]), ..NewSession::default() };
    let alone = engine.create_session(alone).await.unwrap().id;
    let other = engine.plan(&alone).await.unwrap();
    assert_ne!(other.digest(), sound.digest());
    engine.close().await;
    drop(engine);

    let length = sound.bytes().len();
    for step in 0..24 {
        let engine = open(&data, json!([]));
        let mut bytes = sound.bytes().to_vec();
        let digest = PlanDigest::from(sound.digest().as_str());
        let (wrong, expected) = (other.digest().as_str().to_owned(), digest.as_str().to_owned());
        match step % 3 {
            0 => bytes[step * (length - 1) / 23] ^= 0x10,
            1 => bytes.truncate(step * length / 24),
            _ => {}
        }
        let put = engine.store().transact(move |tx| {
            tx.delete_plan(&digest)?;
            tx.put_plan(&digest, &bytes)?;
            if step % 3 == 2 {
                // An intact plan under the wrong name.
                for name in tx.read().list_meta()?.iter().filter(|name| name.starts_with("plan:")) {
                    tx.put_meta(name, &Json::from_value(wrong.as_str().into()))?;
                }
            }
            Ok::<_, StoreError>(())
        });
        put.await.unwrap();
        let packages = PackageCache::default().compile_all(&dirs, Discovery::Builtin).0;
        engine.publish(packages.into_iter().filter_map(|one| one.package).collect()).await;
        let plan = engine.plan(&session).await.unwrap();
        assert_eq!((plan.digest().as_str(), plan.bytes()), (expected.as_str(), sound.bytes()), "step {step}");
        let kept =
            engine.store().read(|reader| Ok::<_, StoreError>(reader.get_plan(plan.digest())?.map(<[u8]>::to_vec)));
        assert_eq!(kept.unwrap().unwrap(), sound.bytes().to_vec(), "step {step}");
        assert_eq!(engine.plan(&alone).await.unwrap().digest(), other.digest(), "step {step}");
        engine.close().await;
    }
}
