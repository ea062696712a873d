//! What a turn costs, piece by piece. `cargo bench -p covel-benches --bench turn`
#![allow(missing_docs, clippy::unwrap_used)]

use std::{hint::black_box, io::Write as _, time::Duration};

use covel_benches::{engine, engine_without_clock, js_packages, linked_packages, no_ops, session};
use covel_exec::{ExecutionRequest, probe::WalkProbe};
use covel_graph::link::link;
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use tokio::runtime::Runtime;

fn plan(c: &mut Criterion) {
    let packages = linked_packages(20);
    c.bench_function("plan/link 20 packages", |b| b.iter(|| black_box(link(&packages).unwrap().digest)));
    let linked = link(&packages).unwrap();
    c.bench_function("plan/open 20 packages checked", |b| b.iter(|| black_box(linked.handle().unwrap())));
}

fn walk(c: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let mut group = c.benchmark_group("walk");
    for count in [10, 100, 1_000] {
        let host = Runtime::new().unwrap();
        let (engine, _folder) = host.block_on(async { engine_without_clock() });
        let probe = host.block_on(async {
            engine.publish_native(no_ops(count)).await.unwrap();
            let id = session(&engine).await;
            WalkProbe::new(&engine, &id, "go").await.unwrap()
        });
        assert_eq!(runtime.block_on(probe.walk()), count);
        group.throughput(Throughput::Elements(count as u64));
        group.bench_function(format!("{count} no-op native runtimes, 5 layers"), |b| {
            b.iter(|| runtime.block_on(async { black_box(probe.walk().await) }));
        });
    }
    group.finish();
}

fn javascript(c: &mut Criterion) {
    let host = Runtime::new().unwrap();
    let mut group = c.benchmark_group("js");
    for count in [1, 10] {
        let (engine, _folder) = host.block_on(async { engine(false) });
        let probe = host.block_on(async {
            engine.publish(js_packages(count)).await;
            let id = session(&engine).await;
            WalkProbe::new(&engine, &id, &"word ".repeat(200)).await.unwrap()
        });
        assert_eq!(host.block_on(probe.walk()), count);
        group.bench_function(format!("walk of {count} warm JS runtimes, 1 KB context"), |b| {
            b.iter(|| host.block_on(async { black_box(probe.walk().await) }));
        });
    }
    group.finish();
}

/// Durable and in-memory turns beside a raw fsync in one run: compare within the run only.
fn durable(c: &mut Criterion) {
    let host = Runtime::new().unwrap();
    let mut group = c.benchmark_group("turn");
    group.sample_size(30).measurement_time(Duration::from_secs(6));
    let folder = tempfile::tempdir().unwrap();
    let mut file = std::fs::File::create(folder.path().join("probe")).unwrap();
    let page = [7u8; 4096];
    group.bench_function("raw 4 KiB write + fdatasync", |b| {
        b.iter(|| {
            file.write_all(&page).unwrap();
            file.sync_data().unwrap();
        });
    });
    for (name, sync) in [("10 JS runtimes, commit without sync", false), ("10 JS runtimes, durable commit", true)] {
        let (engine, _folder) = host.block_on(async { engine(sync) });
        let id = host.block_on(async {
            engine.publish(js_packages(10)).await;
            session(&engine).await
        });
        group.bench_function(name, |b| {
            b.iter_batched(
                || ExecutionRequest::player(&id, "word ".repeat(200)),
                |request| {
                    let turn = host.block_on(engine.execute(request, None)).unwrap();
                    assert!(turn.committed);
                },
                BatchSize::SmallInput,
            );
        });
    }
    group.finish();
}

criterion_group!(benches, plan, walk, javascript, durable);
criterion_main!(benches);
