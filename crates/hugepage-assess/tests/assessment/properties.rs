//! What must hold whatever the kernel says.

use hugepage_assess::advice;
use hugepage_assess::assessment::{Finding, Outlook, Severity, Status};
use hugepage_assess::model::{HugePages, NodePools, PoolFact};
use hugepage_facts::Landing;
use hugepage_kernel::cgroups::cgroup::{CgroupLimit, CgroupLimits};
use hugepage_kernel::mapping::memory_policy::MemoryPolicy;
use hugepage_kernel::memory::pool::{NodePool, Pool};
use hugepage_kernel::{Bytes, PageSize, Pages};
use proptest::prelude::*;

use super::{GIB, KIB, MIB, Server, known, limit, page_size, pool};

fn sizes_of_huge_pages() -> impl Strategy<Value = PageSize> {
    prop::sample::select(vec![64 * KIB, 2 * MIB, 16 * MIB, 512 * MIB, GIB, 16 * GIB])
        .prop_map(page_size)
}

/// Small numbers, at which borders meet, and any.
fn counts() -> impl Strategy<Value = u64> {
    prop_oneof![4 => 0..2000u64, 1 => any::<u64>()]
}

fn pools() -> impl Strategy<Value = Pool> {
    let count = || prop::option::weighted(0.9, counts().prop_map(Pages));
    (
        sizes_of_huge_pages(),
        counts(),
        counts(),
        count(),
        count(),
        count(),
    )
        .prop_map(|(page_size, nr, free, resv, surplus, overcommit)| Pool {
            page_size,
            nr: Pages(nr),
            free: Pages(free),
            resv,
            surplus,
            overcommit,
        })
}

fn limits() -> impl Strategy<Value = Vec<CgroupLimit>> {
    let bytes = || prop_oneof![0..4 * GIB, any::<u64>()];
    let promised = prop::option::of(bytes().prop_map(Bytes));
    let level = (bytes(), bytes(), promised).prop_map(|(bytes, usage, promised)| CgroupLimit {
        promised,
        ..limit(bytes, usage)
    });
    prop::collection::vec(level, 0..4)
}

/// Two nodes with a pool's pages: hundredths of all and of the free ones on the first, which of them may be used, and
/// their memory.
type Split = ((u32, u32), (Option<Vec<u32>>, MemoryPolicy), Option<u64>);

fn splits() -> impl Strategy<Value = Option<Split>> {
    let allowed = prop::option::weighted(
        0.9,
        prop::sample::select(vec![vec![0], vec![1], vec![0, 1]]),
    );
    let policy = prop::sample::select(vec![
        MemoryPolicy::Any,
        MemoryPolicy::Bind(vec![0]),
        MemoryPolicy::Unknown,
    ]);
    prop::option::of((
        (0..=100u32, 0..=100u32),
        (allowed, policy),
        prop::option::of(GIB..128 * GIB),
    ))
}

fn split(whole: &Pool, ((all, free), (allowed, policy), memory): Split) -> NodePools {
    let part = |pages: Pages, percent: u32| Pages(Bytes(pages.0).percent(percent).0);
    let touched = whole.nr.saturating_sub(whole.free);
    let (used, unused) = (part(touched, all), part(whole.free, free));
    let (first, all_surplus) = (
        used.saturating_add(unused),
        whole.surplus.unwrap_or_default(),
    );
    let surplus = part(all_surplus, all)
        .min(first)
        .max(all_surplus.saturating_sub(whole.nr.saturating_sub(first)));
    let share = |node, touched: Pages, free: Pages, surplus| NodePool {
        node,
        pool: Pool {
            nr: touched.saturating_add(free),
            free,
            resv: None,
            overcommit: None,
            surplus: whole.surplus.map(|_| surplus),
            page_size: whole.page_size,
        },
        memory: memory.map(Bytes),
    };
    let pools = vec![
        share(0, used, unused, surplus),
        share(
            1,
            touched.saturating_sub(used),
            whole.free.saturating_sub(unused),
            all_surplus.saturating_sub(surplus),
        ),
    ];
    NodePools {
        pools,
        allowed,
        policy,
    }
}

