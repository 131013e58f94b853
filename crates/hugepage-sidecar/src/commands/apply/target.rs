//! The recommended number of pages.

use anyhow::{anyhow, bail};
use hugepage_kernel::{PageSize, Pages, Root};
use hugepage_sizing::Sizing;

use crate::commands::size::sizing::HostSizing;
use crate::commands::survey::{self, AccountOptions, SurveyOptions};
use crate::output::escape;
use crate::output::stream::complain;
use crate::server_program::asked_starts::asking;
use crate::state::DIRECTORY;

/// The needs of all servers of this host, running or stopped.
pub fn host(root: &Root, reserve_percent: u32, accounts: &AccountOptions) -> anyhow::Result<HostSizing> {
    let options = SurveyOptions { reserve_percent, state_dir: DIRECTORY.into(), accounts: accounts.clone() };
    let snapshot = asking(root, |ask| {
        let mut snapshot = survey::snapshot(root, &options, ask)?;
        snapshot.find_stopped_clusters(root, &[], ask);
        anyhow::Ok(snapshot)
    })?;
    Ok(HostSizing::new(snapshot.assess(reserve_percent), true))
}

/// The recommended number, which never reduces the pool: a server that is stopped for an hour would not get its pages back.
pub fn recommended(sizing: Option<&Sizing>, size: PageSize) -> anyhow::Result<Pages> {
    let Some(sizing) = sizing else { bail!("no server on this host needs huge pages of {size}") };
    if let Some(misfit) = sizing.misfits.first() {
        bail!(
            "{} needs {} pages of {size}, {} more than this host can provide. Run \"size\" to see all needs; use --pages to \
             set the pool for the others",
            misfit.name,
            misfit.pages,
            misfit.over
        );
    }
    let pages = sizing
        .recommended
        .ok_or_else(|| anyhow!("the need of an instance is unknown: run \"status\" for the reason"))?;
    let strangers = &sizing.strangers;
    if strangers.pages > Pages(0) {
        let with = pages.max(sizing.total.saturating_add(strangers.pages));
        complain!(
            "hugepage-sidecar: {} pages are not counted, because {} holds them. With them it is --pages {with}; --service-account USER counts those of a user.",
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
            format!("{missing} pages are missing for {}.", escape::line(&need.name))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use hugepage_assess::assessment::Capacity;
    use hugepage_assess::assessment::capacity::HostMemory;
    use hugepage_assess::model::PagesOfStrangers;
    use hugepage_kernel::Bytes;
    use hugepage_kernel::memory::pool::Pool;
    use hugepage_sizing::PoolNeed;

    use super::*;

    const SIZE: PageSize = PageSize::from_kib(2048).unwrap();

    fn sized(needs: &[(&str, u64, u64)], used: u64, now: u64, strangers: u64) -> Sizing {
        let needs = needs.iter().map(|(name, pages, held)| PoolNeed {
            name: (*name).to_owned(),
            pages: Pages(*pages),
            held: Pages(*held),
            running: Pages(*pages),
            movable: Bytes(0),
            is_running: true,
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
        let strangers = PagesOfStrangers { pages: Pages(strangers), largest: None };
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
        let sizing = sized(&[("a", 100, 60), ("b", 200, 200), ("c\n", 5, 0)], 260, 260, 0);
        let [of_a, of_c] = &super::lacking(&sizing)[..] else { panic!("two servers lack pages") };
        assert_eq!(of_a, "40 pages are missing for a.");
        assert!(of_c.starts_with("5 pages are missing for c") && !of_c.contains('\n'), "{of_c:?}");
    }
}
