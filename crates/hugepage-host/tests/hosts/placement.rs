//! The NUMA nodes of a machine with two of them, from its files.

use std::fs;
use std::path::Path;

use hugepage_assess::assessment::Status;
use hugepage_assess::model::{HugePages, Product, Requested};
use hugepage_kernel::mapping::maps;
use hugepage_kernel::{Bytes, Notes, PageSize, Root};
use hugepage_server::placement::placement;
use hugepage_server::server::observe;

use super::{FIXTURES, MIB};

pub fn write(top: &Path, path: &str, text: &str) {
    let path = top.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// 300 pages on each of two nodes, for a server with 512.
fn machine(top: &Path) {
    write(
        top,
        "proc/meminfo",
        "MemTotal: 16777216 kB\nHugepagesize: 2048 kB\n",
    );
    fs::create_dir_all(top.join("proc/self")).unwrap();
    fs::copy(
        format!("{FIXTURES}/two-nodes/proc/self/auxv"),
        top.join("proc/self/auxv"),
    )
    .unwrap();
    write(top, "proc/self/status", "Mems_allowed_list:\t0-1\n");
    let pool = |directory: &str, numbers: [u64; 3]| {
        for (name, number) in ["nr_hugepages", "free_hugepages", "surplus_hugepages"]
            .into_iter()
            .zip(numbers)
        {
            write(
                top,
                &format!("{directory}/hugepages-2048kB/{name}"),
                &format!("{number}\n"),
            );
        }
    };
    pool("sys/kernel/mm/hugepages", [600, 552, 0]);
    write(
        top,
        "sys/kernel/mm/hugepages/hugepages-2048kB/resv_hugepages",
        "464\n",
    );
    for (node, free) in [(0, 256), (1, 296)] {
        pool(
            &format!("sys/devices/system/node/node{node}/hugepages"),
            [300, free, 0],
        );
        let text = format!("Node {node} MemTotal: 8388608 kB\n");
        write(
            top,
            &format!("sys/devices/system/node/node{node}/meminfo"),
            &text,
        );
    }
}

#[test]
fn two_nodes() {
    let tree = tempfile::tempdir().unwrap();
    machine(tree.path());
    let root = Root::at(tree.path());
    // Where this process has nothing.
    let end = 0x1000_0000_0000_u64 + 512 * 2 * MIB;
    let line = format!("100000000000-{end:x} rw-s 00000000 00:10 7 /anon_hugepage (deleted)");
    let mapping = maps::Mapping {
        page_size: PageSize::new(2 * MIB),
        ..maps::parse(&line).unwrap()
    };
    let requested = Requested {
        product: Product::PostgreSql,
        huge_pages: HugePages::Try,
        huge_page_size: None,
        sysv: false,
        shared_buffers: Bytes(512 * MIB),
        io_uring: false,
    };
    let rows = |mapping: Option<&maps::Mapping>| {
        let mut notes = Notes::default();
        let server = observe(
            &root,
            requested,
            mapping.cloned(),
            |_, _, _| None,
            20,
            None,
            &mut notes,
        );
        let mut notes = Notes::default();
        let found = placement(
            &root,
            &Status::assess(server),
            mapping,
            None,
            &mut || {},
            &mut notes,
        );
        (found.map(|found| found.rows()), notes.into_vec())
    };
    let (found, notes) = rows(Some(&mapping));
    let found = found.unwrap();
    let numbers = |row: &hugepage_assess::assessment::NodeRow| {
        (row.node, row.pool.free.0, row.segment.map(|pages| pages.0))
    };
    assert_eq!(
        found.iter().map(numbers).collect::<Vec<_>>(),
        [(0, 256, None), (1, 296, None)]
    );
    assert!(
        found
            .iter()
            .all(|row| row.memory == Some(Bytes(8 << 30)) && row.pool.resv.is_none())
    );
    assert!(
        found.iter().all(|row| row.allowed.is_none()),
        "a tree does not show the memory policy"
    );
    assert_eq!(
        notes.last().unwrap(),
        "the kernel does not say on which NUMA nodes the pages are (move_pages)"
    );

    let (found, _) = rows(None);
    assert_eq!(
        found.unwrap()[0].segment.map(|pages| pages.0),
        Some(0),
        "no segment is in huge pages"
    );

    fs::remove_dir_all(tree.path().join("sys/devices")).unwrap();
    let (found, notes) = rows(Some(&mapping));
    assert_eq!(
        (found, notes),
        (None, vec!["this kernel shows no NUMA nodes".to_owned()])
    );
}
