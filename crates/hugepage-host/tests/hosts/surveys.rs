//! What several files say together: the pools of a host and the shared memory of a process.

use hugepage_facts::Landing;
use hugepage_kernel::cgroups::cgroup::{CgroupLimits, Hierarchy};
use hugepage_kernel::{Bytes, Meminfo, Notes, PageSize};
use hugepage_server::segments::{self, SegmentRole};
use hugepage_server::transparent::transparent_pages;
use hugepage_server::{limits, pools};

use super::{GIB, KIB, MIB, host, notes_of, page_size, segment};

/// Page size, node, default, nr, available, cgroup limit.
type PoolCase = (u64, Option<u32>, bool, u64, Option<u64>, Option<u64>);

#[test]
fn pools_of_hosts() {
    let missing = "could not list \"/sys/kernel/mm/hugepages\": No such file or directory";
    let hidden = "cgroup limits that are not visible from here may apply too";
    let mounts = "could not understand \"/proc/self/mountinfo\": no cgroup file system with the hugetlb controller is mounted";
    let cases: [(&str, &[PoolCase], &[&str]); 8] = [
        (
            "aarch64-64k",
            &[
                (2 * MIB, None, false, 16, Some(16), None),
                (2 * MIB, Some(0), false, 16, None, None),
                (512 * MIB, None, true, 0, Some(0), None),
                (512 * MIB, Some(0), true, 0, Some(0), None),
                (16 * GIB, None, false, 0, Some(0), None),
                (16 * GIB, Some(0), false, 0, Some(0), None),
            ],
            &[],
        ),
        (
            "ppc64le-16m",
            &[
                (16 * MIB, None, true, 600, Some(75), None),
                (16 * MIB, Some(0), true, 600, None, None),
                (16 * GIB, None, false, 0, Some(0), None),
                (16 * GIB, Some(0), false, 0, Some(0), None),
            ],
            &[],
        ),
        (
            "two-nodes",
            &[
                (2 * MIB, None, true, 20_000, Some(12_000), None),
                (2 * MIB, Some(0), true, 10_000, None, None),
                (2 * MIB, Some(1), true, 10_000, None, None),
                (GIB, None, false, 4, Some(4), None),
                (GIB, Some(0), false, 4, None, None),
                (GIB, Some(1), false, 0, Some(0), None),
            ],
            &[],
        ),
        (
            // The service's reservation limit has no room left, its fault-time limit and the slice have.
            "cgroup2-slices",
            &[
                (2 * MIB, None, true, 2100, Some(100), Some(2_222_981_120)),
                (2 * MIB, Some(0), true, 2100, None, None),
                (GIB, None, false, 0, Some(0), Some(0)),
                (GIB, Some(0), false, 0, Some(0), None),
            ],
            &[],
        ),
        (
            "cgroup1-container",
            &[
                (2 * MIB, None, true, 1200, Some(140), Some(1_073_741_824)),
                (2 * MIB, Some(0), true, 1200, None, None),
                (GIB, None, false, 0, Some(0), None),
                (GIB, Some(0), false, 0, Some(0), None),
            ],
            &[hidden],
        ),
        (
            "linux-2.6.9",
            &[(2 * MIB, None, true, 0, Some(0), None)],
            &[missing],
        ),
        ("no-hugetlb", &[], &[]),
        (
            "no-sys",
            &[(2 * MIB, None, true, 600, Some(63), None)],
            &[mounts, missing],
        ),
    ];
    for (name, expected, expected_notes) in cases {
        let root = host(name);
        let mut notes = Notes::default();
        let hierarchy = notes.keep(Hierarchy::find(&root));
        let view = hierarchy.as_ref();
        let rows = pools::rows(&root, view, &mut notes);
        let found: Vec<PoolCase> = rows
            .iter()
            .map(|row| {
                let limit = row.limit.as_ref().map(|limit| limit.limit.0);
                let available = row.pool.available().map(|pages| pages.0);
                (
                    row.pool.page_size.bytes().0,
                    row.node,
                    row.is_default,
                    row.pool.nr.0,
                    available,
                    limit,
                )
            })
            .collect();
        assert_eq!(found, expected, "{name}");
        assert_eq!(notes_of(name, notes), expected_notes, "{name}");
    }
}

#[test]
fn shared_memory_of_a_server() {
    for (name, mapping, landing, base) in [
        ("hidepid", "anon_hugepage", Landing::Hugetlb, 4 * KIB),
        ("aarch64-64k", "zero", Landing::Base, 64 * KIB),
        ("ppc64le-16m", "anon_hugepage", Landing::Hugetlb, 64 * KIB),
        ("shmem-thp", "zero", Landing::PartialThp, 4 * KIB),
    ] {
        let root = host(name);
        let main = segment(&root);
        let all = hugepage_kernel::mapping::maps::read(
            &root,
            hugepage_kernel::mapping::maps::SELF,
            |_| true,
        )
        .unwrap();
        let interlock = all
            .iter()
            .find(|mapping| mapping.path.starts_with("/SYSV"))
            .unwrap()
            .start;
        let mut notes = Notes::default();
        let meminfo = Meminfo::read(&root).unwrap();
        let seen = transparent_pages(&root, "self", &main, Bytes(0), &meminfo).unwrap();
        let rows = segments::rows(&root, main.start, interlock, seen.as_ref(), &mut notes);
        let found: Vec<_> = rows
            .iter()
            .map(|row| {
                (
                    row.role,
                    row.mapping.name(),
                    row.mapping.page_size,
                    row.landing,
                )
            })
            .collect();
        // Of its others nobody has looked.
        let of_others = match landing {
            Landing::PartialThp => Landing::Unknown,
            _ => Landing::Base,
        };
        let expected = [
            (SegmentRole::Main, mapping, main.page_size, landing),
            (
                SegmentRole::Dynamic,
                "PostgreSQL.3391048166",
                PageSize::new(base),
                of_others,
            ),
            (
                SegmentRole::Interlock,
                "SYSV0052e2c1",
                PageSize::new(base),
                of_others,
            ),
        ];
        assert_eq!(found, expected, "{name}");

        let mut pulses = 0;
        let usage = segments::usage(&root, &rows, &mut || pulses += 1, &mut notes);
        assert_eq!(usage[2].unwrap().resident.0, base, "{name}");
        assert!(
            pulses >= rows.len(),
            "{name}: a caller can look for a cancel at every mapping"
        );
        assert!(notes.into_vec().is_empty(), "{name}");
    }
}

/// No hierarchy limits nothing; one that could not be found may limit all.
#[test]
fn no_cgroups_and_unknown_ones() {
    for (name, expected) in [
        ("linux-2.6.9", Some(CgroupLimits::default())),
        ("no-sys", None),
    ] {
        let root = host(name);
        let mut notes = Notes::default();
        let hierarchy = notes.keep(Hierarchy::find(&root));
        let found = limits(&root, hierarchy.as_ref(), page_size(2 * MIB), &mut notes);
        assert_eq!(found, expected, "{name}");
        assert_eq!(
            notes.into_vec().is_empty(),
            expected.is_some(),
            "{name}: what is unknown has a note"
        );
    }
}
