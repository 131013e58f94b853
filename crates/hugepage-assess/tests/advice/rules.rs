//! The recommendations, where there are some and where there are none.

use hugepage_assess::advice;
use hugepage_assess::advice::recommendation::{Area, Effect, setting};
use hugepage_assess::model::{HugePages, NodePools};
use hugepage_kernel::Bytes;
use hugepage_kernel::cgroups::cgroup::{CgroupLimit, CgroupLimits};
use hugepage_kernel::mapping::memory_policy::MemoryPolicy;
use hugepage_kernel::memory::pool::NodePool;

use super::{GIB, Host, MIB, page_size, recommendations};

/// `severity setting: current -> recommended`.
fn said(host: &Host) -> Vec<String> {
    let show = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
    host.recommendations()
        .into_iter()
        .map(|row| {
            format!(
                "{} {}: {} -> {}",
                row.severity,
                row.setting,
                show(row.current),
                show(row.recommended)
            )
        })
        .collect()
}

#[track_caller]
fn check(host: &Host, expected: &[&str]) {
    assert_eq!(said(host), expected, "{host:?}");
}

#[test]
fn nothing_where_all_is_well() {
    check(&Host::default(), &[]);
}

#[test]
fn the_pool() {
    let base = Host {
        huge: false,
        ..Host::default()
    };
    check(
        &Host {
            pool: [0, 0, 0, 0, 9],
            ..base.clone()
        },
        &["warning vm.nr_hugepages: 0 -> 534"],
    );
    check(
        &Host {
            pool: [533, 533, 0, 0, 9],
            ..base.clone()
        },
        &["warning vm.nr_hugepages: 533 -> 534"],
    );
    // Others hold 100.
    check(
        &Host {
            pool: [534, 500, 66, 0, 9],
            at_boot: Some(634),
            ..base.clone()
        },
        &["warning vm.nr_hugepages: 534 -> 634"],
    );
    check(
        &Host {
            shared_buffers: 64 * MIB,
            pool: [0; 5],
            ..base
        },
        &["notice vm.nr_hugepages: 0 -> 43"],
    );
    // Lowered under the server, with try and with on.
    let surplus = Host {
        pool: [534, 100, 100, 534, 9],
        ..Host::default()
    };
    check(&surplus, &["warning vm.nr_hugepages: 0 -> 534"]);
    check(
        &Host {
            huge_pages: HugePages::On,
            ..surplus
        },
        &["critical vm.nr_hugepages: 0 -> 534"],
    );
    // Too many, by a few and by far.
    check(
        &Host {
            pool: [540, 540, 534, 0, 9],
            at_boot: Some(540),
            ..Host::default()
        },
        &[],
    );
    check(
        &Host {
            pool: [1068, 1068, 534, 0, 9],
            ..Host::default()
        },
        &["warning vm.nr_hugepages: 1068 -> 534"],
    );
}

#[test]
fn nothing_is_taken_from_servers_that_are_not_seen() {
    let alone = Host {
        sees_others: false,
        ..Host::default()
    };
    check(
        &Host {
            pool: [1068, 1068, 534, 0, 9],
            ..alone
        },
        &[],
    );
}

#[test]
fn beyond_the_reserve_the_number_has_a_caution() {
    let host = Host {
        huge: false,
        pool: [0; 5],
        shared_buffers: 14 * GIB,
        available: Some(16 * GIB),
        ..Host::default()
    };
    let rows = host.recommendations();
    assert_eq!(rows[0].recommended.as_deref(), Some("7339"));
    assert!(
        rows[0]
            .reason
            .ends_with("; a pool of 7339 pages leaves 1706 MB to base pages, less than 20%."),
        "{rows:?}"
    );
    // As measured, the host can't hold it.
    let rows = Host {
        available: Some(0),
        huge: true,
        pool: [10; 5],
        ..host
    }
    .recommendations();
    assert!(
        rows.iter()
            .all(|row| row.recommended.as_deref() != Some("7339")),
        "{rows:?}"
    );
}

