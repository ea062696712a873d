//! What publishing costs: compiling, publishing again, linking, opening, layering. `cargo bench -p covel-benches --bench publish`
#![allow(missing_docs, clippy::unwrap_used)]

use std::{
    fs,
    hint::black_box,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use covel_graph::{Discovery, Package, PackageCache, PlanHandle, compile_all, layer, link};
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use fixedbitset::FixedBitSet;
use tempfile::TempDir;

/// Runtimes of each package; each waits for five others.
const RUNTIMES: usize = 5;
const STAGES: [&str; 4] = ["pre-turn", "narrative", "post-turn", "audit"];

/// Writes `count` packages: five runtimes each, each with five edges (own runtimes, a contract of the package before).
fn folders(count: usize) -> (TempDir, Vec<PathBuf>) {
    let root = tempfile::tempdir().unwrap();
    let dirs: Vec<PathBuf> = (0..count)
        .map(|at| {
            let dir = root.path().join(format!("p{at:04}"));
            let before = |back: usize| format!("out.p{:04}@1", at.saturating_sub(back));
            let optional: Vec<String> = (1..=4).filter(|back| *back <= at).map(before).collect();
            let manifest = format!(
                "---\nid: p{at:04}\nkind: plugin\ndescription: A bench package.\nprovides: [out.p{at:04}@1]\noptional: [{}]\ncontracts: {{ out.p{at:04}@1: {{ schema: ./out.json }} }}\n---\n",
                optional.join(", ")
            );
            let schema = r#"{"type":"object","required":["n"],"properties":{"n":{"type":"integer","minimum":0},"text":{"type":"string"}}}"#;
            write(&dir, "PLUGIN.md", &manifest);
            write(&dir, "out.json", schema);
            write(&dir, "in.json", r#"{"type":"object","properties":{"n":{"type":"number"}}}"#);
            write(&dir, "handler.js", "export default () => ({ outcome: 'success', value: { n: 1 } });");
            for own in 0..RUNTIMES {
                let mut after: Vec<String> = (0..own).map(|other| format!("p{at:04}/r{other}")).collect();
                after.extend(optional.iter().take(4 - own).map(|contract| format!("{{ contract: {contract} }}")));
                let input = match optional.first() {
                    Some(contract) => format!("inputs: {{ before: {{ from: {{ contract: {contract} }}, required: false, accepts: ../../in.json }} }}"),
                    None => String::new(),
                };
                let gives = if own == 0 { format!("output: {{ contract: out.p{at:04}@1 }}") } else { String::new() };
                let comma = if input.is_empty() || gives.is_empty() { "" } else { ", " };
                let text = format!(
                    "---\ntype: function\nschedule: {{ stage: {}, after: [{}] }}\nio: {{ {gives}{comma}{input} }}\nfunction: {{ handler: ../../handler.js }}\n---\n",
                    STAGES[at % STAGES.len()],
                    after.join(", ")
                );
                write(&dir.join(format!("runtimes/r{own}")), "RUNTIME.md", &text);
            }
            dir
        })
        .collect();
    (root, dirs)
}

/// Writes a file as if it had lain there for a minute: a fresh file is read again whatever its times say.
fn write(dir: &std::path::Path, name: &str, text: &str) {
    fs::create_dir_all(dir).unwrap();
    fs::write(dir.join(name), text).unwrap();
    let file = fs::File::options().write(true).open(dir.join(name)).unwrap();
    file.set_modified(SystemTime::now() - Duration::from_secs(60)).unwrap();
}

fn compiled(dirs: &[PathBuf]) -> Vec<Arc<Package>> {
    let all = compile_all(dirs, Discovery::Builtin);
    all.into_iter().map(|one| one.package.unwrap_or_else(|| panic!("{:?}", one.diagnostics))).collect()
}

fn threads(count: usize) -> rayon::ThreadPool {
    rayon::ThreadPoolBuilder::new().num_threads(count).build().unwrap()
}

fn compile(c: &mut Criterion) {
    let mut group = c.benchmark_group("publish");
    group.sample_size(10).measurement_time(Duration::from_secs(3));
    for count in [20, 200] {
        let (_root, dirs) = folders(count);
        group.throughput(Throughput::Elements(count as u64));
        for workers in [1, 2] {
            let pool = threads(workers);
            group.bench_function(format!("{count} packages cold, {workers} threads"), |b| {
                b.iter(|| pool.install(|| black_box(compile_all(&dirs, Discovery::Builtin))));
            });
            let cache = PackageCache::default();
            pool.install(|| cache.compile_all(&dirs, Discovery::Builtin));
            group.bench_function(format!("{count} packages unchanged, {workers} threads"), |b| {
                b.iter(|| {
                    let (all, used) = pool.install(|| cache.compile_all(&dirs, Discovery::Builtin));
                    assert_eq!(used.unchanged, count);
                    black_box(all)
                });
            });
            // Never a text that already lies there.
            let mut round = 1_000_000 * workers as u64;
            group.bench_function(format!("{count} packages, one changed, {workers} threads"), |b| {
                b.iter_custom(|rounds| {
                    let mut spent = Duration::ZERO;
                    for _ in 0..rounds {
                        round += 1;
                        write(
                            &dirs[count / 2],
                            "handler.js",
                            &format!("export default () => ({{ outcome: 'success', value: {{ n: {round} }} }});"),
                        );
                        let started = Instant::now();
                        let (all, used) = pool.install(|| cache.compile_all(&dirs, Discovery::Builtin));
                        spent += started.elapsed();
                        assert_eq!((used.compiled, used.unchanged), (1, count - 1));
                        black_box(all);
                    }
                    spent
                });
            });
        }
    }
    group.finish();
}

fn plan(c: &mut Criterion) {
    let mut group = c.benchmark_group("plan");
    group.sample_size(20).measurement_time(Duration::from_secs(3));
    for count in [20, 200, 2000] {
        let (_root, dirs) = folders(count);
        let packages = compiled(&dirs);
        let linked = link(&packages).unwrap();
        let runtimes = linked.plan.runtimes.len();
        println!(
            "{count} packages: {runtimes} runtimes, {} edges, archive of {} bytes, {} findings",
            linked.plan.edges.len(),
            linked.bytes.len(),
            linked.diagnostics.len()
        );
        group.bench_function(format!("link {count} packages"), |b| b.iter(|| black_box(link(&packages).unwrap())));
        let bytes: Arc<[u8]> = linked.bytes.as_slice().into();
        group.bench_function(format!("open {runtimes} runtimes checked"), |b| {
            b.iter(|| PlanHandle::open(bytes.clone(), &linked.digest).unwrap());
        });
        let handle = linked.handle().unwrap();
        let nothing = FixedBitSet::with_capacity(runtimes);
        // Every tenth runtime, from a start that differs each time.
        let mut start = 0;
        group.throughput(Throughput::Elements(runtimes as u64 / 10));
        group.bench_function(format!("layer a tenth of {runtimes} runtimes"), |b| {
            b.iter_batched(
                || {
                    start = (start + 7) % 10;
                    let mut members = FixedBitSet::with_capacity(runtimes);
                    members.extend((start..runtimes).step_by(10));
                    members
                },
                |members| black_box(layer(&handle, &members, &nothing)),
                BatchSize::SmallInput,
            );
        });
    }
    group.finish();
}

criterion_group!(benches, compile, plan);
criterion_main!(benches);