fn servers() -> impl Strategy<Value = Server> {
    use Landing::{Base, Hugetlb, PartialThp, Thp, Unknown};
    let landing = prop::option::weighted(
        0.9,
        prop::sample::select(vec![Hugetlb, Base, Thp, PartialThp, Unknown]),
    );
    let requested = (
        prop::sample::select(vec![HugePages::Off, HugePages::On, HugePages::Try]),
        prop::bool::weighted(0.1),
    );
    let levels = prop::option::weighted(0.9, (limits(), limits(), any::<bool>()));
    let memory = prop_oneof![4 => MIB..256 * GIB, 1 => any::<u64>()];
    let host = (
        memory,
        any::<u64>(),
        prop::option::of(any::<u64>()),
        0..=200u32,
    );
    let pool = prop_oneof![
        8 => pools().prop_map(PoolFact::Known),
        1 => prop::collection::vec(sizes_of_huge_pages(), 0..3).prop_map(PoolFact::Unsupported),
        1 => Just(PoolFact::Unknown),
    ];
    (
        requested,
        landing,
        1..64 * GIB,
        (pool, sizes_of_huge_pages(), splits()),
        levels,
        host,
    )
        .prop_map(
            |(
                (huge_pages, sysv),
                landing,
                size,
                (pool, other, shares),
                levels,
                (memory, page_tables, hugetlb, reserve_percent),
            )| {
                let page_size = pool.known().map_or(other, |pool| pool.page_size);
                let limits = levels.map(|(fault, reservation, hidden_levels)| CgroupLimits {
                    fault,
                    reservation,
                    refusals: None,
                    hidden_levels,
                });
                let is_whole = |pool: &&Pool| pool.free <= pool.nr && pool.surplus <= Some(pool.nr);
                let nodes = pool
                    .known()
                    .filter(is_whole)
                    .zip(shares)
                    .map(|(pool, shares)| split(pool, shares));
                // The server that asks for none has none.
                let none = huge_pages == HugePages::Off && landing == Some(Hugetlb);
                Server {
                    huge_pages,
                    sysv,
                    landing: if none { Some(Base) } else { landing },
                    size,
                    pool,
                    page_size: Some(page_size),
                    memory,
                    page_tables,
                    hugetlb,
                    limits,
                    nodes,
                    reserve_percent,
                    ..Server::default()
                }
            },
        )
}

/// Eight times the cases of other properties: 2048, unless `PROPTEST_CASES` is set.
fn config() -> ProptestConfig {
    let config = ProptestConfig::default();
    ProptestConfig {
        cases: config.cases * 8,
        failure_persistence: None,
        ..config
    }
}

proptest! {
    #![proptest_config(config())]

    /// All that must hold of any status, of one server and of one that asks for more.
    #[test]
    fn of_any_server(server in servers(), available in prop::option::of(0..256 * GIB), shmem in 0..64 * GIB,
                     sees_others: bool, more in 0..GIB) {
        let status = server.clone().status();
        never_recommends_more_than_the_host_holds(&status)?;
        recommends_what_is_needed_if_it_fits(&status)?;
        a_larger_segment_never_needs_less(&status, &Server { size: server.size + more, ..server.clone() }.status())?;
        an_outlook_of_huge_pages_is_guaranteed(&status)?;
        a_cause_where_and_only_where_it_is_not_in_huge_pages(&status)?;
        ok_means_as_requested_and_kept(&status)?;
        the_gravest_comes_first(&status)?;
        one_sentence_of_each(&status)?;
        // With free and available memory, shared memory in base pages, and with a view of others or without.
        let other = Server { available, shmem, sees_others, ..server }.status();
        all_findings_speak(&other)?;
        super::plan::check(&other);
    }

    /// The recommendation is true, and the least: with that pool the server lands, with one page less it does not.
    #[test]
    fn the_recommended_pool_is_just_enough(
        size in 1..64 * GIB,
        page_size in sizes_of_huge_pages(),
        [touched, promised, spare] in [0..2000u64, 0..2000, 0..2000],
    ) {
        let of = |nr: u64| Pool { page_size, ..pool(nr, nr.saturating_sub(touched), promised) };
        let with = |nr| Server { size, page_size: Some(page_size), pool: known(of(nr)), ..Server::in_base_pages() }.status();
        let to_land = with(touched + promised + spare).to_land.unwrap().0;
        prop_assert_eq!((with(to_land).missing, with(to_land).forecast.outlook), (Some(Pages(0)), Outlook::Hugetlb));
        prop_assert_eq!((with(to_land - 1).missing, with(to_land - 1).forecast.outlook), (Some(Pages(1)), Outlook::Base));
    }

    #[test]
    fn pages_hold_what_they_are_asked_to(size in sizes_of_huge_pages(), bytes in any::<u64>()) {
        let pages = size.pages_to_hold(Bytes(bytes));
        prop_assert!(size.times(pages) >= Bytes(bytes));
        prop_assert!(size.times(pages.saturating_sub(Pages(1))) < Bytes(bytes) || bytes == 0);
        prop_assert!(size.times(size.pages_within(Bytes(bytes))) <= Bytes(bytes));
    }
}