#[test]
fn what_does_not_fit() {
    let host = Host {
        huge: false,
        pool: [0; 5],
        shared_buffers: 14 * GIB,
        at_boot: None,
        ..Host::default()
    };
    let rows = host.recommendations();
    assert_eq!(rows.len(), 1, "{rows:?}");
    let reason = &rows[0].reason;
    // 80% of 16 GB are 6553 pages of 2 MB.
    assert!(
        reason.contains("exceeds the 6553 that this host can hold"),
        "{reason}"
    );
    assert_eq!(rows[0].setting, "shared_buffers");
    assert_eq!(
        (rows[0].recommended.as_deref(), rows[0].command.as_deref()),
        (None, None)
    );
    let hint = advice::hint(&host.context().status).unwrap();
    assert!(
        hint.starts_with("Reduce shared_buffers until shared memory takes at most 12.7 GB, run "),
        "{hint}"
    );
    // Others hold nearly all.
    let hint = advice::hint(
        &Host {
            pool: [6500, 0, 0, 0, 0],
            ..host
        }
        .context()
        .status,
    )
    .unwrap();
    assert!(
        hint.starts_with("Reduce shared_buffers until shared memory takes at most 106 MB, run "),
        "{hint}"
    );
    let full = Host {
        huge: false,
        pool: [6553, 0, 0, 0, 0],
        shared_buffers: GIB,
        at_boot: Some(6553),
        ..Host::default()
    };
    assert_eq!(
        advice::hint(&full.context().status).as_deref(),
        Some("Set huge_pages = off: other processes hold all huge pages that this host can hold.")
    );
}

/// A server that runs in base pages because 140 pages do not fit into its pool of 100; the host has 24 GB, and 30 GB are on disk.
#[test]
fn what_is_on_disk_does_not_fit() {
    let host = Host {
        huge: false,
        pool: [100, 100, 0, 0, 9],
        memory: 24 * GIB,
        shared_buffers: 256 * MIB,
        on_disk: Some(30 * GIB),
        ..Host::default()
    };
    let rows = host.recommendations();
    let row = &rows[0];
    assert_eq!(
        (row.setting.as_str(), row.current.as_deref()),
        ("shared_buffers", Some("30720MB"))
    );
    let hint = advice::hint(&host.context().status).unwrap();
    let reduced = "Reduce shared_buffers until shared memory takes at most 19.1 GB";
    assert!(
        hint.starts_with(&format!("{reduced}, run \"sysctl -w vm.nr_hugepages=")),
        "{hint}"
    );
    // In huge pages, the next start alone is in danger.
    let host = Host {
        huge: true,
        pool: [140, 140, 140, 0, 9],
        ..host
    };
    assert_eq!(
        host.recommendations()[0].current.as_deref(),
        Some("30720MB")
    );
    let hint = advice::hint(&host.context().status).unwrap();
    assert!(hint.starts_with(reduced), "{hint}");
}

#[test]
fn settings_of_the_server() {
    let off = Host {
        huge_pages: HugePages::Off,
        huge: false,
        pool: [0; 5],
        at_boot: None,
        ..Host::default()
    };
    check(
        &off,
        &[
            "notice vm.nr_hugepages: 0 -> 534",
            "notice huge_pages: off -> try",
        ],
    );
    // Base pages by choice are no reason to reduce anything.
    check(
        &Host {
            shared_buffers: 14 * GIB,
            ..off.clone()
        }
        .clone(),
        &[],
    );
    check(
        &Host {
            sysv: true,
            huge: false,
            pool: [534, 534, 0, 0, 9],
            ..Host::default()
        },
        &["warning shared_memory_type: sysv -> mmap"],
    );
}

