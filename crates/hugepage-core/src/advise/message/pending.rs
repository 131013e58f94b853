//! The sentences on a start with the configuration on disk, if it differs from the running one.

use crate::Pages;
use crate::advise::command;
use crate::advise::message::reason::Shortfall;
use crate::assess::{Forecast, Outlook, Share, Status, pool_share};
use crate::model::{Cause, Pending, PoolFact, PoolState};

/// The state; `None` where the outlook is that of the running configuration.
pub fn message(status: &Status) -> Option<String> {
    if !status.of_pending {
        return None;
    }
    if let Pending::Refused(error) = &status.facts.pending {
        return Some(format!("The next start with the configuration on disk would fail: {}.", first_line(error)));
    }
    let shortfall = shortfall(status);
    Some(match status.outlook {
        Outlook::Fails => {
            format!("The next start with the configuration on disk would fail: huge_pages = on, and {shortfall}.")
        }
        Outlook::Unknown if status.facts.pending == Pending::Unknown => {
            "The demand of the configuration on disk could not be determined; see notes.".to_owned()
        }
        Outlook::Unknown => {
            format!("It is unknown whether a restart with the configuration on disk gets huge pages: {shortfall}.")
        }
        _ => format!(
            "Shared memory ({}) is in huge pages, but a restart with the configuration on disk would lose them: {shortfall}.",
            status.facts.segment_size().unwrap_or_default()
        ),
    })
}

fn shortfall(status: &Status) -> Shortfall<'_> {
    let Forecast { cause, huge_page_size, needed, guaranteed, .. } = status.forecast;
    let ground = match &status.facts.pending {
        Pending::Changed(_, ground) => Some(ground),
        _ => None,
    };
    Shortfall {
        cause,
        page_size: huge_page_size,
        needed: needed.unwrap_or_default(),
        guaranteed: guaranteed.unwrap_or_default(),
        pool: ground.map(|ground| &ground.pool),
        lock_limit: ground.and_then(|ground| ground.lock_limit),
        nodes: ground.and_then(|ground| ground.nodes.as_ref()),
    }
}

/// The first line of the server's error text, without its level.
fn first_line(error: &str) -> &str {
    let line = error.lines().next().unwrap_or_default();
    ["LOG:  ", "ERROR:  ", "FATAL:  "].iter().find_map(|level| line.strip_prefix(level)).unwrap_or(line)
}

/// What to do.
pub fn hint(status: &Status) -> String {
    let keep = |setting: &str| format!("Set {setting} in the configuration, or do not restart the server.");
    match status.forecast.cause {
        Some(Cause::Disabled) => keep("huge_pages = try"),
        Some(Cause::SysvSharedMemory) => keep("shared_memory_type = mmap"),
        Some(Cause::PageSizeUnsupported) => keep("huge_page_size = 0"),
        Some(Cause::PoolEmpty | Cause::PoolTooSmall | Cause::PoolTaken) => set_pool(status).unwrap_or_else(|| {
            "See hugepage_recommendations for the largest value that fits: this host cannot hold so many huge pages."
                .to_owned()
        }),
        Some(Cause::NodeLimit) => set_node_pool(status).unwrap_or_else(|| {
            "Let the server use more NUMA nodes (cpuset.mems, numactl) before it is restarted.".to_owned()
        }),
        _ => "Call hugepage_preflight() for the details.".to_owned(),
    }
}

/// The command for the pool, if the host can hold that.
fn set_pool(status: &Status) -> Option<String> {
    let Pending::Changed(_, ground) = &status.facts.pending else { return None };
    let size = ground.huge_page_size?;
    let pages = if ground.huge_page_size == status.facts.huge_page_size {
        status.to_land.filter(|_| !status.does_not_fit())?
    } else {
        let pool = ground.pool.known()?;
        let pages = Share::of(pool, Pages(0))?.others.saturating_add(status.forecast.needed?);
        let meminfo = status.facts.meminfo.as_ref()?;
        let elsewhere = meminfo.hugetlb?.saturating_sub(pool.page_size.times(pool.nr));
        let capacity =
            pool_share::capacity(meminfo.mem_total?, status.facts.reserve_percent, elsewhere, pool.page_size);
        (pages <= capacity).then_some(pages)?
    };
    Some(format!("Run \"{}\".", command::set_pool(size, status.facts.is_default(size), pages)))
}

/// The command for the pool of a node that the server may use, if that node can hold it.
fn set_node_pool(status: &Status) -> Option<String> {
    let Pending::Changed(_, ground) = &status.facts.pending else { return None };
    let (pool, nodes) = (ground.pool.known()?, ground.nodes.as_ref()?);
    let own = if ground.huge_page_size == status.facts.huge_page_size { status.own } else { Pages(0) };
    let target = nodes.target(pool, status.forecast.needed?, own, status.facts.reserve_percent)?;
    target.fits.then(|| format!("Run \"{}\".", command::set_node_pool(target.node, pool.page_size, target.pages)))
}

/// The error with which PostgreSQL refuses to start without huge pages, by the kernel's error code (sysv_shmem.c);
/// `None` with shared_memory_type = sysv.
pub fn refusal(ground: &PoolState, sysv: bool) -> Option<&'static str> {
    match (&ground.pool, sysv) {
        (_, true) => None,
        // mmap(2) knows no such page size.
        (PoolFact::Unsupported(..), _) => Some("could not map anonymous shared memory: Invalid argument"),
        _ => Some("could not map anonymous shared memory: Cannot allocate memory"),
    }
}
