//! What each pool will have after the next boot, from all that sets it.

use std::collections::{BTreeMap, BTreeSet};

use super::boot::{NextBoot, both};
use super::boot_writers::{PoolWrite, WhichPool, count};
use super::pool_at_boot::PoolAtBoot;
use crate::memory::sysctl::Assignment;
use crate::{Bytes, PageSize, Pages};

/// The parameters that set the pool of the default page size. The second obeys the memory policy of who writes it.
const PARAMETERS: [&str; 2] = ["vm.nr_hugepages", "vm.nr_hugepages_mempolicy"];

impl NextBoot {
    /// What each pool will have, of the sizes that this kernel has or that something sets.
    pub fn pools(&self) -> Vec<(PageSize, PoolAtBoot)> {
        self.sizes().into_iter().map(|size| (size, self.pool(size))).collect()
    }

    /// What the pool of `size` will have.
    pub fn pool(&self, size: PageSize) -> PoolAtBoot {
        let set = self.asked_for(size);
        match &set {
            PoolAtBoot::Set { pages, file } if *pages > Pages(0) => {
                self.excess(size, *pages, file).map_or_else(|| set.clone(), PoolAtBoot::Unknown)
            }
            PoolAtBoot::Unset => self.unexplained(size).map_or(set, PoolAtBoot::Unknown),
            _ => set,
        }
    }

    /// What files ask for, whether the host can have it or not.
    pub fn asked_for(&self, size: PageSize) -> PoolAtBoot {
        if self.is_of_container {
            return PoolAtBoot::Unknown("these are the files of a container, not of the host".to_owned());
        }
        if let Some(why) = self.other_start {
            return PoolAtBoot::Unknown(why.to_owned());
        }
        if let Some(file) = self.not_understood.iter().chain(&self.tuned.not_understood).next() {
            return PoolAtBoot::Unknown(format!("{file} may set it, and what it does is not understood"));
        }
        self.written(size).unwrap_or_else(|| self.pool_before(size))
    }

    /// What tmpfiles.d writes; `None` if nothing.
    fn written(&self, size: PageSize) -> Option<PoolAtBoot> {
        let default = self.default_size();
        let of_pool = |write: &&PoolWrite| write.pool.may_be(size, default.as_ref().ok().copied());
        let writes: Vec<_> = self.tmpfiles.iter().filter(of_pool).collect();
        let last = writes.last()?;
        if let (WhichPool::Default, Err(why)) = (last.pool, &default) {
            return Some(PoolAtBoot::Unknown(why.clone()));
        }
        if let Some(write) = writes.iter().find(|write| write.pages.is_none()) {
            return Some(PoolAtBoot::Unknown(not_understood(&write.file)));
        }
        let pages = match writes.iter().rposition(|write| write.node.is_none()) {
            Some(at) if at + 1 == writes.len() => last.pages.unwrap_or_default(),
            whole => match self.of_nodes(size, &writes[whole.map_or(0, |at| at + 1)..], whole.is_none()) {
                Some(pages) => pages,
                None => {
                    return Some(PoolAtBoot::Unknown(format!("{} sets a part of it, beside another file", last.file)));
                }
            },
        };
        let set = PoolAtBoot::Set { pages, file: last.file.clone() };
        // tuned starts later, and applies sysctl.d once more.
        let again = || self.assigned(size).filter(|_| !self.tuned.assignments.is_empty());
        Some(match again() {
            Some(PoolAtBoot::Set { pages: other, .. }) if other == pages => set,
            Some(_) => PoolAtBoot::Unknown(format!("{} and tuned set it, and which is later is unknown", last.file)),
            None => set,
        })
    }

    /// The sum of what is written for single nodes; `None` if other nodes have pages of something else.
    fn of_nodes(&self, size: PageSize, writes: &[&PoolWrite], are_alone: bool) -> Option<Pages> {
        // The last line for a node counts.
        let by_node: BTreeMap<_, _> = writes.iter().map(|write| (write.node, write.pages)).collect();
        let nodes = self.machine.nodes.as_ref();
        let has_all = nodes.is_some_and(|nodes| nodes.iter().all(|node| by_node.contains_key(&Some(*node))));
        let has_others = || {
            !are_alone || !matches!(self.pool_before(size), PoolAtBoot::Unset | PoolAtBoot::Set { pages: Pages(0), .. })
        };
        if !has_all && has_others() {
            return None;
        }
        Some(by_node.into_values().flatten().fold(Pages(0), Pages::saturating_add))
    }

    /// Before tmpfiles.d has its turn.
    fn pool_before(&self, size: PageSize) -> PoolAtBoot {
        if let Some(assigned) = self.assigned(size) {
            return assigned;
        }
        let Some((first, others)) = self.command_lines.split_first() else {
            return PoolAtBoot::Unknown("the kernel's command line is not there".to_owned());
        };
        let set = first.pool(size);
        let pages = |pool: &PoolAtBoot| match pool {
            PoolAtBoot::Set { pages, .. } => Some(*pages),
            _ => None,
        };
        for other in others {
            let of_other = other.pool(size);
            if let PoolAtBoot::Unknown(_) = of_other {
                return of_other;
            }
            if pages(&of_other) != pages(&set) && !matches!(set, PoolAtBoot::Unknown(_)) {
                return PoolAtBoot::Unknown(format!(
                    "the entries of the boot loader have different pools ({}), and which one is next is unknown",
                    both(&first.file, &other.file)
                ));
            }
        }
        set
    }

