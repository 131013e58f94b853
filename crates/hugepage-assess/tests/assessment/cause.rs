//! Why a segment is in base pages, and how many pages were missing.

use hugepage_assess::model::{HugePages, PoolFact};
use hugepage_facts::{Cause, Landing};
use hugepage_kernel::Pages;
use hugepage_kernel::memory::pool::Pool;

use super::{GIB, Server, hidden, known, page_size, pool, reservation};

#[test]
fn causes_in_the_order_in_which_the_server_meets_them() {
    let base = Server::in_base_pages();
    let unsupported = PoolFact::Unsupported(vec![page_size(2 << 20)]);
    let cases = [
        ("in huge pages", Server::default(), None),
        (
            "no segment",
            Server {
                landing: None,
                ..base.clone()
            },
            Some(Cause::Unknown),
        ),
        (
            "an unknown landing",
            Server {
                landing: Some(Landing::Unknown),
                ..base.clone()
            },
            Some(Cause::Unknown),
        ),
        (
            "off",
            Server {
                huge_pages: HugePages::Off,
                sysv: true,
                ..base.clone()
            },
            Some(Cause::Disabled),
        ),
        (
            "sysv",
            Server {
                sysv: true,
                pool: unsupported.clone(),
                ..base.clone()
            },
            Some(Cause::SysvSharedMemory),
        ),
        (
            "unsupported",
            Server {
                pool: unsupported,
                ..base.clone()
            },
            Some(Cause::PageSizeUnsupported),
        ),
        (
            "no huge pages at all",
            Server {
                pool: PoolFact::Unsupported(vec![]),
                page_size: None,
                ..base.clone()
            },
            Some(Cause::PageSizeUnsupported),
        ),
        (
            "a pool that can't be read",
            Server {
                pool: PoolFact::Unknown,
                ..base.clone()
            },
            Some(Cause::Unknown),
        ),
        ("an empty pool", base.clone(), Some(Cause::PoolEmpty)),
        (
            "one page of 512",
            Server {
                pool: known(pool(1, 1, 0)),
                ..base.clone()
            },
            Some(Cause::PoolTooSmall),
        ),
        (
            "one page short",
            Server {
                pool: known(pool(511, 511, 0)),
                ..base.clone()
            },
            Some(Cause::PoolTooSmall),
        ),
        (
            "one page promised",
            Server {
                pool: known(pool(512, 512, 1)),
                ..base.clone()
            },
            Some(Cause::PoolTaken),
        ),
        (
            "one page touched",
            Server {
                pool: known(pool(512, 511, 0)),
                ..base.clone()
            },
            Some(Cause::PoolTaken),
        ),
        (
            "all there now",
            Server {
                pool: known(pool(512, 512, 0)),
                ..base.clone()
            },
            Some(Cause::Unknown),
        ),
        (
            "no counter of promises",
            Server {
                pool: known(Pool {
                    resv: None,
                    ..pool(512, 512, 0)
                }),
                ..base.clone()
            },
            Some(Cause::Unknown),
        ),
        (
            "a cgroup one byte short",
            Server {
                pool: known(pool(512, 512, 0)),
                limits: reservation(&[(GIB - 1, 0)]),
                ..base.clone()
            },
            Some(Cause::CgroupLimit),
        ),
        (
            "a cgroup with just enough room",
            Server {
                pool: known(pool(512, 512, 0)),
                limits: reservation(&[(GIB + 5, 5)]),
                ..base.clone()
            },
            Some(Cause::Unknown),
        ),
        (
            "the level above, used by others",
            Server {
                pool: known(pool(512, 512, 0)),
                limits: reservation(&[(GIB, 0), (8 * GIB, 7 * GIB + 1)]),
                ..base.clone()
            },
            Some(Cause::CgroupLimit),
        ),
        (
            "a pool too small is met before the cgroup",
            Server {
                pool: known(pool(511, 511, 0)),
                limits: reservation(&[(0, 0)]),
                ..base.clone()
            },
            Some(Cause::PoolTooSmall),
        ),
        (
            "in THP",
            Server {
                landing: Some(Landing::Thp),
                ..base.clone()
            },
            Some(Cause::PoolEmpty),
        ),
        (
            "partly in THP",
            Server {
                landing: Some(Landing::PartialThp),
                ..base
            },
            Some(Cause::PoolEmpty),
        ),
    ];
    for (what, server, cause) in cases {
        assert_eq!(server.status().cause, cause, "{what}");
    }
}

#[test]
fn pages_needed_and_missing() {
    let base = Server::in_base_pages();
    let cases = [
        ("in huge pages", Server::default(), Some(512), Some(0)),
        ("an empty pool", base.clone(), Some(512), Some(512)),
        (
            "one byte more",
            Server {
                size: GIB + 1,
                ..base.clone()
            },
            Some(513),
            Some(513),
        ),
        (
            "one byte less",
            Server {
                size: GIB - 1,
                ..base.clone()
            },
            Some(512),
            Some(512),
        ),
        (
            "some promised",
            Server {
                pool: known(pool(600, 500, 100)),
                ..base.clone()
            },
            Some(512),
            Some(112),
        ),
        (
            "all there now",
            Server {
                pool: known(pool(512, 512, 0)),
                ..base.clone()
            },
            Some(512),
            Some(0),
        ),
        (
            "a cgroup leaves 100 pages and a half",
            Server {
                pool: known(pool(512, 512, 0)),
                limits: reservation(&[(201 << 20, 0)]),
                ..base.clone()
            },
            Some(512),
            Some(412),
        ),
        (
            "the pool is short of more than the cgroup",
            Server {
                pool: known(pool(10, 10, 0)),
                limits: reservation(&[(200 << 20, 0)]),
                ..base.clone()
            },
            Some(512),
            Some(502),
        ),
        (
            "enough as far as can be seen",
            Server {
                pool: known(pool(512, 512, 0)),
                limits: hidden(),
                ..base.clone()
            },
            Some(512),
            None,
        ),
        (
            "enough, and limits unknown",
            Server {
                pool: known(pool(512, 512, 0)),
                limits: None,
                ..base.clone()
            },
            Some(512),
            None,
        ),
        (
            "short whatever the hidden limits are",
            Server {
                limits: hidden(),
                ..base.clone()
            },
            Some(512),
            Some(512),
        ),
        (
            "no counter of promises",
            Server {
                pool: known(Pool {
                    resv: None,
                    ..pool(512, 512, 0)
                }),
                ..base.clone()
            },
            Some(512),
            None,
        ),
        (
            "no counter of promises, and no page to promise",
            Server {
                pool: known(Pool {
                    resv: None,
                    ..pool(0, 0, 0)
                }),
                ..base.clone()
            },
            Some(512),
            Some(512),
        ),
        (
            "an unknown pool",
            Server {
                pool: PoolFact::Unknown,
                ..base.clone()
            },
            Some(512),
            None,
        ),
        (
            "unsupported",
            Server {
                pool: PoolFact::Unsupported(vec![]),
                ..base.clone()
            },
            None,
            None,
        ),
        (
            "no segment",
            Server {
                landing: None,
                ..base
            },
            None,
            None,
        ),
    ];
    for (what, server, needed, missing) in cases {
        let status = server.status();
        assert_eq!(status.crash.needed, needed.map(Pages), "{what}");
        assert_eq!(status.missing, missing.map(Pages), "{what}");
    }
}
