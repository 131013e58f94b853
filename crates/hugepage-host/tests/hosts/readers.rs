//! One table of cases for each reader.

use hugepage_assess::assessment::advisory::Advisories;
use hugepage_kernel::cgroups::cgroup::Hierarchy;
use hugepage_kernel::host::kernel_release::KernelRelease;
use hugepage_kernel::mapping::{maps, own_mapping, smaps};
use hugepage_kernel::memory::meminfo::Meminfo;
use hugepage_kernel::memory::pool::{self, Pool};
use hugepage_kernel::memory::thp;
use hugepage_kernel::{Bytes, Notes, PageSize, Pages};

use super::{GIB, HOSTS, KIB, MIB, host, page_size, segment, without_root};

/// Whatever machine runs this test, the base page size is that of the tree.
#[test]
fn base_page_size() {
    for name in HOSTS {
        let kib = if matches!(name, "aarch64-64k" | "ppc64le-16m") {
            64
        } else {
            4
        };
        assert_eq!(
            host(name).base_page_size().unwrap(),
            page_size(kib * KIB),
            "{name}"
        );
    }
}

#[test]
fn meminfo() {
    let kib = |kib| Some(Bytes(kib * KIB));
    for (name, total, tables, pmd_mapped, hugetlb, default, pages) in [
        (
            "aarch64-64k",
            kib(267_321_344),
            kib(186_624),
            kib(0),
            kib(32_768),
            Some(512 * MIB),
            Some([0, 0, 0, 0]),
        ),
        (
            "cgroup1-container",
            kib(32_877_540),
            kib(38_120),
            kib(0),
            kib(2_457_600),
            Some(2 * MIB),
            Some([1200, 1040, 900, 0]),
        ),
        (
            "default-1g",
            kib(131_899_988),
            kib(61_228),
            kib(0),
            kib(34_603_008),
            Some(GIB),
            Some([33, 10, 10, 13]),
        ),
        (
            "no-hugetlb",
            kib(8_148_392),
            kib(18_120),
            kib(0),
            None,
            None,
            None,
        ),
        (
            "ppc64le-16m",
            kib(133_955_584),
            kib(91_136),
            kib(0),
            kib(9_830_400),
            Some(16 * MIB),
            Some([600, 288, 213, 0]),
        ),
        (
            "rhel7",
            kib(16_266_540),
            kib(48_120),
            None,
            None,
            Some(2 * MIB),
            Some([1059, 1059, 0, 0]),
        ),
        (
            "shmem-thp",
            kib(8_148_392),
            kib(18_120),
            kib(65_536),
            kib(0),
            Some(2 * MIB),
            Some([0, 0, 0, 0]),
        ),
    ] {
        let meminfo = Meminfo::read(&host(name)).unwrap();
        assert_eq!(
            (meminfo.mem_total, meminfo.page_tables),
            (total, tables),
            "{name}"
        );
        assert_eq!(
            (meminfo.shmem_pmd_mapped, meminfo.hugetlb),
            (pmd_mapped, hugetlb),
            "{name}"
        );
        assert_eq!(
            meminfo.huge_page_size.map(|size| size.bytes().0),
            default,
            "{name}"
        );
        let counters = [
            meminfo.huge_pages_total,
            meminfo.huge_pages_free,
            meminfo.huge_pages_rsvd,
            meminfo.huge_pages_surp,
        ];
        assert_eq!(
            counters,
            pages.map_or([None; 4], |pages| pages.map(|count| Some(Pages(count)))),
            "{name}"
        );
    }
}

#[test]
fn meminfo_of_2_6_9_has_what_was_published_and_no_reservations() {
    let meminfo = Meminfo::read(&host("linux-2.6.9")).unwrap();
    let expected = Meminfo {
        mem_total: Some(Bytes(20_549_012 * KIB)),
        mem_free: Some(Bytes(236_668 * KIB)),
        mem_available: None,
        page_tables: Some(Bytes(5_007_924 * KIB)),
        shmem: None,
        hugetlb: None,
        huge_page_size: Some(page_size(2 * MIB)),
        huge_pages_total: Some(Pages(0)),
        huge_pages_free: Some(Pages(0)),
        huge_pages_rsvd: None,
        huge_pages_surp: None,
        overcommit: Some(0),
        ..meminfo.clone()
    };
    assert_eq!(meminfo, expected);
}

