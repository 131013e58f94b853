//! A plausible server on each machine, from its files to the sentence that a person reads.

use hugepage_assess::advice;
use hugepage_assess::assessment::{Outlook, Severity, Status};
use hugepage_assess::model::{HugePages, Product, RESIZABLE, Requested};
use hugepage_facts::Landing;
use hugepage_kernel::cgroups::cgroup::Hierarchy;
use hugepage_kernel::mapping::maps::Mapping;
use hugepage_kernel::{Bytes, Meminfo, Notes, PageSize};
use hugepage_server::server::observe;
use hugepage_server::transparent::transparent_pages;

use super::{GIB, HOSTS, MIB, host, notes_of, segment};

/// What is asked of one machine, and what the answer must be.
struct Case {
    host: &'static str,
    huge_pages: HugePages,
    huge_page_size: Option<u64>,
    /// Landing, verdict, cause, outlook.
    words: [&'static str; 4],
    /// Needed, missing, recommended, capacity.
    pages: [Option<u64>; 4],
    message: &'static str,
    hint: Option<&'static str>,
    notes: &'static [&'static str],
}

const HIDDEN: &str = "cgroup limits that are not visible from here may apply too";

#[rustfmt::skip]
const CASES: &[Case] = &[
    Case {
        host: "aarch64-64k", huge_pages: HugePages::Try, huge_page_size: None,
        words: ["base", "warning", "pool_empty", "base"],
        pages: [Some(132), Some(132), Some(132), Some(436)],
        message: "Shared memory (65.5 GB) is in 64 kB pages although huge pages were asked for: the pool of 512 MB pages is \
                  empty; 132 are needed.",
        hint: Some(alone!("Run \"sysctl -w vm.nr_hugepages=132", " and restart the server.")),
        notes: &[],
    },
    Case {
        host: "aarch64-64k", huge_pages: HugePages::Try, huge_page_size: Some(2 * MIB),
        words: ["base", "warning", "pool_too_small", "base"],
        pages: [Some(33_566), Some(33_550), Some(33_566), Some(111_729)],
        message: "Shared memory (65.5 GB) is in 64 kB pages although huge pages were asked for: the pool has 16 pages of 2 \
                  MB; 33566 are needed (33550 missing).",
        hint: Some(alone!("Run \"echo 33566 > /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", " and restart the server.")),
        notes: &[],
    },
    Case {
        host: "aarch64-64k", huge_pages: HugePages::Try, huge_page_size: Some(GIB),
        words: ["base", "warning", "page_size_unsupported", "base"],
        pages: [None, None, None, None],
        message: "Shared memory (65.5 GB) is in 64 kB pages although huge pages were asked for: this machine has no pages \
                  of 1 GB, only of 2 MB, 512 MB, 16 GB.",
        hint: Some("Set huge_page_size = 0, the kernel's default size."),
        notes: &[],
    },
    Case {
        host: "cgroup1-container", huge_pages: HugePages::Try, huge_page_size: None,
        words: ["hugetlb", "critical", "", "unknown"],
        pages: [Some(1060), Some(0), Some(1200), Some(13_530)],
        message: "Shared memory (2120 MB) is in huge pages, but a cgroup allows only 1 GB of them: a process that touches \
                  more is killed by SIGBUS, or its reads fail.",
        hint: Some("Set /sys/fs/cgroup/hugetlb/hugetlb.2MB.limit_in_bytes to at least 2222981120 bytes."),
        notes: &[HIDDEN],
    },
    Case {
        host: "cgroup2-container", huge_pages: HugePages::Try, huge_page_size: None,
        words: ["base", "warning", "cgroup_limit", "base"],
        pages: [Some(1060), Some(548), Some(2000), Some(14_747)],
        message: "Shared memory (2118 MB) is in 4 kB pages although huge pages were asked for: a cgroup allows only 1 GB of \
                  the 2120 MB needed.",
        hint: Some("Set /sys/fs/cgroup/hugetlb.2MB.rsvd.max to at least 2222981120 bytes and restart the server."),
        notes: &[HIDDEN],
    },
    Case {
        host: "cgroup2-slices", huge_pages: HugePages::On, huge_page_size: None,
        words: ["hugetlb", "ok", "", "hugetlb"],
        pages: [Some(1060), Some(0), Some(2100), Some(14_430)],
        message: "Shared memory (2120 MB) is in 1060 huge pages of 2 MB, and a restart keeps them.",
        hint: None,
        notes: &[],
    },
    Case {
        host: "default-1g", huge_pages: HugePages::Try, huge_page_size: None,
        words: ["hugetlb", "warning", "", "base"],
        pages: [Some(33), Some(0), Some(33), Some(116)],
        message: "Shared memory (33 GB) is in huge pages, but a restart, or a crash of one backend, would lose them: only \
                  20 of the 33 pages of 1 GB needed are guaranteed.",
        hint: Some(alone!("Run \"sysctl -w vm.nr_hugepages=33", ".")),
        notes: &[],
    },
    Case {
        host: "default-1g", huge_pages: HugePages::On, huge_page_size: None,
        words: ["hugetlb", "critical", "", "fails"],
        pages: [Some(33), Some(0), Some(33), Some(116)],
        message: "The next start would fail: huge_pages = on, and only 20 of the 33 pages of 1 GB needed are guaranteed.",
        hint: Some(alone!("Run \"sysctl -w vm.nr_hugepages=33", ".")),
        notes: &[],
    },
    Case {
        host: "hidepid", huge_pages: HugePages::Try, huge_page_size: None,
        words: ["hugetlb", "ok", "", "hugetlb"],
        pages: [Some(537), Some(0), Some(537), Some(3343)],
        message: "Shared memory (1074 MB) is in 537 huge pages of 2 MB, and a restart keeps them.",
        hint: None,
        notes: &[],
    },
    Case {
        host: "linux-2.6.9", huge_pages: HugePages::Try, huge_page_size: None,
        words: ["base", "critical", "pool_empty", "base"],
        pages: [Some(5150), Some(5150), Some(5150), Some(8026)],
        message: "Page tables take 4890 MB, which is 24% of this host's memory.",
        hint: Some(alone!("Run \"sysctl -w vm.nr_hugepages=5150", " and restart the server.")),
        notes: &["could not open \"/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages\": No such file or directory"],
    },
    Case {
        host: "no-hugetlb", huge_pages: HugePages::Try, huge_page_size: None,
        words: ["base", "warning", "page_size_unsupported", "base"],
        pages: [None, None, None, None],
        message: "Shared memory (1074 MB) is in 4 kB pages although huge pages were asked for: this kernel has no huge \
                  pages.",
        hint: Some("Set huge_pages = off, or boot a kernel that has huge pages."),
        notes: &[],
    },
    Case {
        host: "no-hugetlb", huge_pages: HugePages::Off, huge_page_size: Some(2 * MIB),
        words: ["base", "notice", "disabled", "base"],
        pages: [None, None, None, None],
        message: "Shared memory (1074 MB) is in 4 kB pages because huge_pages = off.",
        hint: None,
        notes: &[],
    },
    Case {
        host: "no-sys", huge_pages: HugePages::Try, huge_page_size: None,
        words: ["hugetlb", "notice", "", "unknown"],
        pages: [Some(537), Some(0), Some(600), Some(3406)],
        message: "Shared memory (1074 MB) is in 537 huge pages of 2 MB, but whether a restart gets huge pages depends on \
                  cgroup limits that are not visible from here.",
        hint: None,
        notes: &[
            "could not understand \"/proc/self/mountinfo\": no cgroup file system with the hugetlb controller is mounted",
            "could not open \"/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages\": No such file or directory",
        ],
    },
    Case {
        host: "ppc64le-16m", huge_pages: HugePages::Try, huge_page_size: None,
        words: ["hugetlb", "ok", "", "hugetlb"],
        pages: [Some(525), Some(0), Some(600), Some(6644)],
        message: "Shared memory (8400 MB) is in 525 huge pages of 16 MB, and a restart keeps them.",
        hint: None,
        notes: &[],
    },
    // The eight 1 GB pages count against capacity, although /proc/meminfo has no line Hugetlb.
    Case {
        host: "rhel7", huge_pages: HugePages::Try, huge_page_size: None,
        words: ["base", "warning", "pool_too_small", "base"],
        pages: [Some(1060), Some(1), Some(1060), Some(3063)],
        message: "Shared memory (2118 MB) is in 4 kB pages although huge pages were asked for: the pool has 1059 pages of 2 \
                  MB; 1060 are needed (1 missing).",
        hint: Some(alone!("Run \"sysctl -w vm.nr_hugepages=1060", " and restart the server.")),
        notes: &[],
    },
    Case {
        host: "shmem-thp", huge_pages: HugePages::Try, huge_page_size: None,
        words: ["partial thp", "warning", "pool_empty", "base"],
        pages: [Some(537), Some(537), Some(537), Some(2979)],
        message: "Shared memory (1074 MB) is in 4 kB pages and in transparent huge pages although huge pages were asked for: the pool of 2 MB pages is \
                  empty; 537 are needed.",
        hint: Some(alone!("Run \"sysctl -w vm.nr_hugepages=537", " and restart the server.")),
        notes: &[],
    },
    Case {
        host: "two-nodes", huge_pages: HugePages::Try, huge_page_size: None,
        words: ["base", "warning", "pool_taken", "base"],
        pages: [Some(16_758), Some(4758), Some(24_758), Some(43_561)],
        message: "Shared memory (32.7 GB) is in 4 kB pages although huge pages were asked for: only 12000 of the pool's \
                  20000 pages of 2 MB are available; 16758 are needed (4758 missing).",
        hint: Some(alone!("Run \"sysctl -w vm.nr_hugepages=24758", " and restart the server.")),
        notes: &[],
    },
];

