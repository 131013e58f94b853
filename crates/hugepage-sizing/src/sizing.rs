//! The pool that a whole host needs: what every server needs, what other processes hold, and what the host can hold.

use hugepage_assess::assessment::Capacity;
use hugepage_assess::model::PagesOfStrangers;
use hugepage_kernel::memory::pool::Pool;
use hugepage_kernel::{Bytes, PageSize, Pages};
use serde::Serialize;

/// What one server needs of a pool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PoolNeed {
    /// The name of the server.
    #[serde(rename = "instance")]
    pub name: String,
    /// Whether it runs.
    pub is_running: bool,
    /// The pages that it needs.
    #[serde(rename = "pages_needed")]
    pub pages: Pages,
    /// The pages that it needs with its running settings, whatever is on disk; zero if it does not run.
    #[serde(skip)]
    pub running: Pages,
    /// The needed pages that it has now.
    #[serde(rename = "pages_held")]
    pub held: Pages,
    /// The memory in base pages that it leaves for them.
    #[serde(skip)]
    pub movable: Bytes,
}

/// A server that does not fit into the host's memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Misfit {
    /// The name of the server.
    #[serde(rename = "instance")]
    pub name: String,
    /// What it needs.
    #[serde(rename = "pages_needed")]
    pub pages: Pages,
    /// The pages that are missing for it, after all servers that fit.
    #[serde(rename = "pages_over")]
    pub over: Pages,
    /// What it counts with: what it runs with, or has.
    #[serde(skip)]
    pub counted: Pages,
}

/// One pool of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sizing {
    /// The size of its pages.
    pub page_size: PageSize,
    /// Every server that needs pages of it.
    pub needs: Vec<PoolNeed>,
    /// Pages held by processes that belong to none of these servers.
    pub others: Pages,
    /// Those of them that do not count.
    pub strangers: PagesOfStrangers,
    /// All needed pages together, whether they fit or not.
    pub total: Pages,
    /// What the host can hold; `None` if its memory could not be read.
    pub capacity: Option<Capacity>,
    /// The pool for all that fits, as [`Capacity::recommended`] defines it; `None` without a capacity: the host may not hold it.
    pub recommended: Option<Pages>,
    /// The servers that do not fit.
    pub misfits: Vec<Misfit>,
    /// The memory that remains for base pages beside this pool and the pools of other sizes.
    pub remains: Option<Bytes>,
}

impl Sizing {
    /// The sizing of one page size.
    pub fn of_size(sizings: &[Self], size: PageSize) -> Option<&Self> {
        sizings.iter().find(|sizing| sizing.page_size == size)
    }

    /// What all servers count with together.
    pub fn fitting(&self) -> Pages {
        self.needs.iter().fold(Pages(0), |sum, need| sum.saturating_add(self.counted(need)))
    }

    /// What one of them counts with.
    pub fn counted(&self, need: &PoolNeed) -> Pages {
        let misfit = self.misfits.iter().find(|misfit| (&misfit.name, misfit.pages) == (&need.name, need.pages));
        misfit.map_or(need.pages.max(need.held), |misfit| misfit.counted)
    }

    /// The pages of others that count.
    pub fn counted_others(&self) -> Pages {
        self.others.saturating_sub(self.strangers.pages)
    }

