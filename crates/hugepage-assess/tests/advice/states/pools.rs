//! The pool and the configuration: empty, too small, taken, lowered, too large, for the next start, and at the next boot.

use hugepage_assess::model::{HugePages, PagesOfStrangers, Pending, PoolFact, UnattachedSegment};
use hugepage_facts::{Cause, Landing, Loss, Lost, PageKind, Past, PoolHolder};
use hugepage_kernel::memory::meminfo::Meminfo;
use hugepage_kernel::next_boot::PoolAtBoot;
use hugepage_kernel::{Bytes, PageSize, Pages};

use super::super::{GIB, Host, MIB, page_size, pool};
use super::{State, changed, of_host};

fn base(pool: [u64; 5]) -> Host {
    Host {
        huge: false,
        pool,
        ..Host::default()
    }
}

fn huge(pool: [u64; 5]) -> Host {
    Host {
        pool,
        ..Host::default()
    }
}

fn holder(name: &str, pages: u64) -> PoolHolder {
    PoolHolder {
        name: name.to_owned(),
        user: "alice".to_owned(),
        processes: 1,
        memory: Bytes(pages * 2 * MIB),
        pages: Some(Pages(pages)),
        is_bound: false,
        counts: false,
    }
}

fn loss(lost: Lost) -> Past {
    let at = humantime::parse_rfc3339("2026-11-21T10:00:00Z").unwrap();
    Past {
        loss: Some(Loss { at, lost }),
        ..Past::default()
    }
}

fn pages_of(landing: Landing, kib: u64) -> PageKind {
    PageKind {
        landing,
        size: PageSize::from_kib(kib),
    }
}

