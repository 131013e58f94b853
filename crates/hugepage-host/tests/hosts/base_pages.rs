//! PostgreSQL servers in base pages, of whom more is known than the memory that they map.

use std::fs;

use hugepage_assess::advice::hint;
use hugepage_host::{host_advice, survey};
use hugepage_kernel::{Pages, Root};
use tempfile::TempDir;

use crate::placement::write;

/// A host without huge pages, and its servers, each with the end of its mapping, which begins at 0x7f0000000000.
fn host(meminfo: &str, servers: &[(u32, &str)]) -> TempDir {
    let tree = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| write(tree.path(), path, text);
    write("proc/meminfo", &format!("{meminfo}Hugepagesize: 2048 kB\n"));
    write(
        "proc/self/mountinfo",
        "1 2 0:1 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
    );
    let auxv: Vec<u8> = [6u64, 4096, 0, 0]
        .into_iter()
        .flat_map(u64::to_le_bytes)
        .collect();
    fs::write(tree.path().join("proc/self/auxv"), auxv).unwrap();
    for name in [
        "nr_hugepages",
        "free_hugepages",
        "resv_hugepages",
        "surplus_hugepages",
    ] {
        write(
            &format!("sys/kernel/mm/hugepages/hugepages-2048kB/{name}"),
            "0\n",
        );
    }
    for (pid, end) in servers {
        write(
            &format!("proc/{pid}/cmdline"),
            &format!("/usr/bin/postgres\0-D\0/data{pid}\0"),
        );
        write(&format!("proc/{pid}/status"), "PPid:\t1\n");
        write(&format!("proc/{pid}/cgroup"), "0::/a\n");
        let mapping = format!("7f0000000000-{end} rw-s 00000000 00:01 1028 /dev/zero (deleted)\n");
        write(&format!("proc/{pid}/maps"), &mapping);
    }
    tree
}

/// Of 17 GB and of 40 MB, on a host of 20 GB.
#[test]
fn who_does_not_fit_harms_nobody() {
    let memory = "MemTotal: 20971520 kB\nMemAvailable: 8388608 kB\nShmem: 0 kB\n";
    let tree = host(memory, &[(7, "7f0440000000"), (8, "7f0002800000")]);
    let survey = survey(&Root::at(tree.path()), 20);
    let hints: Vec<_> = survey
        .instances
        .iter()
        .map(|instance| hint(&instance.status).unwrap())
        .collect();
    assert!(hints[0].starts_with("Reduce shared_buffers"), "{hints:?}");
    // One number for the pool, whoever is asked.
    let recommended: Vec<_> = survey
        .instances
        .iter()
        .map(|instance| instance.status.recommended)
        .collect();
    assert_eq!(recommended, [Some(Pages(20)); 2]);
    assert!(
        hints[1].starts_with("Run \"sysctl -w vm.nr_hugepages=20\""),
        "{hints:?}"
    );
    let sizing = &survey.sizings()[0];
    assert_eq!(sizing.recommended.map(|pages| pages.0), Some(20));
    let all: Vec<_> = host_advice::recommendations(&survey, std::slice::from_ref(sizing));
    let reason = &all
        .iter()
        .find(|one| one.recommendation.recommended.as_deref() == Some("20"))
        .unwrap()
        .recommendation
        .reason;
    let parts = [
        "20 pages of 2 MB for what fits",
        "20 too few",
        "; /data7 would need 8704 and does not fit",
    ];
    assert!(parts.iter().all(|part| reason.contains(part)), "{reason}");
}

/// A pool without pages has nodes, too: more pages of the host would be spread over the one that the server may not use.
#[test]
fn an_empty_pool_of_two_nodes() {
    let memory = "MemTotal: 20971520 kB\nMemAvailable: 16777216 kB\nShmem: 0 kB\n";
    let tree = host(memory, &[(7, "7f0080000000")]);
    for node in [0, 1] {
        for name in ["nr_hugepages", "free_hugepages", "surplus_hugepages"] {
            let pool = "hugepages/hugepages-2048kB";
            let path = format!("sys/devices/system/node/node{node}/{pool}/{name}");
            write(tree.path(), &path, "0\n");
        }
    }
    for (allowed, begins) in [
        ("0-1", "Run \"sysctl -w vm.nr_hugepages=1024\""),
        ("1", "Before its next start give the NUMA nodes"),
    ] {
        let text = format!("PPid:\t1\nMems_allowed_list:\t{allowed}\n");
        write(tree.path(), "proc/7/status", &text);
        let survey = survey(&Root::at(tree.path()), 20);
        let hint = hint(&survey.instances[0].status).unwrap();
        assert!(hint.starts_with(begins), "{allowed}: {hint}");
    }
}
