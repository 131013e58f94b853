//! An SGA: what is said of it, and what its next start would land in.

use hugepage_assess::advice::{hint, message};
use hugepage_assess::assessment::{Outlook, Status};
use hugepage_assess::model::{HugePages, LockLimit, Product, UseLargePages};
use hugepage_facts::Landing;
use hugepage_kernel::memory::pool::Pool;
use hugepage_kernel::next_boot::PoolAtBoot;
use hugepage_kernel::{Bytes, PageSize, Pages};

use super::{KIB, MIB, Server, known, pool};

/// An SGA of 512 pages of 2 MB, of which `huge` are in huge pages, and the rest in base pages.
#[derive(Clone, Copy)]
struct Sga {
    huge: u64,
    requested: HugePages,
    memory_target: bool,
    may_mix: bool,
    lock_limit: Option<LockLimit>,
    /// nr, free
    pool: (u64, u64),
}

const SGA: Sga = Sga {
    huge: 512,
    requested: HugePages::Try,
    memory_target: false,
    may_mix: true,
    lock_limit: None,
    pool: (512, 0),
};

fn assessed(sga: Sga) -> Status {
    let mut facts = Server::default().facts();
    facts.requested.product = Product::Oracle {
        memory_target: sga.memory_target,
        may_mix: sga.may_mix,
        use_large_pages: None,
        is_asm: false,
    };
    facts.requested.huge_pages = sga.requested;
    facts.pool_state.pool = known(pool(sga.pool.0, sga.pool.1, 0));
    facts.pool_state.lock_limit = sga.lock_limit;
    let segment = facts.segment.as_mut().unwrap();
    segment.in_huge_pages = Bytes(sga.huge * 2 * MIB);
    (segment.landing, segment.page_size) = match sga.huge {
        512 => (Landing::Hugetlb, PageSize::new(2 * MIB)),
        0 => (Landing::Base, PageSize::from_kib(4)),
        _ => (Landing::Mixed, PageSize::new(2 * MIB)),
    };
    Status::assess(facts)
}

