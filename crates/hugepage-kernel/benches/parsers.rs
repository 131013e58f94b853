//! What the parsers cost, on the texts of the kernel at hand: alone, and with the reading that the views pay for.

#![allow(clippy::disallowed_methods)]

use std::fs;
use std::hint::black_box;

use criterion::{Criterion, Throughput};
use hugepage_kernel::cgroups::cgroup;
use hugepage_kernel::mapping::{maps, own_mapping, procmap_query, smaps};
use hugepage_kernel::memory::meminfo::Meminfo;
use hugepage_kernel::memory::pool;
use hugepage_kernel::proc::process::{self, ProcessStatus};
use hugepage_kernel::{Notes, Root};

fn text(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Nothing but text in memory.
fn parse(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("parse");
    let mut bench = |path: &str, parse: fn(&str)| {
        let text = text(path);
        group.throughput(Throughput::Bytes(text.len() as u64));
        group.bench_function(path, |bencher| bencher.iter(|| parse(black_box(&text))));
    };
    bench("/proc/meminfo", |text| {
        black_box(Meminfo::parse(text));
    });
    bench("/proc/self/status", |text| {
        black_box(ProcessStatus::parse(text));
    });
    bench("/proc/self/maps", |text| {
        for line in text.lines() {
            black_box(maps::parse(line));
        }
    });
    group.finish();
}

/// Times the parsers with open, read and close, as the views use them.
fn read(criterion: &mut Criterion) {
    let root = Root::live();
    let pid = i32::try_from(std::process::id()).expect("a process id");
    let address = std::ptr::from_ref(&root) as u64;
    let mut group = criterion.benchmark_group("read");
    group.bench_function("meminfo", |bencher| bencher.iter(|| Meminfo::read(&root)));
    group.bench_function("status of a process", |bencher| {
        bencher.iter(|| process::status(&root, pid))
    });
    group.bench_function("PROCMAP_QUERY", |bencher| {
        bencher.iter(|| procmap_query::holding(&root, address))
    });
    group.bench_function("mapping by text", |bencher| {
        bencher.iter(|| own_mapping::by_text(&root, address))
    });
    let mapping = own_mapping::at(&root, address)
        .expect("own maps can be read")
        .expect("the stack is mapped");
    group.bench_function("smaps of one mapping", |bencher| {
        bencher.iter(|| smaps::usage_of(&root, &mapping))
    });
    for size in pool::sizes(&root).unwrap_or_default() {
        group.bench_function(format!("pool of {size} pages"), |bencher| {
            bencher.iter(|| pool::pool(&root, size))
        });
        if let Ok(Some(hierarchy)) = cgroup::Hierarchy::find(&root) {
            let name = format!("cgroup limits on {size} pages");
            group.bench_function(name, |bencher| {
                bencher.iter(|| hierarchy.limits(&root, size, &mut Notes::default()))
            });
        }
    }
    group.finish();
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    parse(&mut criterion);
    read(&mut criterion);
    criterion.final_summary();
}
