//! Sentences that no host of the fixtures gives occasion to.

use hugepage_assess::advice;
use hugepage_assess::model::{HugePages, Landing, PoolFact};
use hugepage_kernel::cgroups::cgroup::CgroupLimits;
use hugepage_kernel::memory::pool::Pool;
use hugepage_kernel::{PageSize, Pages};

use super::{GIB, MIB, Server, fault, hidden, known, limit, pool, reservation};

#[test]
#[rustfmt::skip]
fn messages_and_hints() {
    let base = Server::in_base_pages();
    let huge = Server::default();
    let overcommit = Pool { surplus: Some(Pages(512)), overcommit: Some(Pages(512)), ..pool(512, 0, 0) };
    let both = CgroupLimits { fault: vec![limit(GIB / 2, 0)], reservation: vec![limit(3 * GIB / 4, MIB)], ..CgroupLimits::default() };
    let cases = [
        (
            Server { size: 15 * GIB, ..base.clone() },
            "Shared memory (15 GB) is in 4 kB pages although huge pages were asked for: the pool of 2 MB pages is empty; \
             7680 are needed, and a pool of 7680 pages exceeds the 6553 that this host can hold with 20% of memory in base \
             pages.",
            Some(
                "Reduce shared_buffers until shared memory takes at most 12.7 GB, run \"sysctl -w vm.nr_hugepages=6553\" (once that is reduced, all servers \
                 seen here; `hugepage-sidecar size` counts all of the host) and restart the server, or set huge_pages = off.",
            ),
        ),
        // What others hold of a pool that is too small adds up with what is missing.
        (
            Server { pool: known(pool(500, 40, 0)), ..base.clone() },
            "Shared memory (1 GB) is in 4 kB pages although huge pages were asked for: only 40 of the pool's 500 pages of 2 MB \
             are available; 512 are needed (472 missing).",
            Some("Run \"sysctl -w vm.nr_hugepages=972\" (all servers seen here; `hugepage-sidecar size` counts all of the host) and restart the server."),
        ),
        (
            Server { pool: known(pool(6600, 0, 0)), ..base.clone() },
            "Shared memory (1 GB) is in 4 kB pages although huge pages were asked for: only 0 of the pool's 6600 pages of 2 \
             MB are available; 512 are needed (512 missing), and a pool of 7112 pages exceeds the 6600 that this host can \
             hold with 20% of memory in base pages.",
            Some("Set huge_pages = off: other processes hold all huge pages that this host can hold."),
        ),
        (
            Server { huge_pages: HugePages::Off, ..base.clone() },
            "Shared memory (1 GB) is in 4 kB pages because huge_pages = off.",
            // Other numbers leave out who asks for no huge pages.
            Some(
                "Run \"sysctl -w vm.nr_hugepages=512\" (with this one, all servers seen here; `hugepage-sidecar size` counts all of \
                 the host), set huge_pages = try and restart the server to use huge pages.",
            ),
        ),
        (
            Server { huge_pages: HugePages::Off, size: 15 * GIB, ..base.clone() },
            "Shared memory (15 GB) is in 4 kB pages because huge_pages = off.",
            None,
        ),
        (
            Server { sysv: true, ..base.clone() },
            "Shared memory (1 GB) is in 4 kB pages although huge pages were asked for: PostgreSQL does not use huge pages \
             with shared_memory_type = sysv.",
            Some(seen!("Run \"sysctl -w vm.nr_hugepages=512", ", set shared_memory_type = mmap and restart the server.")),
        ),
        (
            Server { pool: known(pool(512, 512, 0)), ..base.clone() },
            "Shared memory (1 GB) is in 4 kB pages although huge pages were asked for: they were unavailable when the \
             server started; all 512 pages of 2 MB needed are available now.",
            Some("Restart the server."),
        ),
        (
            Server { pool: known(pool(512, 512, 0)), limits: hidden(), ..base.clone() },
            "Shared memory (1 GB) is in 4 kB pages although huge pages were asked for: the cause could not be determined.",
            Some("What helps depends on what could not be determined."),
        ),
        (
            Server { landing: Some(Landing::Thp), ..base.clone() },
            "Shared memory (1 GB) is in transparent huge pages, which are not reserved: they can be split and swapped, and \
             a restart may not get them.",
            Some(seen!("Run \"sysctl -w vm.nr_hugepages=512", " and restart the server.")),
        ),
        (
            // Raising the pool alone would lead from base pages into SIGBUS.
            Server { limits: fault(&[(GIB / 2, 0)]), ..base.clone() },
            "Shared memory (1 GB) is in 4 kB pages although huge pages were asked for: the pool of 2 MB pages is empty; 512 \
             are needed.",
            Some(seen!("Set /sys/fs/cgroup/limit_536870912 to at least 1073741824 bytes, run \"sysctl -w vm.nr_hugepages=512", " \
                  and restart the server.")),
        ),
        (
            Server { limits: fault(&[(GIB, 0)]), ..base.clone() },
            "Shared memory (1 GB) is in 4 kB pages although huge pages were asked for: the pool of 2 MB pages is empty; 512 \
             are needed.",
            Some(seen!("Run \"sysctl -w vm.nr_hugepages=512", " and restart the server.")),
        ),
        (
            Server { pool: known(pool(512, 512, 0)), limits: Some(both), ..base.clone() },
            "Shared memory (1 GB) is in 4 kB pages although huge pages were asked for: a cgroup allows only 767 MB of the 1 \
             GB needed.",
            Some("Set /sys/fs/cgroup/limit_536870912 to at least 1073741824 bytes, set /sys/fs/cgroup/limit_805306368 to at \
                  least 1074790400 bytes and restart the server."),
        ),
        (
            Server { landing: None, ..base },
            "The pages of shared memory could not be determined.",
            None,
        ),
        (
            Server { pool: known(overcommit), ..huge.clone() },
            "Shared memory (1 GB) is in 512 huge pages of 2 MB, but whether a restart gets huge pages depends on surplus \
             pages, which the kernel may be unable to provide.",
            Some(seen!("Run \"sysctl -w vm.nr_hugepages=512", ".")),
        ),
        (
            Server { pool: PoolFact::Unknown, ..huge.clone() },
            "Shared memory (1 GB) is in 512 huge pages of 2 MB, but whether a restart gets huge pages depends on the \
             available pages of the pool, which are unknown.",
            None,
        ),
        (
            // A limit that is high enough is not to be raised, although others can't be seen.
            Server { limits: reservation(&[(2 * GIB, GIB)]).map(|limits| CgroupLimits { hidden_levels: true, ..limits }), ..huge.clone() },
            "Shared memory (1 GB) is in 512 huge pages of 2 MB, but whether a restart gets huge pages depends on cgroup \
             limits that are not visible from here.",
            None,
        ),
        (
            Server { limits: reservation(&[(2 * GIB, 2 * GIB + MIB)]), ..huge.clone() },
            "Shared memory (1 GB) is in huge pages, but a restart, or a crash of one backend, would lose them: a cgroup \
             allows only 511 of the 512 pages of 2 MB needed.",
            Some("Set /sys/fs/cgroup/limit_2147483648 to at least 2148532224 bytes."),
        ),
        (
            Server { pool: known(pool(1524, 1524, 1024)), ..huge.clone() },
            "Shared memory (1 GB) is in 512 huge pages of 2 MB, and a restart keeps them.",
            None,
        ),
        (
            Server { pool: known(pool(1524, 1024, 12)), ..huge.clone() },
            "The pool has 1524 pages of 2 MB, the servers of this host need 512, and 2024 MB is unused.",
            Some("Run \"sysctl -w vm.nr_hugepages=512\", unless a stopped server needs these pages, or one in base pages is to have them."),
        ),
        (
            Server { page_size: PageSize::new(GIB), pool: known(Pool { page_size: PageSize::new(GIB).unwrap(), ..pool(2, 1, 0) }), ..huge.clone() },
            "The pool has 2 pages of 1 GB, the servers of this host need 1, and 1 GB is unused.",
            Some("Run \"echo 1 > /sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages\", unless a stopped server needs \
                  these pages, or one in base pages is to have them."),
        ),
        (
            Server { memory: 100 * MIB, page_tables: 6 * MIB, pool: known(pool(512, 0, 0)), ..huge },
            "Page tables take 6 MB, which is 6% of this host's memory.",
            Some("Reduce the number of processes, for example with a connection pooler."),
        ),
    ];
    for (server, message, hint) in cases {
        let status = server.status();
        assert_eq!(advice::message(&status), message);
        assert_eq!(advice::hint(&status).as_deref(), hint, "{message}");
    }
}
