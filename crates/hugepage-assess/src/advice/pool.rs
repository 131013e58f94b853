//! Recommendations on a pool, the same for one server and for a whole host.

use hugepage_kernel::{PageSize, Pages};

use crate::assessment::{Capacity, Status};

/// The name of a pool's setting.
pub fn setting(size: PageSize, is_default: bool) -> String {
    if is_default { "vm.nr_hugepages".to_owned() } else { format!("{}/nr_hugepages", size.sysfs_name()) }
}

/// A sentence on a pool of which `needed` pages suffice, as far as that is known.
pub fn waste(status: &Status, needed: Pages) -> String {
    let now = status.share.map(|share| share.persistent).unwrap_or_default();
    let Some(size) = status.facts.pool_state.huge_page_size else { return String::new() };
    let more = now.saturating_sub(needed);
    match status.facts.knows_all_needs() {
        true => format!(
            "The pool has {now} pages of {size}, the servers of this host need {needed}, and {} is unused.",
            size.times(more)
        ),
        false => format!(
            "The pool has {now} pages of {size}, this server and current users of the pool need {needed}, and whether other \
             servers or next starts need the other {more} is unknown."
        ),
    }
}

/// Behind "exceeds the": what the host can hold, and beside what.
pub fn held(capacity: Capacity) -> String {
    let most = capacity.most;
    match capacity.memory.available {
        Some(available) => format!("{most} that this host can hold: {available} of memory is available"),
        None => {
            format!("{most} that this host can hold with {}% of memory in base pages", capacity.memory.reserve_percent)
        }
    }
}

/// A clause on a pool that leaves less to base pages than `reserve_percent`; empty if it leaves enough.
pub fn caution(pages: Pages, size: PageSize, capacity: Option<Capacity>) -> String {
    match capacity.and_then(|capacity| capacity.leaves_less(pages, size)) {
        Some((left, percent)) => format!("; a pool of {pages} pages leaves {left} to base pages, less than {percent}%"),
        None => String::new(),
    }
}

/// A clause on a pool of `now` pages that should have `wanted`; `who` ends with its verb, `of_which` is about `needed`.
pub fn shortfall(
    who: &str,
    (needed, of_which): (Pages, &str),
    others: Pages,
    (now, wanted): (Pages, Pages),
    size: PageSize,
) -> String {
    let missing = wanted.saturating_sub(now);
    format!(
        "{who} {needed} pages of {size}{of_which}, other processes hold {others}, and the pool's {now} pages are {missing} too few"
    )
}
