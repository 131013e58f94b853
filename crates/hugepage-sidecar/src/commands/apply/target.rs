//! The size that a pool is to have: the recommended number of pages, and whether the change to a number is safe.

use std::path::PathBuf;

use anyhow::{Context, anyhow, bail};
use hugepage_assess::assessment::Capacity;
use hugepage_assess::assessment::capacity::{HostMemory, KEPT_AVAILABLE};
use hugepage_host::decide;

use hugepage_kernel::{Bytes, PageSize, Pages, Pool, Root};
use hugepage_sizing::Sizing;

use super::resize::Resize;
use crate::commands::size::sizing::HostSizing;
use crate::commands::survey::{self, AccountOptions, SurveyOptions};
use crate::output::{complain, escape};
use crate::server_program::asked;
use crate::state::DIRECTORY;

/// The needs of all servers of this host, running or stopped.
pub fn host(
    root: &Root,
    reserve_percent: u32,
    accounts: &AccountOptions,
    given: &[PathBuf],
) -> anyhow::Result<HostSizing> {
    let options = SurveyOptions {
        reserve_percent,
        state_dir: DIRECTORY.into(),
        accounts: accounts.clone(),
    };
    let snapshot = survey::snapshot(root, &options, asked(root), Some(given))?;
    Ok(HostSizing::new(decide(&snapshot, reserve_percent), true))
}

/// The recommended number, which never reduces the pool: a server that is stopped for an hour would not get its pages back.
pub fn recommended(sizing: Option<&Sizing>, size: PageSize) -> anyhow::Result<Pages> {
    let Some(sizing) = sizing else {
        bail!("no server on this host needs huge pages of {size}")
    };
    if let Some(misfit) = sizing.misfits.first() {
        bail!(
            "{} needs {} pages of {size}, {} more than this host can provide. Run \"size\" to see all needs; use --pages to \
             set the pool for the others",
            misfit.name,
            misfit.pages,
            misfit.over
        );
    }
    let pages = sizing.recommended.ok_or_else(|| {
        anyhow!("the need of an instance is unknown: run \"status\" for the reason")
    })?;
    let strangers = &sizing.strangers;
    if strangers.pages > Pages(0) {
        let with = pages.max(sizing.total.saturating_add(strangers.pages));
        let remedy = match strangers.removal() {
            Some(removal) => format!("To free them {removal}."),
            None => format!(
                "With them it is --pages {with}; --service-account USER counts those of a user."
            ),
        };
        complain!(
            "hugepage-sidecar: {} pages are not counted, because {} holds them. {remedy}",
            strangers.pages,
            strangers.holder()
        );
    }
    Ok(pages)
}

/// A line for each server that lacks pages: for whom the pool grows.
pub fn lacking(sizing: &Sizing) -> Vec<String> {
    let lacking = sizing.needs.iter().filter(|need| need.pages > need.held);
    lacking
        .map(|need| {
            let missing = need.pages.saturating_sub(need.held);
            format!(
                "{missing} pages are missing for {}.",
                escape::line(&need.name)
            )
        })
        .collect()
}

/// The pool and the memory of the host.
#[derive(Clone, Debug)]
pub struct HostState {
    /// The pool to change.
    pub pool: Pool,
    /// The memory. Its servers run on, so nothing of theirs moves.
    pub memory: HostMemory,
    /// `MemAvailable`, or the smaller `MemFree` on a kernel without it.
    pub available: Bytes,
}

impl HostState {
    /// The memory that must remain available.
    pub fn min_available(&self) -> Bytes {
        self.memory.mem_total.percent(KEPT_AVAILABLE)
    }

    /// The change to a pool of `requested` pages. The error is why it is refused.
    pub fn plan(&self, requested: Pages) -> anyhow::Result<Resize> {
        let from = self.pool.persistent();
        // Surplus pages become persistent first and need no memory.
        let new_pages = requested.saturating_sub(self.pool.nr);
        if requested > from {
            self.check_growth(requested, new_pages, self.pool.page_size)?;
        } else if requested < from {
            self.check_reduction(requested, from)?;
        }
        Ok(Resize {
            size: self.pool.page_size,
            from,
            to: requested,
        })
    }