    /// What sysctl.d or tuned sets the pool to; `None` if it is of another size, or neither does.
    fn assigned(&self, size: PageSize) -> Option<PoolAtBoot> {
        let (sysctl, tuned) = (of_default_pool(&self.sysctl), of_default_pool(&self.tuned.assignments));
        let is_tuned = tuned.is_some() && (sysctl.is_none() || !self.tuned.reapplies_sysctl);
        let (name, Assignment { value, file }) = if is_tuned { tuned } else { sysctl }?;
        // Releases of tuned differ in the directories that they apply again.
        let is_applied_again = ["/etc/", "/run/"].iter().any(|start| file.starts_with(start));
        let other = tuned.map(|(_, other)| other).filter(|other| !is_applied_again && other.value != *value);
        Some(match (self.default_size(), count(value)) {
            (Ok(default), _) if default != size && !name.contains('*') => return None,
            (Err(why), _) => PoolAtBoot::Unknown(format!("{file} sets the pool of the default size, and {why}")),
            _ if self.masks_sysctl && !is_tuned => {
                PoolAtBoot::Unknown(format!("{file} sets it, and systemd-sysctl.service, which reads it, is masked"))
            }
            _ if other.is_some() => {
                PoolAtBoot::Unknown(format!("{file} and tuned set it, and which is later is unknown"))
            }
            _ if !PARAMETERS.contains(&name) => {
                PoolAtBoot::Unknown(format!("{file} may set it by the name {name}, which is not understood"))
            }
            _ if is_tuned && self.starts_tuned == Some(false) => {
                PoolAtBoot::Unknown(format!("{file} sets it, and no unit that starts tuned was found"))
            }
            (Ok(_), Some(pages)) => PoolAtBoot::Set { pages, file: file.clone() },
            _ => PoolAtBoot::Unknown(not_understood(file)),
        })
    }

    /// The largest pool, if that or all pools ask for more memory than the host has, and the clause on it.
    pub fn too_much(&self) -> Option<(PageSize, String)> {
        let set = |size: PageSize| match self.asked_for(size) {
            PoolAtBoot::Set { pages, file } => Some((size.times(pages), size, pages, file)),
            PoolAtBoot::Unset | PoolAtBoot::Unknown(_) => None,
        };
        let (_, size, pages, file) = self.sizes().into_iter().filter_map(set).max_by_key(|(bytes, ..)| *bytes)?;
        Some((size, self.excess(size, pages, &file)?))
    }

    /// Why the host can't have what is asked for; `None` if it may.
    fn excess(&self, size: PageSize, pages: Pages, file: &str) -> Option<String> {
        let memory = self.machine.memory?;
        let own = size.times(pages);
        if own == Bytes(0) {
            return None;
        }
        let all = self.sizes().into_iter().fold(Bytes(0), |sum, size| match self.asked_for(size) {
            PoolAtBoot::Set { pages, .. } => sum.saturating_add(size.times(pages)),
            _ => sum,
        });
        if own > memory {
            return Some(format!(
                "{file} asks for {pages} pages of {size}, which are {own}, and this host has {memory} of memory"
            ));
        }
        (all > memory).then(|| format!("the pools of all sizes ask for {all}, and this host has {memory} of memory"))
    }

    /// Why a pool that nothing sets may be set all the same: it has pages now, and what set them may be in a file that was not
    /// read. `None` where all was read: as a rule such pages were set by hand after the boot.
    fn unexplained(&self, size: PageSize) -> Option<String> {
        let pages = self.machine.pools.get(&size).copied().filter(|pages| *pages > Pages(0))?;
        let by_command_line = self.running.as_ref().map(|line| line.pool(size));
        if matches!(by_command_line, Some(PoolAtBoot::Set { pages, .. }) if pages > Pages(0)) {
            return None;
        }
        let unread: Vec<_> = self.not_read.iter().chain(&self.programs_not_read).map(String::as_str).collect();
        let unread = Some(unread.join("; ")).filter(|unread| !unread.is_empty())?;
        Some(format!("no file that was read sets it, and it has {pages} pages now; {unread}"))
    }

    fn sizes(&self) -> BTreeSet<PageSize> {
        let of_lines = self.command_lines.iter().flat_map(|line| line.pools.keys().copied());
        let of_writes = self.tmpfiles.iter().filter_map(|write| match write.pool {
            WhichPool::OfSize(size) => Some(size),
            WhichPool::Default | WhichPool::Any => None,
        });
        let of_machine = self.machine.sizes.iter().flatten().copied();
        of_lines.chain(of_writes).chain(of_machine).chain(self.default_size()).collect()
    }
}

/// The last assignment of the default pool; one by a name that is not understood, or may be a pattern for it, before others.
fn of_default_pool(assignments: &[(String, Assignment)]) -> Option<(&str, &Assignment)> {
    let is_unclear = |name: &str| {
        let may_match = name.find(['*', '?', '[']).is_some_and(|at| PARAMETERS[0].starts_with(&name[..at]));
        may_match || name.contains("nr_hugepages") && !PARAMETERS.contains(&name)
    };
    let found = assignments.iter().find(|(name, _)| is_unclear(name));
    let found = found.or_else(|| assignments.iter().rfind(|(name, _)| PARAMETERS.contains(&name.as_str())));
    found.map(|(name, assignment)| (name.as_str(), assignment))
}

/// Why a pool is unknown that `file` sets.
fn not_understood(file: &str) -> String {
    format!("{file} sets it, to a number that could not be read")
}