#[test]
fn sizes_of_huge_pages() {
    for (name, sizes) in [
        ("aarch64-64k", &[2 * MIB, 512 * MIB, 16 * GIB][..]),
        ("ppc64le-16m", &[16 * MIB, 16 * GIB]),
        ("two-nodes", &[2 * MIB, GIB]),
        ("no-hugetlb", &[]),
    ] {
        let sizes: Vec<_> = sizes.iter().map(|&bytes| page_size(bytes)).collect();
        assert_eq!(pool::sizes(&host(name)).unwrap(), sizes, "{name}");
    }
    for name in ["linux-2.6.9", "no-sys"] {
        let error = pool::sizes(&host(name)).unwrap_err();
        assert!(error.is_not_found(), "{name}");
        let text = "could not list \"/sys/kernel/mm/hugepages\": No such file or directory";
        assert_eq!(without_root(name, &error.to_string()), text);
    }
}

#[test]
fn pools() {
    for (name, size, [nr, free, resv, surplus], available) in [
        ("aarch64-64k", 2 * MIB, [16, 16, 0, 0], 16),
        ("aarch64-64k", 512 * MIB, [0, 0, 0, 0], 0),
        ("ppc64le-16m", 16 * MIB, [600, 288, 213, 0], 75),
        ("two-nodes", 2 * MIB, [20_000, 15_000, 3000, 0], 12_000),
        ("default-1g", GIB, [33, 10, 10, 13], 0),
        ("rhel7", GIB, [8, 8, 0, 0], 8),
    ] {
        let pool = pool::pool(&host(name), page_size(size)).unwrap();
        let expected = Pool {
            page_size: page_size(size),
            nr: Pages(nr),
            free: Pages(free),
            resv: Some(Pages(resv)),
            surplus: Some(Pages(surplus)),
            overcommit: Some(Pages(0)),
        };
        assert_eq!(pool, expected, "{name}");
        assert_eq!(pool.available(), Some(Pages(available)), "{name}");
    }
    assert!(
        pool::pool(&host("ppc64le-16m"), page_size(2 * MIB))
            .unwrap_err()
            .is_not_found()
    );
    assert_eq!(
        pool::memory(&host("rhel7")).unwrap(),
        Bytes(1059 * 2 * MIB + 8 * GIB)
    );
}

#[test]
fn pools_of_nodes() {
    for (name, size, expected) in [
        (
            "two-nodes",
            2 * MIB,
            &[(0, 10_000, 6000), (1, 10_000, 9000)][..],
        ),
        ("two-nodes", GIB, &[(0, 4, 4), (1, 0, 0)]),
        ("rhel7", 2 * MIB, &[(0, 1059, 1059)]),
        ("linux-2.6.9", 2 * MIB, &[]),
        ("no-hugetlb", 2 * MIB, &[]),
        ("no-sys", 2 * MIB, &[]),
    ] {
        let pools = pool::node_pools(&host(name), page_size(size)).unwrap();
        let found: Vec<_> = pools
            .iter()
            .map(|node| (node.node, node.pool.nr.0, node.pool.free.0))
            .collect();
        assert_eq!(found, expected, "{name}");
        assert!(
            pools
                .iter()
                .all(|node| node.pool.resv.is_none() && node.pool.overcommit.is_none()),
            "{name}"
        );
    }
}

#[test]
fn segments() {
    for (name, mapping, size, pages) in [
        ("aarch64-64k", "zero", 70_391_234_560, Some(64 * KIB)),
        (
            "ppc64le-16m",
            "anon_hugepage",
            8_808_038_400,
            Some(16 * MIB),
        ),
        ("two-nodes", "zero", 35_143_319_552, Some(4 * KIB)),
        ("default-1g", "anon_hugepage", 35_433_480_192, Some(GIB)),
        ("linux-2.6.9", "zero", 10_799_300_608, Some(4 * KIB)),
        ("no-sys", "anon_hugepage", 1_126_170_624, Some(2 * MIB)),
        ("shmem-thp", "zero", 1_126_170_624, Some(4 * KIB)),
    ] {
        let found = segment(&host(name));
        assert_eq!(
            (found.name(), found.size()),
            (mapping, Bytes(size)),
            "{name}"
        );
        assert_eq!(found.page_size, pages.and_then(PageSize::new), "{name}");
    }
}