    fn check_growth(
        &self,
        requested: Pages,
        new_pages: Pages,
        size: PageSize,
    ) -> anyhow::Result<()> {
        let min_available = self.min_available();
        let memory = HostMemory {
            available: Some(self.available.max(min_available)),
            ..self.memory
        };
        let HostMemory {
            mem_total,
            elsewhere,
            reserve_percent,
            commit_left,
            ..
        } = memory;
        let Capacity {
            within_reserve,
            now,
            ..
        } = Capacity::of_pool(&memory, &self.pool);
        // The pool keeps what it has, surplus pages as well: that takes no memory.
        let allowed = within_reserve.max(self.pool.nr);
        let maximum = allowed.min(now);
        if requested > allowed {
            let others = match elsewhere {
                Bytes(0) => String::new(),
                elsewhere => format!(", {elsewhere} are in huge pages of other sizes"),
            };
            bail!(
                "{requested} huge pages of {size} ({}) do not fit: {reserve_percent}% of {mem_total} stay for base \
                 pages{others}; at most {maximum} fit; --reserve-percent allows more",
                size.times(requested)
            );
        }
        if let Some(left) = commit_left.filter(|left| size.times(new_pages) > *left) {
            bail!(
                "{new_pages} more huge pages of {size} may take {} of what processes can be promised, and {left} are left \
                 (vm.overcommit_memory is 2): stop the servers that are to use them first",
                size.times(new_pages)
            );
        }
        if new_pages > Pages(0) && requested > now {
            bail!(
                "{new_pages} more huge pages of {size} need {}: only {} are available without swapping, and {min_available} \
                 must remain; at most {maximum} pages fit now",
                size.times(new_pages),
                self.available
            );
        }
        Ok(())
    }

    fn check_reduction(&self, requested: Pages, from: Pages) -> anyhow::Result<()> {
        let in_use = self.pool.in_use().context(
            "this kernel does not report reserved huge pages, so the pool cannot be reduced safely",
        )?;
        let minimum = in_use.min(from);
        if requested >= minimum {
            return Ok(());
        }
        let surplus = match self.pool.surplus {
            None | Some(Pages(0)) => String::new(),
            Some(surplus) => format!(" ({surplus} of the pool's pages are surplus)"),
        };
        bail!(
            "{in_use} huge pages of {} are in use or reserved{surplus}: with {requested} their users would lose them at their \
             next start; the pool can be reduced to {minimum}",
            self.pool.page_size
        )
    }
}

#[cfg(test)]
mod tests {
    use hugepage_assess::model::PagesOfStrangers;
    use hugepage_sizing::PoolNeed;

    use super::*;

    const SIZE: PageSize = PageSize::new(2 << 20).unwrap();

    fn sized(needs: &[(&str, u64, u64)], used: u64, now: u64, strangers: u64) -> Sizing {
        let needs = needs.iter().map(|(name, pages, held)| PoolNeed {
            name: (*name).to_owned(),
            pages: Pages(*pages),
            held: Pages(*held),
            running: Pages(*pages),
            is_running: true,
            ..PoolNeed::default()
        });
        let (mem_total, elsewhere) = (Bytes(10 << 30), Bytes(0));
        let memory = HostMemory {
            mem_total,
            available: None,
            movable: Bytes(0),
            reserve_percent: 20,
            commit_left: None,
            elsewhere,
        };
        let pool = Pool {
            page_size: SIZE,
            nr: Pages(now),
            free: Pages(now - used),
            resv: Some(Pages(0)),
            surplus: Some(Pages(0)),
            overcommit: None,
        };
        let capacity = Capacity::of_pool(&memory, &pool);
        let strangers = PagesOfStrangers {
            pages: Pages(strangers),
            largest: None,
            ..PagesOfStrangers::default()
        };
        Sizing::new(&pool, needs.collect(), strangers, Some(capacity))
    }

