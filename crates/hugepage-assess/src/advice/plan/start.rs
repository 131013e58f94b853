//! What stands between one start of a server and huge pages, and the step that removes it.

use hugepage_kernel::{Bytes, PageSize, Pages};

use super::Step;
use crate::assessment::limits::Excess;
use crate::assessment::{Capacity, NodeRoom, Share, Start, Status};
use crate::model::{HugePages, LockLimit};

impl Start<'_> {
    /// Changes the settings that rule out huge pages, whatever the pool has.
    pub(super) fn ask_for_huge_pages(&mut self) -> Vec<Step> {
        let mut steps = Vec::new();
        if self.requested.huge_pages == HugePages::Off {
            self.requested.huge_pages = HugePages::Try;
            steps.push(Step::SetHugePagesTry);
        }
        if self.requested.is_in_files() {
            self.requested.product = self.requested.product.with_memory_target(false);
            steps.push(Step::ReplaceMemoryTarget);
        }
        if self.requested.sysv {
            self.requested.sysv = false;
            steps.push(Step::SetMmap);
        }
        steps
    }

    /// The limits that are too low for `needed` pages of `size`, and those that the running segment exceeds, the most severe first.
    pub(super) fn limits(&self, status: &Status, needed: Pages, size: PageSize) -> Vec<Step> {
        let (bytes, own) = (size.times(needed), size.times(self.own));
        let mut found: Vec<_> = status
            .excesses()
            .into_iter()
            .filter(|excess| excess.is_now)
            .collect();
        found.extend(self.excesses());
        let reservations = self
            .pool_state
            .limits
            .iter()
            .flat_map(|limits| &limits.reservation);
        let mut tight: Vec<_> = reservations
            .filter(|limit| limit.room_without(own) < bytes)
            .collect();
        tight.sort_by_key(|limit| limit.room_without(own));
        let on_reservations = tight.into_iter().map(|limit| {
            let to = limit.usage_without(own).saturating_add(bytes);
            (limit.path.clone(), to)
        });
        raise(needs(found).chain(on_reservations))
    }

    /// The pages that the start lacks; `None` if no number of them is certain to help.
    pub(super) fn pages(&self, status: &Status) -> Option<Vec<Step>> {
        let (pool, share, needed) = (self.pool_state.pool.known()?, self.share()?, self.needed()?);
        let (facts, size) = (&status.facts, pool.page_size);
        // More pages of the host would be spread over nodes that the server may not use.
        if self.pool_state.is_kept_from_nodes() && self.node_room() != NodeRoom::Enough {
            return None;
        }
        let is_own = facts.pool_state.huge_page_size == Some(size);
        let strangers = if is_own {
            facts.strangers.clone()
        } else {
            Default::default()
        };
        let lacks = |needed: Pages| {
            share
                .others
                .saturating_add(needed)
                .saturating_sub(share.persistent)
        };
        let freed = strangers.pages.min(lacks(needed));
        let free = (freed > Pages(0)).then_some(Step::FreePages {
            size,
            pages: freed,
            strangers,
        });
        if lacks(needed) <= freed {
            return Some(Vec::from_iter(free));
        }
        let capacity = self.capacity(status)?;
        let (mut steps, mut pages) = (Vec::new(), self.pool_for_all(status, needed, share));
        if pages > capacity.most {
            let beside = pages.saturating_sub(needed);
            pages = capacity.comfortable(beside);
            let to = size.times(pages.saturating_sub(beside));
            steps.push((to > Bytes(0)).then_some(Step::Reduce { to })?);
            if lacks(pages.saturating_sub(beside)) <= freed {
                return Some(steps.into_iter().chain(free).collect());
            }
        }
        steps.extend(free);
        // Never fewer than are in use or promised now, even if the server is to need fewer.
        let in_use = pool
            .in_use()
            .unwrap_or_default()
            .saturating_sub(facts.strangers.pages);
        let pages = if is_own { pages.max(in_use) } else { pages };
        let (after_stop, leaves) = (pages > capacity.now, capacity.leaves_less(pages, size));
        steps.push(Step::SetPool {
            size,
            is_default: facts.is_default(size),
            pages,
            after_stop,
            leaves,
        });
        Some(steps)
    }

    /// The pool for this start beside all others, and for a crash before it if the host can hold that.
    fn pool_for_all(&self, status: &Status, needed: Pages, share: Share) -> Pages {
        let is_own = status.facts.pool_state.huge_page_size == self.pool_state.huge_page_size;
        let by_others = status.by_others.filter(|_| is_own).unwrap_or(share.others);
        let alone = by_others.saturating_add(needed);
        let most = self.capacity(status).map(|capacity| capacity.most);
        status
            .to_land
            .filter(|pages| is_own && Some(*pages) <= most)
            .unwrap_or(alone)
            .max(alone)
    }

    fn capacity(&self, status: &Status) -> Option<Capacity> {
        let pool = self.pool_state.pool.known()?;
        let is_own = status.facts.pool_state.huge_page_size == Some(pool.page_size);
        if is_own {
            status.capacity
        } else {
            status.facts.capacity(pool)
        }
    }
}

/// What lifts `lock` for a segment of `bytes`; `None` if nothing does for certain.
pub fn permission(lock: LockLimit, bytes: Bytes) -> Option<Step> {
    let lock = match lock {
        LockLimit::Memlock { others, .. } => {
            return Some(Step::RaiseMemlock {
                to: bytes.saturating_add(others),
            });
        }
        // Kernels of both kinds let the group have them.
        LockLimit::Either { gid, .. } => LockLimit::ShmGroup { gid },
        other => other,
    };
    lock.sysctl()
        .map(|(name, value)| Step::SetShmLimit { name, value })
}

/// What must be raised, and to what.
pub fn needs(excesses: Vec<Excess>) -> impl Iterator<Item = (String, Bytes)> {
    excesses
        .into_iter()
        .map(|excess| (excess.path, excess.need))
}

/// Raises each of these limits to the most that is needed of it.
pub fn raise(needs: impl Iterator<Item = (String, Bytes)>) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for (path, need) in needs {
        let known = steps.iter_mut().find_map(|step| match step {
            Step::RaiseLimit { path: of, to } if *of == path => Some(to),
            _ => None,
        });
        match known {
            Some(to) => *to = (*to).max(need),
            None => steps.push(Step::RaiseLimit { path, to: need }),
        }
    }
    steps
}