pub fn states() -> Vec<State> {
    [
        running(),
        of_next_start(),
        of_page_sizes(),
        at_boot(),
        of_host_memory(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn running() -> Vec<State> {
    vec![
        of_host("well", Host::default()),
        of_host("the pool is empty", base([0; 5])),
        of_host(
            "the pool is empty, and huge_pages = on is in the configuration since",
            Host {
                huge_pages: HugePages::On,
                ..base([0; 5])
            },
        ),
        of_host(
            "the pool is empty, and shared memory is small",
            Host {
                shared_buffers: 64 * MIB,
                ..base([0; 5])
            },
        ),
        of_host("three pages are missing", base([531, 531, 0, 0, 9])),
        changed("others hold pages", base([600, 100, 0, 0, 9]), |facts| {
            facts.largest_holder = Some(holder("qemu-system-x86", 480));
        }),
        changed(
            "others hold pages, nobody knows who",
            base([600, 100, 0, 0, 9]),
            |facts| {
                facts.largest_holder = Some(PoolHolder {
                    pages: None,
                    ..holder("qemu-system-x86", 480)
                });
            },
        ),
        changed("strangers hold pages", base([600, 100, 0, 0, 9]), |facts| {
            facts.strangers = PagesOfStrangers {
                pages: Pages(500),
                largest: Some(holder("python3", 480)),
                ..PagesOfStrangers::default()
            };
        }),
        changed(
            "strangers hold less than is missing",
            base([600, 160, 0, 0, 9]),
            |facts| {
                facts.strangers = PagesOfStrangers {
                    pages: Pages(60),
                    largest: Some(holder("python3", 60)),
                    ..PagesOfStrangers::default()
                };
            },
        ),
        changed(
            "segments of nobody's hold pages",
            base([600, 100, 0, 0, 9]),
            |facts| {
                facts.strangers = PagesOfStrangers {
                    pages: Pages(500),
                    unattached: vec![UnattachedSegment {
                        id: 4,
                        key: 0,
                        size: Bytes(1000 << 20),
                        owner: "oracle".into(),
                        last_pid: 9120,
                        is_remnant: true,
                    }],
                    ..PagesOfStrangers::default()
                };
            },
        ),
        changed(
            "other servers lack pages",
            base([10, 10, 0, 0, 9]),
            |facts| facts.others_lack = Some(Pages(70)),
        ),
        of_host("there are enough pages since", base([534, 534, 0, 0, 9])),
        changed(
            "there are enough pages since, and the pool was too small",
            base([534, 534, 0, 0, 9]),
            |facts| {
                facts.past.cause_at_start = Some(Cause::PoolTooSmall);
            },
        ),
        changed(
            "there are enough pages since, and others held them",
            base([534, 534, 0, 0, 9]),
            |facts| {
                facts.past.cause_at_start = Some(Cause::PoolTaken);
            },
        ),
        changed(
            "there are enough pages since, and a cgroup refused them",
            base([534, 534, 0, 0, 9]),
            |facts| {
                facts.past.cause_at_start = Some(Cause::CgroupLimit);
            },
        ),
        changed(
            "there are enough pages since, and its nodes had too few",
            base([534, 534, 0, 0, 9]),
            |facts| {
                facts.past.cause_at_start = Some(Cause::NodeLimit);
            },
        ),
        of_host(
            "shared memory by System V",
            Host {
                sysv: true,
                ..base([0; 5])
            },
        ),
        of_host(
            "base pages by choice",
            Host {
                huge_pages: HugePages::Off,
                ..base([0; 5])
            },
        ),
        of_host(
            "base pages by choice, and too large",
            Host {
                huge_pages: HugePages::Off,
                shared_buffers: 15 * GIB,
                ..base([0; 5])
            },
        ),
        of_host(
            "too large for the host",
            Host {
                shared_buffers: 14 * GIB,
                ..base([0; 5])
            },
        ),
        of_host(
            "others hold all that the host can have, and shared memory is by System V",
            Host {
                sysv: true,
                ..base([6553, 0, 0, 0, 9])
            },
        ),
        of_host(
            "others hold all that the host can have, by System V and with on",
            Host {
                sysv: true,
                huge_pages: HugePages::On,
                ..base([6553, 0, 0, 0, 9])
            },
        ),
        changed(
            "shared memory by System V, and the memory of the host is unknown",
            Host {
                sysv: true,
                ..base([0; 5])
            },
            |facts| facts.meminfo = Meminfo::default(),
        ),
        of_host(
            "others hold all that the host can have",
            base([6553, 0, 0, 0, 9]),
        ),
        changed("transparent huge pages", base([0; 5]), |facts| {
            facts.segment.as_mut().unwrap().landing = Landing::Thp
        }),
        changed(
            "transparent huge pages by choice of the kernel",
            Host {
                huge_pages: HugePages::Off,
                ..base([0; 5])
            },
            |facts| {
                facts.segment.as_mut().unwrap().landing = Landing::Thp;
            },
        ),
        changed("partly transparent huge pages", base([0; 5]), |facts| {
            facts.segment.as_mut().unwrap().landing = Landing::PartialThp;
        }),
        changed("the kernel shows no pages", Host::default(), |facts| {
            let segment = facts.segment.as_mut().unwrap();
            (segment.landing, segment.page_size) = (Landing::Unknown, None);
        }),
        changed("the pool could not be read", base([0; 5]), |facts| {
            facts.pool_state.pool = PoolFact::Unknown
        }),
        of_host("lowered under the server", huge([534, 100, 100, 534, 9])),
        of_host(
            "lowered under a server that needs huge pages",
            Host {
                huge_pages: HugePages::On,
                ..huge([534, 100, 100, 534, 9])
            },
        ),
        of_host(
            "lowered under a server, and surplus pages may help",
            huge([534, 100, 100, 534, 600]),
        ),
        of_host(
            "twice the pages that are needed",
            huge([1068, 1068, 534, 0, 9]),
        ),
        of_host(
            "twice the pages that are needed, in base pages",
            base([1068, 1068, 0, 0, 9]),
        ),
        of_host("one page less than twice", huge([1067, 1067, 534, 0, 9])),
        of_host(
            "twice the pages, and others can't be seen",
            Host {
                sees_others: false,
                ..huge([1068, 1068, 534, 0, 9])
            },
        ),
        of_host(
            "twice the pages, and half of them are surplus",
            huge([2136, 2136, 534, 1068, 9]),
        ),
        changed(
            "a pool that a stopped server needs",
            Host {
                huge_pages: HugePages::Off,
                ..base([534, 534, 0, 0, 9])
            },
            |_| {},
        ),
        changed(
            "no surplus pages are allowed",
            huge([534, 534, 534, 0, 0]),
            |_| {},
        ),
        changed("lost at the last start", base([0; 5]), |facts| {
            let (was, is) = (pages_of(Landing::Hugetlb, 2048), pages_of(Landing::Base, 4));
            facts.past = loss(Lost::Pages { was, is });
        }),
        changed(
            "lost at the last start, and the pool could not be read",
            base([0; 5]),
            |facts| {
                let (was, is) = (pages_of(Landing::Hugetlb, 2048), pages_of(Landing::Base, 4));
                (facts.past, facts.pool_state.pool) =
                    (loss(Lost::Pages { was, is }), PoolFact::Unknown);
            },
        ),
        changed(
            "the outlook was lost, and the memory of the host is unknown",
            huge([534, 100, 100, 534, 9]),
            |facts| {
                (facts.past, facts.meminfo) = (
                    loss(Lost::Outlook(pages_of(Landing::Hugetlb, 2048))),
                    Meminfo::default(),
                );
            },
        ),
        changed("smaller pages than before", Host::default(), |facts| {
            let (was, is) = (
                pages_of(Landing::Hugetlb, 1 << 20),
                pages_of(Landing::Hugetlb, 2048),
            );
            facts.past = loss(Lost::Pages { was, is });
        }),
        changed(
            "the outlook was lost",
            huge([534, 100, 100, 534, 9]),
            |facts| {
                facts.past = loss(Lost::Outlook(pages_of(Landing::Hugetlb, 2048)));
            },
        ),
    ]
}

fn of_next_start() -> Vec<State> {
    let larger = |huge_pages| Host {
        huge_pages,
        on_disk: Some(2 * GIB),
        ..Host::default()
    };
    vec![
        of_host("more on disk", larger(HugePages::Try)),
        changed(
            "more on disk, and the memory of the host is unknown",
            larger(HugePages::Try),
            |facts| facts.meminfo = Meminfo::default(),
        ),
        of_host("more on disk, with on", larger(HugePages::On)),
        of_host(
            "more on disk, in base pages",
            Host {
                huge: false,
                ..larger(HugePages::Try)
            },
        ),
        of_host(
            "more on disk, and surplus pages may help",
            Host {
                pool: [534, 534, 534, 0, 2000],
                ..larger(HugePages::Try)
            },
        ),
        of_host(
            "more on disk than the host can hold, and surplus pages may help",
            Host {
                on_disk: Some(14 * GIB),
                ..huge([534, 534, 534, 0, 9000])
            },
        ),
        of_host(
            "more on disk than the host can hold",
            Host {
                on_disk: Some(30 * GIB),
                ..Host::default()
            },
        ),
        of_host(
            "as much on disk in more pages than there are",
            Host {
                on_disk: Some(GIB + 8 * MIB),
                ..Host::default()
            },
        ),
        of_host(
            "less on disk",
            Host {
                on_disk: Some(GIB / 2),
                ..Host::default()
            },
        ),
        changed("off on disk", larger(HugePages::Try), |facts| {
            let Pending::Changed(demand, _) = &mut facts.pending else {
                unreachable!()
            };
            demand.requested.huge_pages = HugePages::Off;
        }),
        changed("System V on disk", larger(HugePages::Try), |facts| {
            let Pending::Changed(demand, _) = &mut facts.pending else {
                unreachable!()
            };
            demand.requested.sysv = true;
        }),
        changed(
            "try on disk",
            Host {
                huge_pages: HugePages::Off,
                huge: false,
                on_disk: Some(GIB),
                ..huge([600, 600, 0, 0, 9])
            },
            |facts| {
                let Pending::Changed(demand, _) = &mut facts.pending else {
                    unreachable!()
                };
                demand.requested.huge_pages = HugePages::Try;
            },
        ),
        changed(
            "try on disk, and no pages",
            Host {
                huge_pages: HugePages::Off,
                on_disk: Some(GIB),
                ..base([0; 5])
            },
            |facts| {
                let Pending::Changed(demand, _) = &mut facts.pending else {
                    unreachable!()
                };
                demand.requested.huge_pages = HugePages::Try;
            },
        ),
        changed(
            "what is on disk is unknown, and there are enough pages since",
            base([534, 534, 0, 0, 9]),
            |facts| {
                facts.past = Past {
                    cause_at_start: Some(Cause::PoolTaken),
                    ..loss(Lost::Pages {
                        was: pages_of(Landing::Hugetlb, 2048),
                        is: pages_of(Landing::Base, 4),
                    })
                };
                facts.pending = Pending::Unknown;
            },
        ),
        changed("what is on disk is unknown", Host::default(), |facts| {
            facts.pending = Pending::Unknown
        }),
        changed(
            "what is on disk is unknown, and off is set",
            Host {
                huge_pages: HugePages::Off,
                ..base([0; 5])
            },
            |facts| {
                facts.pending = Pending::Unknown;
            },
        ),
        changed(
            "what is on disk is refused, and off is set",
            Host {
                huge_pages: HugePages::Off,
                ..base([0; 5])
            },
            |facts| {
                facts.pending = Pending::Refused("no".to_owned());
            },
        ),
        changed("what is on disk is refused", Host::default(), |facts| {
            facts.pending =
                Pending::Refused("FATAL:  data directory is wrong\nDETAIL:  It is.".to_owned());
        }),
        changed(
            "what is on disk is refused, and the kernel shows no pages",
            Host::default(),
            |facts| {
                facts.pending = Pending::Refused("no".to_owned());
                facts.segment.as_mut().unwrap().landing = Landing::Unknown;
            },
        ),
        changed(
            "more on disk, and the outlook was lost",
            larger(HugePages::Try),
            |facts| {
                facts.past = loss(Lost::Outlook(pages_of(Landing::Hugetlb, 2048)));
            },
        ),
        of_host(
            "the host has room once the server stops",
            Host {
                available: Some(700 * MIB),
                ..base([0; 5])
            },
        ),
    ]
}

fn of_page_sizes() -> Vec<State> {
    let gigantic = |huge, gigantic| Host {
        page_size: page_size(GIB),
        huge,
        pool: [0; 5],
        gigantic,
        at_boot: Some(2),
        ..Host::default()
    };
    vec![
        of_host(
            "pages of 1 GB, and base pages by choice",
            Host {
                huge_pages: HugePages::Off,
                ..gigantic(false, [2, 2, 0, 0, 0])
            },
        ),
        of_host("no pages of 1 GB", gigantic(false, [0; 5])),
        changed(
            "the machine has no pages of 1 GB",
            gigantic(false, [0; 5]),
            |facts| {
                facts.pool_state.pool =
                    PoolFact::Unsupported(vec![page_size(2 * MIB), page_size(32 * MIB)]);
                let meminfo = &mut facts.meminfo;
                (meminfo.huge_pages_total, meminfo.huge_pages_free) =
                    (Some(Pages(600)), Some(Pages(600)));
                (meminfo.huge_pages_rsvd, meminfo.huge_pages_surp) =
                    (Some(Pages(0)), Some(Pages(0)));
            },
        ),
        changed(
            "the machine has no pages of 1 GB, and a pool of the default size is enough",
            Host {
                page_size: page_size(GIB),
                gigantic: [0; 5],
                ..base([600, 600, 0, 0, 9])
            },
            |facts| {
                facts.pool_state.pool = PoolFact::Unsupported(vec![page_size(2 * MIB)]);
            },
        ),
        changed(
            "pages of 1 GB on disk, which are there",
            Host {
                on_disk: Some(2 * GIB),
                gigantic: [5, 5, 0, 0, 0],
                ..Host::default()
            },
            |facts| {
                let Pending::Changed(demand, pool_state) = &mut facts.pending else {
                    unreachable!()
                };
                let size = Some(page_size(GIB));
                (demand.requested.huge_page_size, pool_state.huge_page_size) = (size, size);
                pool_state.pool = PoolFact::Known(pool(page_size(GIB), [5, 5, 0, 0, 0]));
            },
        ),
        changed(
            "more pages of 1 GB on disk than the host can hold",
            Host {
                on_disk: Some(20 * GIB),
                ..Host::default()
            },
            |facts| {
                let Pending::Changed(demand, pool_state) = &mut facts.pending else {
                    unreachable!()
                };
                let size = Some(page_size(GIB));
                (demand.requested.huge_page_size, pool_state.huge_page_size) = (size, size);
                pool_state.pool = PoolFact::Known(pool(page_size(GIB), [1, 1, 0, 0, 0]));
            },
        ),
        changed(
            "pages of 1 GB on disk",
            Host {
                on_disk: Some(2 * GIB),
                ..Host::default()
            },
            |facts| {
                let Pending::Changed(demand, pool_state) = &mut facts.pending else {
                    unreachable!()
                };
                let size = Some(page_size(GIB));
                (demand.requested.huge_page_size, pool_state.huge_page_size) = (size, size);
                pool_state.pool = PoolFact::Known(pool(page_size(GIB), [1, 0, 0, 0, 0]));
            },
        ),
        changed(
            "the machine has no pages of the default size",
            base([0; 5]),
            |facts| {
                facts.pool_state.pool = PoolFact::Unsupported(vec![page_size(32 * MIB)]);
            },
        ),
        changed(
            "the kernel has no huge pages, with on",
            Host {
                huge_pages: HugePages::On,
                ..base([0; 5])
            },
            |facts| {
                facts.pool_state.pool = PoolFact::Unsupported(Vec::new());
            },
        ),
        changed("the kernel has no huge pages", base([0; 5]), |facts| {
            facts.pool_state.pool = PoolFact::Unsupported(Vec::new())
        }),
        of_host(
            "a pool of 1 GB pages is free",
            Host {
                gigantic: [3, 3, 0, 0, 0],
                shared_buffers: 2 * GIB,
                ..base([0; 5])
            },
        ),
    ]
}

fn at_boot() -> Vec<State> {
    let on_disk = |huge_pages| Host {
        on_disk: Some(2 * GIB),
        huge_pages,
        ..huge([1200, 666, 0, 0, 0])
    };
    vec![
        changed("no setting for the next boot", Host::default(), |facts| {
            facts.next_boot = Some(PoolAtBoot::Unset)
        }),
        changed(
            "no setting for the next boot, with on",
            Host {
                huge_pages: HugePages::On,
                ..Host::default()
            },
            |facts| {
                facts.next_boot = Some(PoolAtBoot::Unset);
            },
        ),
        changed(
            "no setting for the next boot, and the pool is too large",
            huge([2048, 1514, 0, 0, 0]),
            |facts| facts.next_boot = Some(PoolAtBoot::Unset),
        ),
        changed(
            "one page fewer after the next boot",
            Host::default(),
            |facts| {
                facts.next_boot = Some(PoolAtBoot::Set(
                    Pages(533),
                    "/etc/sysctl.d/a b.conf".to_owned(),
                ));
            },
        ),
        changed(
            "enough after the next boot for what runs, too few for the configuration on disk",
            on_disk(HugePages::Try),
            |facts| {
                facts.next_boot = Some(PoolAtBoot::Set(Pages(534), "/etc/sysctl.conf".to_owned()));
            },
        ),
        changed("the same with on", on_disk(HugePages::On), |facts| {
            facts.next_boot = Some(PoolAtBoot::Set(Pages(534), "/etc/sysctl.conf".to_owned()));
        }),
        changed(
            "too few after the next boot for all",
            Host {
                at_boot: Some(534),
                ..huge([634, 634, 634, 0, 9])
            },
            |_| {},
        ),
        of_host(
            "too few after the next boot for all, with on",
            Host {
                at_boot: Some(534),
                huge_pages: HugePages::On,
                ..huge([634, 634, 634, 0, 9])
            },
        ),
        changed(
            "a file that is read later sets too few",
            Host::default(),
            |facts| {
                facts.next_boot = Some(PoolAtBoot::Set(
                    Pages(10),
                    "/etc/sysctl.d/99-zz.conf".to_owned(),
                ));
            },
        ),
        changed(
            "what the next boot sets is unknown",
            Host::default(),
            |facts| {
                facts.next_boot = Some(PoolAtBoot::Unknown(
                    "/proc/cmdline has hugepagesz=2M".to_owned(),
                ));
            },
        ),
        changed(
            "no boot was seen, and nothing sets the pool",
            Host::default(),
            |facts| facts.next_boot = Some(PoolAtBoot::Unseen { has_systemd: true }),
        ),
        changed(
            "no boot was seen, and nothing sets the pool, with on",
            Host {
                huge_pages: HugePages::On,
                ..Host::default()
            },
            |facts| facts.next_boot = Some(PoolAtBoot::Unseen { has_systemd: true }),
        ),
        changed(
            "no boot was seen without systemd, with on",
            Host {
                huge_pages: HugePages::On,
                ..Host::default()
            },
            |facts| facts.next_boot = Some(PoolAtBoot::Unseen { has_systemd: false }),
        ),
        changed(
            "nothing sets the pool, and the files have changed, with on",
            Host {
                huge_pages: HugePages::On,
                ..Host::default()
            },
            |facts| {
                facts.pending = Pending::Unknown;
                facts.next_boot = Some(PoolAtBoot::Unset);
            },
        ),
        changed("as many as at the last boot", Host::default(), |facts| {
            facts.next_boot = Some(PoolAtBoot::Remembered(Pages(534)))
        }),
        changed("the last boot left too few", Host::default(), |facts| {
            facts.next_boot = Some(PoolAtBoot::Remembered(Pages(533)))
        }),
        changed("the unit makes the pool", Host::default(), |facts| {
            facts.next_boot = Some(made(534, None));
        }),
        changed(
            "the unit left fewer than are needed now",
            Host::default(),
            |facts| {
                facts.next_boot = Some(made(533, None));
            },
        ),
        changed(
            "a smaller line of sysctl.d beside the unit",
            Host::default(),
            |facts| {
                facts.next_boot = Some(made(534, Some(72)));
            },
        ),
        changed(
            "a smaller line that is enough beside the unit",
            Host::default(),
            |facts| {
                facts.next_boot = Some(made(700, Some(534)));
            },
        ),
        changed(
            "root says that tuned sets too few",
            Host::default(),
            |facts| {
                facts.next_boot = Some(PoolAtBoot::Told(Pages(70), "tuned".to_owned()));
            },
        ),
        changed("in a container", Host::default(), |facts| {
            facts.next_boot = Some(PoolAtBoot::OfHost);
        }),
        of_host(
            "as many pages at the next boot as the host can hold",
            Host {
                at_boot: Some(6553),
                ..Host::default()
            },
        ),
        changed(
            "what the next boot sets is unknown, and base pages are by choice",
            Host {
                huge_pages: HugePages::Off,
                ..base([100, 0, 0, 0, 9])
            },
            |facts| {
                facts.next_boot = Some(PoolAtBoot::Unknown(
                    "/etc/rc.local is not understood".to_owned(),
                ));
            },
        ),
        changed(
            "more at the next boot than the host can hold",
            Host::default(),
            |facts| {
                facts.next_boot = Some(PoolAtBoot::Set(Pages(9000), "/etc/sysctl.conf".to_owned()));
            },
        ),
        changed(
            "no pages of 1 GB after the next boot",
            Host {
                page_size: page_size(GIB),
                pool: [0; 5],
                gigantic: [2, 2, 2, 0, 0],
                ..Host::default()
            },
            |facts| {
                facts.next_boot = Some(PoolAtBoot::Unset);
            },
        ),
        changed(
            "fewer pages of 1 GB after the next boot",
            Host {
                page_size: page_size(GIB),
                pool: [0; 5],
                gigantic: [2, 2, 2, 0, 0],
                ..Host::default()
            },
            |facts| {
                facts.next_boot = Some(PoolAtBoot::Set(Pages(1), "/etc/default/grub".to_owned()));
            },
        ),
        changed(
            "no setting for the next boot, and a pool of 1 GB pages",
            Host {
                gigantic: [3, 3, 0, 0, 0],
                ..Host::default()
            },
            |facts| {
                facts.next_boot = Some(PoolAtBoot::Unset);
            },
        ),
    ]
}

fn of_host_memory() -> Vec<State> {
    vec![
        of_host(
            "page tables of 6%",
            Host {
                page_tables: GIB,
                ..Host::default()
            },
        ),
        of_host(
            "page tables of 12%, in base pages",
            Host {
                page_tables: 2 * GIB,
                ..base([0; 5])
            },
        ),
        of_host(
            "page tables of 12%, in huge pages",
            Host {
                page_tables: 2 * GIB,
                ..Host::default()
            },
        ),
        of_host(
            "page tables of 12%, and the pool was lowered",
            Host {
                page_tables: 2 * GIB,
                ..huge([534, 100, 100, 534, 9])
            },
        ),
        of_host(
            "page tables of 12%, and base pages by choice",
            Host {
                page_tables: 2 * GIB,
                huge_pages: HugePages::Off,
                ..base([0; 5])
            },
        ),
        changed("lxcfs", Host::default(), |facts| {
            facts.meminfo.is_of_lxcfs = true
        }),
        of_host(
            "a pool that leaves little",
            Host {
                shared_buffers: 13 * GIB,
                available: Some(16 * GIB),
                ..base([0; 5])
            },
        ),
    ]
}

fn made(pages: u64, smaller: Option<u64>) -> PoolAtBoot {
    let file = "/etc/sysctl.d/90-postgresql-hugepages.conf";
    PoolAtBoot::Made {
        pages: Pages(pages),
        smaller: smaller.map(|smaller| (Pages(smaller), file.to_owned())),
    }
}