    #[test]
    fn recommend_the_need() {
        for (needs, used, now, recommended) in [
            (&[("a", 100, 0), ("b", 200, 200)][..], 200, 200, Some(300)),
            (&[("a", 100, 100)], 150, 150, Some(150)),
            // A pool that is too large is not reduced.
            (&[("a", 100, 100)], 100, 500, Some(500)),
            (&[], 0, 0, Some(0)),
            // 8 GB are 4096 pages.
            (&[("a", 4000, 4000), ("b", 97, 0)], 4000, 4000, None),
        ] {
            let found = super::recommended(Some(&sized(needs, used, now, 0)), SIZE);
            assert_eq!(found.ok(), recommended.map(Pages), "{needs:?}");
        }
        assert!(super::recommended(None, SIZE).is_err());
    }

    /// Five runs beside a thief who takes every free page: after the first nothing changes.
    #[test]
    fn pages_of_strangers_are_no_ratchet() {
        let (mut pool, mut pools) = (40, Vec::new());
        for _ in 0..5 {
            // The thief has all; a process of root's has 10 of them.
            let sizing = sized(&[("a", 100, 0)], pool, pool, pool - 10);
            let Pages(new) = super::recommended(Some(&sizing), SIZE).unwrap();
            pool = new;
            pools.push(new);
        }
        assert_eq!(pools, [110; 5]);
    }

    #[test]
    fn name_who_lacks_pages() {
        let sizing = sized(
            &[("a", 100, 60), ("b", 200, 200), ("c\n", 5, 0)],
            260,
            260,
            0,
        );
        let [of_a, of_c] = &super::lacking(&sizing)[..] else {
            panic!("two servers lack pages")
        };
        assert_eq!(of_a, "40 pages are missing for a.");
        assert!(
            of_c.starts_with("5 pages are missing for c") && !of_c.contains('\n'),
            "{of_c:?}"
        );
    }

    const GIB: u64 = 1 << 30;

    /// `nr free resv surplus`, in pages of 2 MB, on a host of 48 GB with 40 GB available.
    fn state(pool: [u64; 4]) -> HostState {
        let [nr, free, resv, surplus] = pool.map(Pages);
        HostState {
            pool: Pool {
                page_size: PageSize::from_kib(2048).unwrap(),
                nr,
                free,
                resv: Some(resv),
                surplus: Some(surplus),
                overcommit: Some(Pages(0)),
            },
            memory: HostMemory {
                mem_total: Bytes(48 * GIB),
                available: None,
                movable: Bytes(0),
                reserve_percent: 20,
                commit_left: None,
                elsewhere: Bytes(0),
            },
            available: Bytes(40 * GIB),
        }
    }

    /// What the refusal of `requested` pages says.
    fn refused(state: &HostState, requested: u64) -> String {
        state.plan(Pages(requested)).unwrap_err().to_string()
    }

    #[test]
    fn what_processes_were_promised_stays() {
        let mut state = state([100, 0, 0, 0]);
        state.memory.commit_left = Some(Bytes(GIB));
        assert!(state.plan(Pages(612)).is_ok());
        let refusal = refused(&state, 613);
        assert!(
            refusal.starts_with("513 more huge pages of 2 MB may take 1026 MB of what"),
            "{refusal}"
        );
    }

    #[test]
    fn accept_safe_changes() {
        for (pool, requested, from) in [
            ([0, 0, 0, 0], 0, 0),
            ([0, 0, 0, 0], 1000, 0),
            ([0, 0, 0, 0], 19660, 0),
            ([500, 500, 0, 0], 1000, 500),
            ([500, 500, 0, 0], 0, 500),
            // 300 in use, 100 reserved: 400 is the minimum.
            ([500, 200, 100, 0], 400, 500),
            // 20 of 100 are surplus: they become persistent first and need no memory.
            ([100, 0, 0, 20], 90, 80),
            ([100, 0, 0, 20], 100, 80),
            ([100, 0, 0, 20], 130, 80),
            ([100, 0, 0, 20], 80, 80),
            ([100, 60, 0, 20], 50, 80),
            // All surplus and in use: keeping them takes no memory, however many they are.
            ([22000, 0, 0, 22000], 22000, 0),
            // A pool that is too large already may get smaller, and stay too large.
            ([22000, 22000, 0, 0], 21000, 22000),
        ] {
            let expected = Resize {
                size: SIZE,
                from: Pages(from),
                to: Pages(requested),
            };
            assert_eq!(
                state(pool).plan(Pages(requested)).unwrap(),
                expected,
                "{pool:?} {requested}"
            );
        }
    }