    /// The sizing of `pool`, without pages of `strangers`. Who has its pages keeps them; of the others those that
    /// run come before those that do not, and small before large, so that as many as possible fit. A server that does not fit
    /// counts with what it runs with.
    pub fn new(
        pool_now: &Pool,
        mut needs: Vec<PoolNeed>,
        strangers: PagesOfStrangers,
        capacity: Option<Capacity>,
    ) -> Self {
        let page_size = pool_now.page_size;
        // Where reservations are unknown, what was touched.
        let used = pool_now.in_use().unwrap_or(pool_now.nr.saturating_sub(pool_now.free));
        needs.retain(|need| need.pages > Pages(0));
        let held = needs.iter().fold(Pages(0), |sum, need| sum.saturating_add(need.held));
        let others = used.saturating_sub(held);
        let counted = others.saturating_sub(strangers.pages);
        let total = needs.iter().fold(counted, |sum, need| sum.saturating_add(need.pages.max(need.held)));
        let most = capacity.map_or(Pages(u64::MAX), |capacity| capacity.most);
        let mut order: Vec<&PoolNeed> = needs.iter().collect();
        order.sort_by_key(|need| (need.held < need.pages, !need.is_running, need.pages));
        let (mut pool, mut misfits) = (counted.saturating_add(held), Vec::new());
        for need in order {
            let beside = pool.saturating_sub(need.held);
            let over = |pages: Pages| beside.saturating_add(pages.max(need.held)).saturating_sub(most);
            let mut fits = [need.pages, need.running].into_iter().filter(|pages| over(*pages) == Pages(0));
            let counted = fits.next().unwrap_or_default().max(need.held);
            if counted < need.pages {
                misfits.push(Misfit { name: need.name.clone(), pages: need.pages, over: over(need.pages), counted });
            }
            pool = beside.saturating_add(counted);
        }
        let recommended = capacity.map(|capacity| capacity.recommended(pool, pool_now, strangers.pages));
        let beside = |Capacity { memory, .. }: Capacity| memory.mem_total.saturating_sub(memory.elsewhere);
        let remains = capacity.map(beside).zip(recommended);
        let remains = remains.map(|(memory, pages)| memory.saturating_sub(page_size.times(pages)));
        Self { page_size, needs, others, strangers, total, capacity, recommended, misfits, remains }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use hugepage_assess::assessment::capacity::HostMemory;

    const GB: u64 = 1 << 30;

    fn need(name: &str, pages: u64, held: u64, is_running: bool) -> PoolNeed {
        let running = if is_running { Pages(pages) } else { Pages(0) };
        PoolNeed {
            name: name.to_owned(),
            pages: Pages(pages),
            running,
            held: Pages(held),
            movable: Bytes(0),
            is_running,
        }
    }

    /// Nothing is known of what is available: 20% stay for base pages, beside a pool of `held` pages, all of them in use.
    fn room(gb: u64, held: u64) -> Option<Capacity> {
        let (mem_total, elsewhere) = (Bytes(gb * GB), Bytes(0));
        let memory = HostMemory {
            mem_total,
            available: None,
            movable: Bytes(0),
            reserve_percent: 20,
            commit_left: None,
            elsewhere,
        };
        Some(Capacity::of_pool(&memory, &full(held)))
    }

    /// A pool whose pages are all in use.
    fn full(held: u64) -> Pool {
        Pool {
            page_size: huge(),
            nr: Pages(held),
            free: Pages(0),
            resv: Some(Pages(0)),
            surplus: Some(Pages(0)),
            overcommit: None,
        }
    }

    fn huge() -> PageSize {
        PageSize::from_kib(2048).unwrap()
    }

    /// The host of the seed: a pool of 9216 pages, one instance in huge pages as a whole, one in part, one not at all.
    #[test]
    fn a_farm() {
        let needs = vec![need("FULL", 537, 537, true), need("MIXED", 2001, 2000, true), need("EMPTY", 267, 0, true)];
        let sizing = Sizing::new(&full(9216), needs, PagesOfStrangers::default(), room(48, 9216));
        assert_eq!((sizing.others, sizing.total, sizing.recommended), (Pages(6679), Pages(9484), Some(Pages(9484))));
        assert!(sizing.misfits.is_empty());
        assert_eq!((sizing.fitting(), sizing.counted_others()), (Pages(2805), Pages(6679)));
        assert_eq!(sizing.remains, Some(Bytes(48 * GB - (9484 << 21))));
    }

    /// The seed's host of 48 GB, for which hugepages_settings.sh had printed 36569 pages, which are 71 GB.
    #[test]
    fn more_than_the_host_has() {
        let needs = vec![need("A", 4096, 4096, true), need("B", 32473, 0, true), need("C", 100, 0, false)];
        let sizing = Sizing::new(&full(4096), needs, PagesOfStrangers::default(), room(48, 4096));
        assert_eq!((sizing.total, sizing.capacity.unwrap().most), (Pages(36669), Pages(19660)));
        assert_eq!(sizing.recommended, Some(Pages(4196)));
        assert_eq!(
            sizing.misfits,
            [Misfit { name: "B".into(), pages: Pages(32473), over: Pages(16909), counted: Pages(0) }]
        );
        assert_eq!(
            Sizing::new(&full(0), vec![need("A", 1, 0, true)], PagesOfStrangers::default(), None).recommended,
            None
        );
    }

    #[test]
    fn of_one_size() {
        let strangers = PagesOfStrangers { pages: Pages(30), largest: None };
        let sizing = Sizing::new(&full(100), vec![need("A", 339, 0, true)], strangers, room(1, 100));
        assert_eq!((sizing.counted_others(), sizing.recommended), (Pages(70), Some(Pages(409))));
        let gigantic = Sizing { page_size: PageSize::from_kib(1 << 20).unwrap(), ..sizing.clone() };
        let sizings = [gigantic, sizing.clone()];
        assert_eq!(Sizing::of_size(&sizings, huge()), Some(&sizing));
        assert_eq!(Sizing::of_size(&sizings[..1], huge()), None);
    }

    /// A running server whose configuration on disk the host cannot hold still has its need, and nobody's pages are taken.
    #[test]
    fn what_runs_is_needed_whatever_is_on_disk() {
        let needs = vec![PoolNeed { running: Pages(140), ..need("A", 15_360, 0, true) }];
        let pool = Pool { free: Pages(100), ..full(100) };
        let sizing = Sizing::new(&pool, needs, PagesOfStrangers::default(), room(24, 100));
        assert_eq!((sizing.recommended, sizing.misfits.len()), (Some(Pages(140)), 1));
        // Whoever needs the others is not known.
        let sizing = Sizing::new(
            &Pool { free: Pages(60), ..full(200) },
            vec![need("A", 140, 140, true)],
            PagesOfStrangers::default(),
            room(24, 200),
        );
        assert_eq!(sizing.recommended, Some(Pages(200)));
    }

    proptest! {
        #[test]
        fn never_more_than_the_host_holds_and_never_less_than_those_that_fit(
            pages in proptest::collection::vec((0u64..10_000, 0u64..10_000, any::<bool>()), 0..8),
            beside in 0u64..5_000,
            memory in 1u64..64,
        ) {
            let needs: Vec<_> =
                pages.iter().map(|&(pages, held, running)| need(&format!("{pages}"), pages, held.min(pages), running)).collect();
            let held: u64 = needs.iter().map(|need| need.held.0).sum();
            let sizing = Sizing::new(&full(held + beside), needs.clone(), PagesOfStrangers::default(), room(memory, held + beside));
            let recommended = sizing.recommended.unwrap();
            prop_assert!(recommended <= sizing.capacity.unwrap().most && recommended >= Pages(held + beside));
            let misfits: u64 = sizing.misfits.iter().map(|misfit| misfit.pages.0).sum();
            let all: u64 = needs.iter().map(|need| need.pages.0).sum();
            prop_assert_eq!(sizing.total.0, all + beside);
            prop_assert!(recommended.0 >= all - misfits + beside);
            prop_assert!(sizing.misfits.iter().all(|misfit| misfit.over > Pages(0)));
        }
    }
}
