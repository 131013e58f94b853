//! What nobody who counts has of the pools: decided from what was read of processes and of System V segments.

use std::collections::BTreeMap;

use hugepage_assess::model::{PagesOfStrangers, UnattachedSegment};
use hugepage_facts::{HostFacts, OtherProcesses, escape, pools};
use hugepage_kernel::memory::sysvipc::SysvSegment;
use hugepage_kernel::{PageSize, Pages, Pool};

use crate::server::Server;

/// So many segments are named, the largest ones.
const MAX_SEGMENTS: usize = 10;

/// What strangers have of each pool.
pub(super) fn strangers(
    host: &HostFacts,
    servers: &[Server<'_>],
) -> BTreeMap<PageSize, PagesOfStrangers> {
    // What cannot be seen may be a service account's. What was not read in time may be anybody's, who would raise the need by that.
    let mut all = servers.iter();
    let sees_all = host.shows_all && all.all(|server| server.alone.segment.is_some());
    let unattached = unattached(host, sees_all);
    let of_size = |pool: &Pool| {
        let is_default = host.default_page_size() == Some(pool.page_size);
        let unattached = unattached.iter().filter(|_| is_default).cloned();
        of_pool(pool, host, servers, sees_all, unattached.collect())
    };
    pools::of_host(&host.pools)
        .map(|row| (row.pool.page_size, of_size(&row.pool)))
        .collect()
}

/// The System V segments of at least a page of the default size that no process has attached, the largest first.
fn unattached(host: &HostFacts, sees_all: bool) -> Vec<UnattachedSegment> {
    let Some(size) = host.default_page_size() else {
        return Vec::new();
    };
    let OtherProcesses {
        names,
        users_of_oracle,
        ..
    } = &host.others;
    let name = |uid: u32| names.get(&uid).cloned().unwrap_or(format!("uid {uid}"));
    // A tree has the owners of whoever made it, so there it is the account that manuals name.
    let is_oracle = |uid: u32| match host.is_tree {
        true => ["oracle", "grid"].contains(&&*name(uid)),
        false => sees_all && host.stopped.iter().any(|one| one.owner == Some(uid)),
    };
    let segments = host.kernel.system_v.segments.iter().flatten();
    let mut segments: Vec<_> = segments
        .filter(|segment| segment.nattch == 0 && segment.size >= size.bytes())
        .collect();
    segments.sort_by_key(|segment| std::cmp::Reverse(segment.size));
    let of_segment = |segment: &SysvSegment| UnattachedSegment {
        id: segment.shmid,
        key: segment.key,
        size: segment.size,
        owner: escape::line(&name(segment.uid)).into_owned(),
        last_pid: segment.lpid,
        is_remnant: is_oracle(segment.uid) && !users_of_oracle.contains(&segment.uid),
    };
    segments.into_iter().map(of_segment).collect()
}

/// What no service account has of `pool`, of the pages in use that are none of these servers'. All that is not seen to be a service
/// account's, because a page may be promised, or be in a file that nobody has mapped; but where not all is seen, what is seen to be
/// another user's. `sees_all`: whether all is seen.
fn of_pool(
    pool: &Pool,
    host: &HostFacts,
    servers: &[Server<'_>],
    sees_all: bool,
    unattached: Vec<UnattachedSegment>,
) -> PagesOfStrangers {
    let OtherProcesses {
        held_by_services,
        held_by_strangers,
        promised_to_root,
        ..
    } = &host.others;
    let size = pool.page_size;
    let of_size = servers
        .iter()
        .filter(|server| server.alone.pool_state.huge_page_size == Some(size));
    let held: Pages = of_size
        .map(|server| server.alone.current_start().own())
        .sum();
    let others = pool.in_use().unwrap_or_default().saturating_sub(held);
    let promised_here = promised_to_root.get(&size).filter(|_| sees_all).copied();
    let unexplained = others
        .saturating_sub(size.pages_to_hold(*held_by_services))
        .saturating_sub(size.pages_to_hold(promised_here.unwrap_or_default()));
    let by_processes = unexplained.min(size.pages_within(*held_by_strangers));
    let mut left = unexplained.saturating_sub(by_processes);
    let unattached: Vec<_> = unattached
        .into_iter()
        .filter(|segment| {
            let pages = size.pages_to_hold(segment.size);
            let fits = pages <= left;
            left = left.saturating_sub(if fits { pages } else { Pages(0) });
            fits
        })
        .take(MAX_SEGMENTS)
        .collect();
    let of_unattached = unexplained
        .saturating_sub(by_processes)
        .saturating_sub(left);
    let pages = if sees_all {
        unexplained
    } else {
        by_processes.saturating_add(of_unattached)
    };
    let largest = host
        .holders
        .iter()
        .find(|holder| !holder.counts)
        .filter(|_| pages > Pages(0))
        .cloned();
    PagesOfStrangers {
        pages,
        largest,
        unattached,
    }
}