type Checked = Result<(), TestCaseError>;

fn never_recommends_more_than_the_host_holds(status: &Status) -> Checked {
    if let Some(recommended) = status.recommended {
        prop_assert!(recommended <= status.capacity.unwrap().most);
    }
    Ok(())
}

fn recommends_what_is_needed_if_it_fits(status: &Status) -> Checked {
    if let (Some(recommended), Some(needed)) = (status.recommended, status.crash.needed)
        && status.facts.requested.huge_pages != HugePages::Off
        && !status.does_not_fit()
    {
        prop_assert!(recommended >= needed);
        let pool = status.facts.pool_state.pool.known().unwrap();
        prop_assert_eq!(
            Some(recommended),
            status.to_land.map(|pages| pages.max(pool.persistent()))
        );
    }
    Ok(())
}

fn a_larger_segment_never_needs_less(status: &Status, larger: &Status) -> Checked {
    prop_assert!(larger.crash.needed >= status.crash.needed);
    // Who does not fit counts with what it has.
    prop_assert!(larger.does_not_fit() || larger.recommended >= status.recommended);
    if let (Some(larger), Some(missing)) = (larger.missing, status.missing) {
        prop_assert!(larger >= missing);
    }
    Ok(())
}

fn an_outlook_of_huge_pages_is_guaranteed(status: &Status) -> Checked {
    if status.forecast.outlook == Outlook::Hugetlb {
        let needed = status.crash.needed.unwrap();
        prop_assert!(status.share.unwrap().guaranteed >= needed);
        let limits = status.facts.pool_state.limits.as_ref().unwrap();
        prop_assert!(!limits.hidden_levels);
        let size = status.facts.pool_state.huge_page_size.unwrap();
        for limit in &limits.reservation {
            prop_assert!(limit.room_without(size.times(status.facts.own())) >= size.times(needed));
        }
        prop_assert!(
            !status.facts.requested.sysv && status.facts.requested.huge_pages != HugePages::Off
        );
    }
    Ok(())
}

fn a_cause_where_and_only_where_it_is_not_in_huge_pages(status: &Status) -> Checked {
    prop_assert_eq!(
        status.cause.is_none(),
        status.facts.landing() == Landing::Hugetlb
    );
    if status.facts.landing() == Landing::Hugetlb && status.crash.needed.is_some() {
        prop_assert_eq!(status.missing, Some(Pages(0)));
    }
    Ok(())
}

fn ok_means_as_requested_and_kept(status: &Status) -> Checked {
    if status.verdict().0 == Severity::Ok {
        prop_assert_eq!(status.facts.landing(), Landing::Hugetlb);
        prop_assert_eq!(status.forecast.outlook, Outlook::Hugetlb);
        prop_assert!(advice::hint(status).is_none());
        prop_assert_eq!(status.verdict().1, &Finding::AsRequested);
    }
    Ok(())
}

fn the_gravest_comes_first(status: &Status) -> Checked {
    prop_assert!(
        status
            .findings
            .iter()
            .map(|(severity, _)| *severity)
            .is_sorted_by(|a, b| a >= b)
    );
    Ok(())
}

fn one_sentence_of_each(status: &Status) -> Checked {
    for text in [Some(advice::message(status)), advice::hint(status)]
        .into_iter()
        .flatten()
    {
        prop_assert!(
            text.ends_with('.')
                && !text.replacen(". The number counts ", "", 1).contains(". ")
                && !text.contains("  "),
            "{}",
            text
        );
        prop_assert!(
            text.starts_with(|first: char| first.is_ascii_uppercase()),
            "{}",
            text
        );
    }
    Ok(())
}

/// Each finding has its own sentence, and a warning says what to do.
fn all_findings_speak(status: &Status) -> Checked {
    let texts = advice::findings(status);
    prop_assert_eq!(texts.len(), status.findings.len());
    for text in texts {
        prop_assert!(
            text.message.ends_with('.') && text.message.len() > 20,
            "{:?}",
            text
        );
        prop_assert!(
            text.severity < Severity::Warning || text.hint.is_some(),
            "{:?} {:?}",
            text,
            status
        );
    }
    Ok(())
}