/// System V memory can be on huge pages or not, and only smaps tells; Linux 2.6.9 has none.
#[test]
fn a_page_size_that_nothing_tells_is_unknown() {
    for (name, pages) in [
        ("linux-2.6.9", None),
        ("rhel7", PageSize::from_kib(4)),
        ("aarch64-64k", PageSize::from_kib(64)),
    ] {
        let root = host(name);
        let interlock = maps::read(&root, maps::SELF, |mapping| {
            mapping.path.starts_with("/SYSV")
        })
        .unwrap()
        .remove(0);
        assert_eq!(interlock.name(), "SYSV0052e2c1");
        assert_eq!(
            own_mapping::at(&root, interlock.start)
                .unwrap()
                .unwrap()
                .page_size,
            pages,
            "{name}"
        );
    }
}

#[test]
fn usage_of_segments() {
    for (name, pages, resident, pmd_mapped, hugetlb) in [
        ("aarch64-64k", 64 * KIB, 2 * GIB, 0, 0),
        ("ppc64le-16m", 16 * MIB, 0, 0, 96 * 16 * MIB),
        ("default-1g", GIB, 0, 0, 9 * GIB),
        ("rhel7", 4 * KIB, 90 * MIB, 0, 0),
        ("shmem-thp", 4 * KIB, 200 * MIB, 64 * MIB, 0),
    ] {
        let root = host(name);
        let expected = smaps::Usage {
            kernel_page_size: PageSize::new(pages),
            resident: Bytes(resident),
            pmd_mapped: Bytes(pmd_mapped),
            hugetlb: Bytes(hugetlb),
        };
        assert_eq!(
            smaps::usage_of(&root, &segment(&root)).unwrap(),
            Some(expected),
            "{name}"
        );
    }
}

#[test]
fn transparent_huge_pages() {
    for (name, enabled, shmem, pmd_size) in [
        (
            "aarch64-64k",
            Some("madvise"),
            Some("never"),
            Some(512 * MIB),
        ),
        ("ppc64le-16m", Some("always"), Some("never"), Some(16 * MIB)),
        (
            "shmem-thp",
            Some("madvise"),
            Some("within_size"),
            Some(2 * MIB),
        ),
        ("rhel7", Some("always"), None, None),
        ("linux-2.6.9", None, None, None),
        ("no-sys", None, None, None),
    ] {
        let root = host(name);
        assert_eq!(
            thp::choice(&root, "enabled").unwrap().as_deref(),
            enabled,
            "{name}"
        );
        assert_eq!(
            thp::choice(&root, "shmem_enabled").unwrap().as_deref(),
            shmem,
            "{name}"
        );
        assert_eq!(
            thp::pmd_size(&root).unwrap(),
            pmd_size.and_then(PageSize::new),
            "{name}"
        );
    }
}