/// The pool of the host would be spread over a node that the server may not use.
#[test]
fn no_pool_for_a_server_that_may_not_use_all_nodes() {
    let share = |node, nr| NodePool {
        node,
        pool: super::pool(page_size(2 * MIB), [nr, nr, 0, 0, 0]),
        memory: Some(Bytes(8 * GIB)),
    };
    for (pool, shares) in [
        ([600, 600, 0, 0, 9], [0, 600]),
        ([20, 20, 0, 0, 9], [10, 10]),
    ] {
        let pools = (0..)
            .zip(shares)
            .map(|(node, nr)| share(node, nr))
            .collect();
        let nodes = NodePools {
            pools,
            allowed: Some(vec![0]),
            policy: MemoryPolicy::Any,
        };
        check(
            &Host {
                huge: false,
                pool,
                nodes: Some(nodes),
                ..Host::default()
            },
            &[],
        );
    }
}

/// The hint names the pool as well as the setting, and so do the rows, in its order; a setting has none while a limit is too low.
#[test]
fn every_step_has_a_row() {
    let sysv = Host {
        sysv: true,
        huge: false,
        pool: [0, 0, 0, 0, 9],
        ..Host::default()
    };
    check(
        &sysv,
        &[
            "warning vm.nr_hugepages: 0 -> 534",
            "warning shared_memory_type: sysv -> mmap",
        ],
    );
    assert!(
        sysv.recommendations()
            .iter()
            .all(|row| row.finding == Some("base_pages"))
    );
    let limit = CgroupLimit {
        path: "/sys/fs/cgroup/a/rsvd.max".to_owned(),
        limit: Bytes(0),
        usage: Bytes(0),
        promised: None,
    };
    let limits = CgroupLimits {
        reservation: vec![limit],
        ..CgroupLimits::default()
    };
    check(
        &Host { limits, ..sysv },
        &[
            "warning /sys/fs/cgroup/a/rsvd.max: 0 -> 1119879168",
            "warning vm.nr_hugepages: 0 -> 534",
        ],
    );
}

#[test]
fn limits_of_cgroups() {
    let limit = |megabytes| CgroupLimit {
        path: "/sys/fs/cgroup/a/x".to_owned(),
        limit: Bytes(megabytes * MIB),
        usage: Bytes(0),
        promised: None,
    };
    let fault = CgroupLimits {
        fault: vec![limit(1024)],
        ..CgroupLimits::default()
    };
    let host = Host {
        pool: [534, 534, 534, 0, 9],
        at_boot: Some(534),
        ..Host::default()
    };
    check(
        &Host {
            limits: fault,
            ..host.clone()
        },
        &["critical /sys/fs/cgroup/a/x: 1073741824 -> 1119879168"],
    );
    let reserved = CgroupLimits {
        reservation: vec![limit(1024)],
        ..CgroupLimits::default()
    };
    check(
        &Host {
            limits: reserved,
            ..host.clone()
        },
        &["warning /sys/fs/cgroup/a/x: 1073741824 -> 1119879168"],
    );
    check(
        &Host {
            limits: CgroupLimits {
                fault: vec![limit(1068)],
                ..CgroupLimits::default()
            },
            ..host
        },
        &[],
    );
}

#[test]
fn after_a_reboot() {
    let host = Host {
        pool: [534, 534, 534, 0, 9],
        ..Host::default()
    };
    check(
        &Host {
            at_boot: None,
            ..host.clone()
        },
        &["notice vm.nr_hugepages: - -> 534"],
    );
    check(
        &Host {
            at_boot: Some(533),
            ..host.clone()
        },
        &["notice vm.nr_hugepages: 533 -> 534"],
    );
    let on = Host {
        at_boot: Some(533),
        huge_pages: HugePages::On,
        ..host.clone()
    };
    check(&on, &["notice vm.nr_hugepages: 533 -> 534"]);
    let without_surplus = Host {
        pool: [534, 534, 534, 0, 0],
        ..on.clone()
    };
    check(&without_surplus, &["warning vm.nr_hugepages: 533 -> 534"]);
    // Nine surplus pages are too few.
    check(
        &Host {
            at_boot: Some(500),
            ..on
        },
        &["warning vm.nr_hugepages: 500 -> 534"],
    );
    let command = Host {
        at_boot: None,
        ..host
    }
    .recommendations()[0]
        .command
        .clone();
    assert_eq!(
        command.as_deref(),
        Some("echo 'vm.nr_hugepages = 534' > /etc/sysctl.d/90-postgresql-hugepages.conf")
    );
}