    #[test]
    fn refuse_and_name_the_bound() {
        for (pool, requested, maximum) in [
            // 36569 pages are 71 GB.
            ([0, 0, 0, 0], 36569, 19660),
            ([0, 0, 0, 0], u64::MAX, 19660),
            ([0, 0, 0, 0], 19661, 19660),
            ([22000, 22000, 0, 0], 22001, 22000),
        ] {
            let refusal = refused(&state(pool), requested);
            assert!(
                refusal.contains(&format!(" stay for base pages; at most {maximum} fit;")),
                "{pool:?} {refusal}"
            );
        }
        for (pool, requested, lowest) in [
            ([500, 200, 100, 0], 399, 400),
            ([500, 0, 0, 0], 0, 500),
            // All 100 are in use, 20 of them surplus: none may be removed.
            ([100, 0, 0, 20], 79, 80),
            ([100, 60, 0, 20], 39, 40),
        ] {
            let refusal = refused(&state(pool), requested);
            assert!(
                refusal.ends_with(&format!("can be reduced to {lowest}")),
                "{refusal}"
            );
        }
    }

    #[test]
    fn refuse_memory_in_use() {
        let busy = |pool| HostState {
            available: Bytes(3 * GIB),
            ..state(pool)
        };
        // 2% of 48 GB stay: 983 MB of 3 GB, which leaves 2088 MB.
        assert!(busy([100, 0, 0, 0]).plan(Pages(1144)).is_ok());
        let refusal = refused(&busy([100, 0, 0, 0]), 1145);
        assert!(
            refusal.starts_with("1045 more huge pages")
                && refusal.ends_with("at most 1144 pages fit now"),
            "{refusal}"
        );
        // A change that allocates nothing needs no available memory.
        let full = HostState {
            available: Bytes(0),
            ..state([100, 0, 0, 20])
        };
        assert!(full.plan(Pages(100)).is_ok());
        assert!(full.plan(Pages(101)).is_err());
    }

    #[test]
    fn name_what_fits_now() {
        // 2088 MB beyond what stays available.
        let busy = || HostState {
            available: Bytes(3 * GIB),
            ..state([0, 0, 0, 0])
        };
        let assert_at_most = |state: &HostState, maximum: u64| {
            let refusal = refused(state, 19_000);
            assert!(
                refusal.contains(&format!("at most {maximum} ")),
                "{refusal}"
            );
        };
        assert_at_most(&busy(), 1044);
        assert!(busy().plan(Pages(1060)).is_err());
    }

    #[test]
    fn count_pools_of_other_sizes() {
        let mut beside = state([0, 0, 0, 0]);
        beside.memory.elsewhere = Bytes(30 * GIB);
        assert!(beside.plan(Pages(4300)).is_ok());
        let refusal = refused(&beside, 5000);
        assert_eq!(
            refusal,
            "5000 huge pages of 2 MB (10000 MB) do not fit: 20% of 48 GB stay for base pages, 30 GB are in huge pages of other \
             sizes; at most 4300 fit; --reserve-percent allows more"
        );
        let unknown = Pool {
            resv: None,
            ..state([10, 10, 0, 0]).pool
        };
        let refusal = refused(
            &HostState {
                pool: unknown,
                ..state([0; 4])
            },
            5,
        );
        assert!(
            refusal.starts_with("this kernel does not report reserved"),
            "{refusal}"
        );
    }
}
