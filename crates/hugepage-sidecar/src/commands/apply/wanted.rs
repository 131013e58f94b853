//! The number of pages: as given, or what the servers of this host need; and who has pages that are to go.

use anyhow::{anyhow, bail};
use hugepage_core::assess::Sizing;
use hugepage_core::read::Root;
use hugepage_core::{PageSize, Pages};

use crate::commands::size;
use crate::commands::status::{Accounts, Look};
use crate::state::DIRECTORY;

/// What the servers of this host, running or only configured, need of the pool of `size`; `None` if that is nobody's.
pub fn sizing(root: &Root, size: PageSize, reserve_percent: u32, accounts: &Accounts) -> Option<Sizing> {
    let look = Look { reserve_percent, state_dir: DIRECTORY.into(), accounts: accounts.clone() };
    size::of(root, &look, &[], false).sizings.into_iter().find(|sizing| sizing.page_size == size)
}

/// The recommended number, for a pool that keeps `now`. It never takes pages away: who is down for an hour would not
/// find them again.
pub fn recommended(sizing: Option<&Sizing>, size: PageSize, now: Pages) -> anyhow::Result<Pages> {
    let Some(sizing) = sizing else { bail!("nothing on this host needs huge pages of {size}") };
    if let Some(misfit) = sizing.misfits.first() {
        bail!(
            "{} needs {} pages of {size}, {} more than this host can hold beside all others: \"size\" tells who needs what; to \
             set the pool for the others, give --pages",
            misfit.name,
            misfit.pages,
            misfit.over
        );
    }
    let pages =
        sizing.recommended.ok_or_else(|| anyhow!("what servers need could not be found out: \"status\" tells why"))?;
    Ok(pages.max(now))
}

/// A sentence on who has pages of the pool; `None` if that is not known.
pub fn holders(sizing: Option<&Sizing>) -> Option<String> {
    let sizing = sizing?;
    let held = sizing.needs.iter().filter(|need| need.held > Pages(0));
    let mut holders: Vec<_> = held.map(|need| format!("{} has {}", need.name, need.held)).collect();
    if sizing.others > Pages(0) && !holders.is_empty() {
        holders.push(format!("others have {}", sizing.others));
    }
    (!holders.is_empty()).then(|| format!("Of these pages {}.", holders.join(", ")))
}

#[cfg(test)]
mod tests {
    use hugepage_core::Bytes;
    use hugepage_core::assess::host::{Need, Room};

    use super::*;

    const SIZE: PageSize = PageSize::from_kib(2048).unwrap();

    fn of(needs: &[(&str, u64, u64)], used: u64) -> Sizing {
        let needs = needs.iter().map(|(name, pages, held)| Need {
            name: (*name).to_owned(),
            pages: Pages(*pages),
            held: Pages(*held),
            is_running: true,
        });
        let room = Room { mem_total: Bytes(10 << 30), reserve_percent: 20, elsewhere: Bytes(0) };
        Sizing::of(SIZE, needs.collect(), Pages(used), Some(room))
    }

    #[test]
    fn what_is_recommended() {
        for (needs, used, now, recommended) in [
            (&[("a", 100, 0), ("b", 200, 200)][..], 200, 200, Some(300)),
            (&[("a", 100, 100)], 150, 150, Some(150)),
            // A pool that is larger than it need be stays.
            (&[("a", 100, 100)], 100, 500, Some(500)),
            (&[], 0, 0, Some(0)),
            // 8 GB are 4096 pages.
            (&[("a", 4000, 4000), ("b", 97, 0)], 4000, 4000, None),
        ] {
            let found = super::recommended(Some(&of(needs, used)), SIZE, Pages(now));
            assert_eq!(found.ok(), recommended.map(Pages), "{needs:?}");
        }
        assert!(super::recommended(None, SIZE, Pages(0)).is_err());
    }

    #[test]
    fn who_has_what() {
        let sizing = of(&[("a", 100, 60), ("b", 200, 0)], 70);
        assert_eq!(holders(Some(&sizing)).unwrap(), "Of these pages a has 60, others have 10.");
        assert_eq!(holders(Some(&of(&[], 70))), None);
    }
}
