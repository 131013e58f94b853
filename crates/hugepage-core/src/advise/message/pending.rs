//! The sentences on a start with the configuration now on disk, where that is not the running one.

use crate::Pages;
use crate::advise::command;
use crate::assess::{Forecast, Outlook, Share, Status, pool_share};
use crate::model::{Cause, Pending, PoolFact, PoolState};

/// What is so; `None` where the outlook does not speak of another configuration.
pub fn message(status: &Status) -> Option<String> {
    if !status.of_pending {
        return None;
    }
    if let Pending::Refused(error) = &status.facts.pending {
        return Some(format!("With the configuration now on disk the next start would fail: {}.", reason(error)));
    }
    let lack = lack(&status.forecast);
    Some(match status.outlook {
        Outlook::Fails => {
            format!("With the configuration now on disk the next start would fail, because huge_pages = on and {lack}.")
        }
        Outlook::Unknown if status.facts.pending == Pending::Unknown => {
            "What the configuration now on disk comes to could not be found out; notes say why.".to_owned()
        }
        Outlook::Unknown => {
            format!("Whether a restart with the configuration now on disk gets huge pages is not certain: {lack}.")
        }
        _ => format!(
            "Shared memory ({}) is in huge pages, but a restart with the configuration now on disk would lose them: {lack}.",
            status.facts.segment_size().unwrap_or_default()
        ),
    })
}

/// The first thing that the server says in its error text, without the level in front.
fn reason(error: &str) -> &str {
    let line = error.lines().next().unwrap_or_default();
    ["LOG:  ", "ERROR:  ", "FATAL:  "].iter().find_map(|level| line.strip_prefix(level)).unwrap_or(line)
}

/// What to do about it.
pub fn hint(status: &Status) -> String {
    let keep = |setting: &str| format!("Set {setting} in the configuration, or leave the server running as it is.");
    match status.forecast.cause {
        Some(Cause::Disabled) => keep("huge_pages = try"),
        Some(Cause::SysvSharedMemory) => keep("shared_memory_type = mmap"),
        Some(Cause::PageSizeUnsupported) => keep("huge_page_size = 0"),
        Some(Cause::PoolEmpty | Cause::PoolTooSmall | Cause::PoolTaken) => pool(status).unwrap_or_else(|| {
            "The host cannot hold that many huge pages: hugepage_recommendations has the most that would fit."
                .to_owned()
        }),
        _ => "Call hugepage_preflight() for all that the server says.".to_owned(),
    }
}

/// The command for the pool, if it is one that the host can hold.
fn pool(status: &Status) -> Option<String> {
    let Pending::Changed(_, ground) = &status.facts.pending else { return None };
    if ground.huge_page_size == status.facts.huge_page_size {
        return (!status.does_not_fit()).then(|| set_pool(status, ground, status.to_land?)).flatten();
    }
    let pool = ground.pool.known()?;
    let wanted = Share::of(pool, Pages(0))?.others.saturating_add(status.forecast.needed?);
    let meminfo = status.facts.meminfo.as_ref()?;
    let elsewhere = meminfo.hugetlb?.saturating_sub(pool.page_size.times(pool.nr));
    let most = pool_share::capacity(meminfo.mem_total?, status.facts.reserve_percent, elsewhere, pool.page_size);
    (wanted <= most).then(|| set_pool(status, ground, wanted)).flatten()
}

fn set_pool(status: &Status, ground: &PoolState, pages: Pages) -> Option<String> {
    let size = ground.huge_page_size?;
    let default = status.facts.meminfo.as_ref().and_then(|meminfo| meminfo.huge_page_size);
    Some(format!("Run \"{}\".", command::set_pool(size, default == Some(size), pages)))
}

/// What a start lacks to be in huge pages, behind a colon or "because".
pub fn lack(forecast: &Forecast) -> String {
    let size = forecast.huge_page_size.map_or("unknown size".to_owned(), |size| size.to_string());
    let needed = forecast.needed.unwrap_or_default();
    let guaranteed = forecast.guaranteed.unwrap_or_default();
    match forecast.cause {
        None => "nothing is missing".to_owned(),
        Some(Cause::Disabled) => "huge_pages = off".to_owned(),
        Some(Cause::SysvSharedMemory) => "shared_memory_type = sysv can't have them".to_owned(),
        Some(Cause::PageSizeUnsupported) => format!("this machine has no huge pages of {size}"),
        Some(Cause::MemoryTarget) => "MEMORY_TARGET puts the SGA into files of /dev/shm".to_owned(),
        Some(Cause::ShmGroup) => "its owner is not in vm.hugetlb_shm_group".to_owned(),
        Some(Cause::MemlockLimit) => format!("{needed} pages of {size} are needed, more than may be locked"),
        Some(Cause::CgroupLimit) => {
            format!("{needed} pages of {size} are needed and a cgroup leaves room to reserve {guaranteed}")
        }
        Some(Cause::Unknown) => "it depends on what can't be seen from here".to_owned(),
        Some(Cause::PoolEmpty | Cause::PoolTooSmall | Cause::PoolTaken) => {
            format!("{needed} pages of {size} are needed and {guaranteed} are certain")
        }
    }
}

/// The error with which PostgreSQL would refuse to start for want of huge pages, as the kernel makes it say
/// (sysv_shmem.c); `None` where the lack is not one of memory.
pub fn refusal(ground: &PoolState, sysv: bool) -> Option<&'static str> {
    match (&ground.pool, sysv) {
        (_, true) => None,
        // mmap(2) knows no such page size.
        (PoolFact::Unsupported(..), _) => Some("could not map anonymous shared memory: Invalid argument"),
        _ => Some("could not map anonymous shared memory: Cannot allocate memory"),
    }
}