#[test]
fn cgroup_limits() {
    const SERVICE: &str = "/sys/fs/cgroup/system.slice/system-postgresql.slice/postgresql@15-main.service/hugetlb.2MB";
    const SLICE: &str = "/sys/fs/cgroup/system.slice/system-postgresql.slice/hugetlb.2MB";
    for (name, fault, reservation, hidden) in [
        (
            "cgroup2-slices",
            &[(format!("{SERVICE}.max"), 3_221_225_472, 335_544_320)][..],
            &[
                (format!("{SERVICE}.rsvd.max"), 2_222_981_120, 2_222_981_120),
                (format!("{SLICE}.rsvd.max"), 4_294_967_296, 4_194_304_000),
            ][..],
            false,
        ),
        (
            "cgroup1-container",
            &[(
                "/sys/fs/cgroup/hugetlb/hugetlb.2MB.limit_in_bytes".to_owned(),
                1_073_741_824,
                335_544_320,
            )],
            &[],
            true,
        ),
        (
            "cgroup2-container",
            &[],
            &[(
                "/sys/fs/cgroup/hugetlb.2MB.rsvd.max".to_owned(),
                1_073_741_824,
                0,
            )],
            true,
        ),
        ("two-nodes", &[], &[], false),
        ("rhel7", &[], &[], false),
    ] {
        let root = host(name);
        let hierarchy = Hierarchy::find(&root).unwrap().unwrap();
        let limits = hierarchy.limits(&root, page_size(2 * MIB), &mut Notes::default());
        let flat = |limits: &[hugepage_kernel::cgroups::cgroup::CgroupLimit]| -> Vec<_> {
            limits
                .iter()
                .map(|limit| (limit.path.clone(), limit.limit.0, limit.usage.0))
                .collect()
        };
        assert_eq!(flat(&limits.fault), fault, "{name}");
        assert_eq!(flat(&limits.reservation), reservation, "{name}");
        assert_eq!(limits.hidden_levels, hidden, "{name}");
    }
}

#[test]
fn cgroup_limits_of_other_sizes() {
    for (name, zeros) in [
        ("cgroup2-slices", 1),
        ("cgroup1-container", 0),
        ("cgroup2-container", 0),
    ] {
        let root = host(name);
        let limits = Hierarchy::find(&root).unwrap().unwrap().limits(
            &root,
            page_size(GIB),
            &mut Notes::default(),
        );
        assert_eq!(
            (limits.fault.len(), limits.reservation.len()),
            (zeros, zeros),
            "{name}"
        );
        assert!(
            limits.fault.iter().all(|limit| limit.limit == Bytes(0)),
            "{name}"
        );
    }
}

#[test]
fn hosts_without_a_hierarchy() {
    assert_eq!(Hierarchy::find(&host("linux-2.6.9")).unwrap(), None);
    let error = Hierarchy::find(&host("no-sys")).unwrap_err().to_string();
    let text = "could not understand \"/proc/self/mountinfo\": no cgroup file system with the hugetlb controller is mounted";
    assert_eq!(without_root("no-sys", &error), text);
}

#[test]
fn releases_of_distributions() {
    let parsed = |text| {
        KernelRelease::parse(text).map(|release| (release.major, release.minor, release.patch))
    };
    assert_eq!(parsed("2.6.18-194.el5"), Some((2, 6, Some(18))));
    assert_eq!(parsed("5.14.0-427.el9.x86_64"), Some((5, 14, Some(0))));
    assert_eq!(parsed("6.1-rc3"), Some((6, 1, None)));
    assert_eq!((parsed("6"), parsed(""), parsed("x.1")), (None, None, None));
}

#[test]
fn kernels_that_count_memlock() {
    for (release, counts) in [
        ("2.6.18-194.el5", Some(true)),
        ("3.10.0-1160.el7.x86_64", Some(true)),
        ("4.18.0-553.el8_10.x86_64", Some(true)),
        ("5.3.18-150300.59.93-default", Some(true)),
        ("5.4.17-2136.330.7.1.el8uek.x86_64", Some(true)),
        ("5.15.0-206.153.7.el9uek.x86_64", Some(true)),
        ("5.17.15", Some(true)),
        ("5.14.0-427.13.1.el9_4.x86_64", None),
        ("5.14.21-150500.55.65-default", None),
        ("6.4.0-150600.23.22-default", Some(false)),
        ("6.12.0-55.el10.x86_64", Some(false)),
        ("5.18.0", Some(false)),
        ("6.18.1", Some(false)),
        ("10.0", Some(false)),
    ] {
        assert_eq!(
            Advisories::known().affects("shm_memlock", release),
            counts,
            "{release}"
        );
    }
}

#[test]
fn a_release_without_a_third_number_is_not_certainly_older() {
    let is_before = |text| KernelRelease::parse(text).unwrap().is_before(2, 6, 22);
    assert_eq!(
        ["2.4.9", "2.6.21", "2.6", "2.6.22", "3.0"].map(is_before),
        [true, true, false, false, false]
    );
}