/// A line of the command line that has the size already would count instead of one that is added behind it.
#[test]
fn no_second_count() {
    let gigantic = Host {
        page_size: page_size(GIB),
        pool: [0; 5],
        gigantic: [2, 2, 2, 0, 0],
        ..Host::default()
    };
    let at_boot = |at_boot| {
        let rows = Host {
            at_boot,
            ..gigantic.clone()
        }
        .recommendations();
        rows.into_iter()
            .find(|row| row.area == Area::Boot)
            .unwrap()
            .command
    };
    assert!(at_boot(None).unwrap().contains("hugepagesz=1G hugepages=2"));
    assert_eq!(at_boot(Some(1)), None);
}

#[test]
fn sizes_as_the_server_takes_them() {
    assert_eq!(
        [3 << 20, 1536 << 10].map(|size| setting(Bytes(size))),
        ["3MB", "1536kB"]
    );
}

/// Steps into huge pages save the page tables of shared memory; what needs no step into them does not.
#[test]
fn page_tables_are_saved() {
    let saves = |host: Host| {
        let mut context = host.context();
        context.page_tables.of_shared_memory = Some(Bytes(5 * MIB));
        recommendations(&context)
            .into_iter()
            .map(|row| row.saving)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        saves(Host {
            huge: false,
            pool: [0; 5],
            ..Host::default()
        }),
        [Some(Bytes(5 * MIB))]
    );
    assert_eq!(
        saves(Host {
            pool: [534, 100, 100, 534, 9],
            ..Host::default()
        }),
        [None]
    );
}

/// The kubelet writes the groups of a pod by its manifest, for each container anew: no file is the remedy.
#[test]
fn the_limit_of_a_pod_is_in_its_manifest() {
    let level = |resource: &str| CgroupLimit {
        path: resource.to_owned(),
        limit: Bytes(0),
        usage: Bytes(0),
        promised: None,
    };
    let both = |resource| vec![level(resource), level(resource)];
    let limits = |fault, reservation| CgroupLimits {
        fault,
        reservation,
        ..CgroupLimits::default()
    };
    let check = |host: &Host, resource: &str, quantity: &str| {
        let rows = host.recommendations();
        let of_limit: Vec<_> = rows.iter().filter(|row| row.area == Area::Cgroup).collect();
        assert_eq!(of_limit.len(), 1, "{rows:?}");
        let line = format!("{resource}: {quantity}");
        assert_eq!(of_limit[0].command, Some(line));
        assert_eq!(of_limit[0].setting, resource);
        assert_eq!(of_limit[0].current.as_deref(), Some("0Mi"));
        assert_eq!(of_limit[0].recommended.as_deref(), Some(quantity));
        assert_eq!(of_limit[0].takes_effect, Effect::ServerRestart);
        let hint = advice::hint(&host.context().status).unwrap();
        let expected =
            format!("Set the limit {resource} of the pod to at least {quantity} in its manifest");
        assert!(hint.starts_with(&expected), "{hint}");
    };
    for huge in [true, false] {
        let host = Host {
            huge,
            pool: [534, 534, 0, 0, 9],
            ..Host::default()
        };
        let resource = "hugepages-2Mi";
        for limits in [
            limits(both(resource), Vec::new()),
            limits(Vec::new(), both(resource)),
            limits(both(resource), both(resource)),
        ] {
            let host = Host {
                limits,
                ..host.clone()
            };
            check(&host, resource, "1068Mi");
        }
    }
    let gigantic = Host {
        huge: false,
        page_size: page_size(GIB),
        gigantic: [2, 2, 0, 0, 0],
        limits: limits(both("hugepages-1Gi"), Vec::new()),
        ..Host::default()
    };
    check(&gigantic, "hugepages-1Gi", "2048Mi");
}