#[test]
#[rustfmt::skip]
fn words_and_outlook_of_an_sga() {
    let none = Sga { huge: 0, ..SGA };
    let cases = [
        (
            "all of it", SGA, "ok", "hugetlb",
            "The SGA (1 GB) is in 512 huge pages of 2 MB, and a restart keeps them.",
            None,
        ),
        (
            "the pool shrunk under it", Sga { pool: (256, 0), ..SGA }, "warning", "mixed",
            "The SGA (1 GB) is in huge pages, but a restart would lose a part of them: only 256 of the 512 pages of 2 MB \
             needed are guaranteed.",
            Some(seen!("Run \"sysctl -w vm.nr_hugepages=512", ".")),
        ),
        (
            "mixed", Sga { huge: 511, pool: (511, 0), ..SGA }, "warning", "mixed",
            "The SGA (1 GB) is in huge pages for 1022 MB, in base pages for the other 2 MB although huge pages were asked \
             for: the pool has 511 pages of 2 MB; 512 are needed (1 missing).",
            Some(seen!("Run \"sysctl -w vm.nr_hugepages=512", " and restart the instance.")),
        ),
        (
            "mixed, and ONLY at the next start", Sga { huge: 511, pool: (511, 0), requested: HugePages::On, ..SGA }, "critical", "fails",
            "The next start would fail: use_large_pages = ONLY, and only 511 of the 512 pages of 2 MB needed are guaranteed.",
            Some(seen!("Run \"sysctl -w vm.nr_hugepages=512", ".")),
        ),
        (
            "none, an empty pool", Sga { pool: (0, 0), ..none }, "warning", "base",
            "The SGA (1 GB) is in 4 kB pages although huge pages were asked for: the pool of 2 MB pages is empty; 512 are \
             needed.",
            Some(seen!("Run \"sysctl -w vm.nr_hugepages=512", " and restart the instance.")),
        ),
        (
            "none, a pool for a part", Sga { pool: (100, 100), ..none }, "warning", "mixed",
            "The SGA (1 GB) is in 4 kB pages although huge pages were asked for: the pool has 100 pages of 2 MB; 512 are \
             needed (412 missing).",
            Some(seen!("Run \"sysctl -w vm.nr_hugepages=512", " and restart the instance.")),
        ),
        (
            "the same on 11.2.0.2", Sga { pool: (100, 100), may_mix: false, ..none }, "warning", "base",
            "The SGA (1 GB) is in 4 kB pages although huge pages were asked for: the pool has 100 pages of 2 MB; 512 are \
             needed (412 missing).",
            Some(seen!("Run \"sysctl -w vm.nr_hugepages=512", " and restart the instance.")),
        ),
        (
            "none, and enough by now", Sga { pool: (512, 512), ..none }, "warning", "hugetlb",
            "The SGA (1 GB) is in 4 kB pages although huge pages were asked for: they were unavailable when the instance \
             started; all 512 pages of 2 MB needed are available now.",
            Some("Restart the instance."),
        ),
        (
            "memlock", Sga { pool: (512, 512), lock_limit: Some(LockLimit::Memlock { limit: Bytes(64 * KIB), others: Bytes(0) }), ..none }, "warning", "base",
            "The SGA (1 GB) is in 4 kB pages although huge pages were asked for: its memlock limit is 64 kB; 1 GB is needed.",
            Some("Raise the memlock limit of the instance to at least 1048576 kB and restart the instance (MOS 2049901.1)."),
        ),
        (
            "the group", Sga { pool: (512, 512), lock_limit: Some(LockLimit::ShmGroup { gid: 54321 }), ..none }, "warning", "base",
            "The SGA (1 GB) is in 4 kB pages although huge pages were asked for: its owner is not in the group of \
             vm.hugetlb_shm_group.",
            Some("Run \"sysctl -w vm.hugetlb_shm_group=54321\" and restart the instance."),
        ),
        (
            "MEMORY_TARGET", Sga { pool: (512, 512), memory_target: true, ..none }, "warning", "base",
            "The SGA (1 GB) is in 4 kB pages although huge pages were asked for: MEMORY_TARGET puts the SGA into files in \
             /dev/shm, which cannot use huge pages.",
            Some("Set SGA_TARGET and PGA_AGGREGATE_TARGET in place of MEMORY_TARGET and restart the instance."),
        ),
        (
            "FALSE beside a pool for it", Sga { pool: (512, 512), requested: HugePages::Off, ..none }, "warning", "base",
            "The pool has 512 pages of 2 MB, the servers of this host need 0, and 1 GB is unused.",
            Some("Reduce the pool, unless a stopped server needs these pages, or one in base pages is to have them."),
        ),
        (
            "ONLY, and nothing is left", Sga { pool: (0, 0), requested: HugePages::On, ..none }, "critical", "fails",
            "The next start would fail: use_large_pages = ONLY, and only 0 of the 512 pages of 2 MB needed are guaranteed.",
            Some(seen!("Run \"sysctl -w vm.nr_hugepages=512", ".")),
        ),
    ];
    for (what, sga, verdict, outlook, text, advice) in cases {
        let status = assessed(sga);
        assert_eq!(status.verdict().0.to_string(), verdict, "{what}");
        assert_eq!(status.forecast.outlook.to_string(), outlook, "{what}");
        assert_eq!(message(&status), text, "{what}");
        assert_eq!(hint(&status).as_deref(), advice, "{what}");
    }
}

/// AUTO_ONLY asks the kernel, and surplus pages may be there: that an instance does not start is said of ONLY alone.
#[test]
fn the_next_boot_by_use_large_pages() {
    for (setting, overcommit, verdict, outlook, text) in [
        (
            UseLargePages::Only,
            0,
            "warning",
            Outlook::Fails,
            "use_large_pages = ONLY the instance does not start",
        ),
        (
            UseLargePages::AutoOnly,
            0,
            "notice",
            Outlook::Unknown,
            "the instance asks the kernel",
        ),
        (
            UseLargePages::Auto,
            0,
            "notice",
            Outlook::Unknown,
            "the instance asks the kernel",
        ),
        (
            UseLargePages::True,
            0,
            "notice",
            Outlook::Base,
            "until the next boot",
        ),
        (
            UseLargePages::Only,
            600,
            "notice",
            Outlook::Unknown,
            "the SGA needs surplus pages",
        ),
    ] {
        let mut facts = assessed(SGA).facts;
        let product = &mut facts.requested.product;
        *product = Product::Oracle {
            memory_target: false,
            may_mix: true,
            use_large_pages: Some(setting),
            is_asm: false,
        };
        facts.requested.huge_pages = setting.huge_pages();
        facts.pool_state.pool = known(Pool {
            overcommit: Some(Pages(overcommit)),
            ..pool(512, 0, 0)
        });
        facts.next_boot = Some(PoolAtBoot::Unset);
        let status = Status::assess(facts);
        assert_eq!(
            (&*status.verdict().0.to_string(), status.boot_outlook()),
            (verdict, Some(outlook)),
            "{setting:?}"
        );
        assert!(
            message(&status).contains(text),
            "{setting:?} {overcommit}: {}",
            message(&status)
        );
    }
}
