//! Recommendations on a pool, the same for one server and for a whole host.

use hugepage_kernel::next_boot::PoolAtBoot;
use hugepage_kernel::{PageSize, Pages};

use crate::assessment::{Capacity, Status};

/// The name of a pool's setting.
pub fn setting(size: PageSize, is_default: bool) -> String {
    if is_default {
        "vm.nr_hugepages".to_owned()
    } else {
        format!("{}/nr_hugepages", size.sysfs_name())
    }
}

/// A sentence on a pool of which `needed` pages suffice, as far as that is known.
pub fn waste(status: &Status, needed: Pages) -> String {
    let now = status
        .share
        .map(|share| share.persistent)
        .unwrap_or_default();
    let Some(size) = status.facts.pool_state.huge_page_size else {
        return String::new();
    };
    let more = now.saturating_sub(needed);
    let beside = status.facts.meminfo.beside(size.times(more));
    let (whose, unless) = match status.facts.knows_all_needs() {
        true => ("the servers of this host", ""),
        false => (
            "this server and current users of the pool",
            "; whether other servers or next starts need it is unknown",
        ),
    };
    let unused = size.times(more);
    format!(
        "The pool has {now} pages of {size}, {whose} need {needed}, and {unused} is unused{unless}.{beside}"
    )
}

/// Why the command that sets a pool may have failed already: what sets it at boot asks for more pages than the `now` that it has.
pub fn given_fewer(at_boot: &PoolAtBoot, now: Pages) -> Option<String> {
    match at_boot {
        PoolAtBoot::Set(pages, file) if *pages > now => Some(format!(
            "{file} asks for {pages} pages, and the pool has {now}: memory may be too fragmented."
        )),
        _ => None,
    }
}

/// A text with the command that makes memory for the pages first; `None` if it has no command that sets the default pool.
pub fn retried(text: &str) -> Option<String> {
    const SET_POOL: &str = "sysctl -w vm.nr_hugepages=";
    text.contains(SET_POOL)
        .then(|| text.replace(SET_POOL, "hugepage-sidecar apply --pages "))
}

/// A hint, which makes memory for the pages first where the pool was `given_fewer` than asked for, and says why.
pub fn hint(hint: String, given_fewer: Option<String>) -> String {
    let retried = given_fewer.and_then(|why| Some(format!("{} {why}", retried(&hint)?)));
    retried.unwrap_or(hint)
}

/// Behind "exceeds the": what the host can hold, and beside what.
pub fn held(capacity: Capacity) -> String {
    let most = capacity.most;
    match capacity.memory.available {
        Some(available) => {
            format!("{most} that this host can hold: {available} of memory is available")
        }
        None => {
            format!(
                "{most} that this host can hold with {}% of memory in base pages",
                capacity.memory.reserve_percent
            )
        }
    }
}

/// A clause on a pool that leaves less to base pages than `reserve_percent`; empty if it leaves enough.
pub fn caution(pages: Pages, size: PageSize, capacity: Option<Capacity>) -> String {
    match capacity.and_then(|capacity| capacity.leaves_less(pages, size)) {
        Some((left, percent)) => {
            format!("; a pool of {pages} pages leaves {left} to base pages, less than {percent}%")
        }
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