#[test]
fn from_files_to_sentences() {
    for case in CASES {
        let label = format!(
            "{} {} {:?}",
            case.host, case.huge_pages, case.huge_page_size
        );
        let root = host(case.host);
        let requested = Requested {
            product: Product::PostgreSql,
            huge_pages: case.huge_pages,
            huge_page_size: case.huge_page_size.and_then(PageSize::new),
            sysv: false,
            shared_buffers: Bytes(GIB),
            io_uring: false,
        };
        let mut notes = Notes::default();
        let hierarchy = notes.keep(Hierarchy::find(&root));
        let view = hierarchy.as_ref();
        let read_of_own = |mapping: &Mapping, meminfo: &Meminfo, notes: &mut Notes| {
            notes.keep(transparent_pages(&root, "self", mapping, Bytes(0), meminfo))?
        };
        let server = observe(
            &root,
            requested,
            Some(segment(&root)),
            read_of_own,
            20,
            view,
            &mut notes,
        );
        let status = Status::assess(server);

        let words = [
            status.facts.landing().to_string(),
            status.verdict().0.to_string(),
            status
                .cause
                .map(|cause| cause.to_string())
                .unwrap_or_default(),
            status.forecast.outlook.to_string(),
        ];
        assert_eq!(words, case.words, "{label}");
        let pages = [
            status.crash.needed,
            status.missing,
            status.recommended,
            status.capacity.map(|capacity| capacity.most),
        ];
        assert_eq!(
            pages.map(|pages| pages.map(|pages| pages.0)),
            case.pages,
            "{label}"
        );
        assert_eq!(advice::message(&status), case.message, "{label}");
        assert_eq!(advice::hint(&status).as_deref(), case.hint, "{label}");
        assert_eq!(notes_of(case.host, notes), case.notes, "{label}");
    }
}

#[test]
fn every_host_has_a_server() {
    for name in HOSTS {
        assert!(CASES.iter().any(|case| case.host == name), "{name}");
    }
}

/// Of memory that a server may resize nothing is known, not even to itself: no such server is supported.
#[test]
fn a_server_that_sees_parts_that_it_may_not_access() {
    let case = &CASES[0];
    let root = host(case.host);
    let requested = Requested {
        product: Product::PostgreSql,
        huge_pages: HugePages::Try,
        huge_page_size: None,
        sysv: false,
        shared_buffers: Bytes(GIB),
        io_uring: false,
    };
    let mapping = Mapping {
        inaccessible: Bytes(MIB),
        ..segment(&root)
    };
    let mut notes = Notes::default();
    let status = Status::assess(observe(
        &root,
        requested,
        Some(mapping),
        |_, _, _| None,
        20,
        None,
        &mut notes,
    ));
    assert!(notes.into_vec().iter().any(|note| note == RESIZABLE));
    assert_eq!(
        (status.facts.landing(), status.forecast.outlook),
        (Landing::Unknown, Outlook::Unknown)
    );
    assert_ne!(status.verdict().0, Severity::Ok);
}
