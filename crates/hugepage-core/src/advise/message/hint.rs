//! Instructions: how to get huge pages, or keep them.

use crate::advise::command;
use crate::advise::message::status_text::StatusText;
use crate::assess::io_uring;
use crate::assess::limits::excesses;
use crate::model::{Cause, HugePages, LockLimit, NodePools, PoolFact};
use crate::read::cgroup::CgroupLimit;
use crate::{Bytes, Pages};

/// With a capital letter and a full stop.
fn sentence(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map(|first| format!("{}{}.", first.to_uppercase(), characters.as_str())).unwrap_or_default()
}

fn raise(path: &str, to: Bytes) -> String {
    format!("set {path} to at least {} bytes", to.0)
}

/// `a`, `a and b`, `a, b and c`.
fn list(steps: &[String]) -> String {
    match steps.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, before)) => format!("{} and {last}", before.join(", ")),
        None => String::new(),
    }
}

impl StatusText<'_> {
    /// How to remove `cause`.
    pub(in crate::advise) fn hint_on(&self, cause: Cause) -> Option<String> {
        let terms = self.terms();
        let server = terms.server;
        let off = terms.setting(HugePages::Off);
        let restart = format!("restart the {server}");
        match cause {
            _ if self.could_land_now() => Some(sentence(&self.steps(&[restart]))),
            Cause::MemoryTarget => Some(format!(
                "Set SGA_TARGET and PGA_AGGREGATE_TARGET in place of MEMORY_TARGET and restart the {server}."
            )),
            Cause::ShmGroup => match self.0.facts.lock_limit {
                Some(LockLimit::ShmGroup { gid }) => {
                    Some(format!("Run \"sysctl -w vm.hugetlb_shm_group={gid}\" and restart the {server}."))
                }
                _ => None,
            },
            Cause::MemlockLimit => Some(format!(
                "Set memlock of the {server}'s owner in limits.conf to at least {} kB and restart the {server} (MOS \
                 2049901.1).",
                self.needed_bytes()?.0 >> 10
            )),
            Cause::SysvSharedMemory => Some("Set shared_memory_type = mmap and restart the server.".to_owned()),
            Cause::PageSizeUnsupported => match &self.0.facts.pool {
                PoolFact::Unsupported(sizes) if !sizes.is_empty() => {
                    Some("Set huge_page_size = 0, the kernel's default size, and restart the server.".to_owned())
                }
                _ => Some(format!("Set {off}, or boot a kernel that has huge pages.")),
            },
            Cause::CgroupLimit => {
                let limit = self.reservation_limit()?;
                let to = self.limit_needed(limit)?;
                Some(sentence(&self.steps(&[raise(&limit.path, to), restart])))
            }
            Cause::NodeLimit => match self.set_node_pool() {
                Some(command) => Some(sentence(&self.steps(&[format!("run \"{command}\""), restart]))),
                None => self.other_nodes(),
            },
            Cause::MemoryLimit => self.raise_limits(),
            Cause::Unknown => None,
            Cause::Disabled if self.0.does_not_fit() => None,
            _ if self.0.does_not_fit() => Some(match self.0.facts.huge_page_size?.times(self.free_capacity()) {
                Bytes(0) => format!("Set {off}: other processes hold all huge pages that this host can hold."),
                largest => format!("Reduce {} at most {largest}, or set {off}.", terms.reduce),
            }),
            Cause::Disabled => {
                let run = format!("run \"{}\"", self.set_pool(self.0.to_land?)?);
                let steps = self.steps(&[run, format!("set {}", terms.setting(HugePages::Try)), restart]);
                Some(sentence(&format!("{steps} to use huge pages")))
            }
            Cause::PoolEmpty | Cause::PoolTooSmall | Cause::PoolTaken => {
                // More pages of the host would be spread over nodes that the server may not use.
                if self.0.facts.nodes.as_ref().is_some_and(NodePools::is_restricted) {
                    return self.hint_on(Cause::NodeLimit);
                }
                let run = format!("run \"{}\"", self.set_pool(self.0.to_land?)?);
                Some(sentence(&self.steps(&[run, restart])))
            }
        }
    }

    /// `steps` in one phrase, after the limits that would kill the server in huge pages are raised.
    fn steps(&self, steps: &[String]) -> String {
        let (limits, needed) = (self.0.facts.limits.as_ref(), self.needed_bytes().unwrap_or_default());
        let found = limits.map(|limits| excesses(limits, needed, self.own_bytes())).unwrap_or_default();
        let first = found.iter().map(|excess| raise(&excess.path, excess.need));
        list(&first.chain(steps.iter().cloned()).collect::<Vec<_>>())
    }

    /// The pages that this host can hold for this server.
    fn free_capacity(&self) -> Pages {
        let others = self.0.share.map(|share| share.others).unwrap_or_default();
        self.0.capacity.unwrap_or_default().saturating_sub(others)
    }

    pub(in crate::advise) fn set_pool(&self, pages: Pages) -> Option<String> {
        let size = self.0.facts.huge_page_size?;
        Some(command::set_pool(size, self.0.facts.is_default(size), pages))
    }

    /// The command that gives a node which the server may use its pages, if node and host can hold them.
    fn set_node_pool(&self) -> Option<String> {
        let facts = &self.0.facts;
        let (pool, nodes) = (facts.pool.known()?, facts.nodes.as_ref()?);
        let target = nodes.target(pool, self.0.needed?, self.0.own, facts.reserve_percent)?;
        let fits = target.fits && pool.persistent().saturating_add(target.more) <= self.0.capacity?;
        fits.then(|| command::set_node_pool(target.node, pool.page_size, target.pages))
    }

    fn other_nodes(&self) -> Option<String> {
        let terms = self.terms();
        Some(format!(
            "Let the {} use more NUMA nodes (cpuset.mems, numactl) and restart it, or reduce {} what these nodes hold.",
            terms.server, terms.reduce
        ))
    }

    /// How to make sure that a restart keeps, or gets, huge pages.
    pub(in crate::advise) fn hint_on_restart(&self) -> Option<String> {
        if let Some(cause) = self.lock_refusal() {
            return self.hint_on(cause);
        }
        if self.pool_falls_short() {
            if self.0.does_not_fit() {
                return self.hint_on(Cause::PoolTooSmall);
            }
            return Some(format!("Run \"{}\".", self.set_pool(self.0.to_land?)?));
        }
        if self.node_shortage().is_some() {
            return match self.set_node_pool() {
                Some(command) => Some(format!("Run \"{command}\".")),
                None => self.other_nodes(),
            };
        }
        let (limit, needed) = (self.reservation_limit()?, self.needed_bytes()?);
        let is_short = limit.room_without(self.own_bytes()) < needed;
        is_short.then_some(sentence(&raise(&limit.path, self.limit_needed(limit)?)))
    }

    /// So that a restart after a crash keeps huge pages.
    pub(in crate::advise) fn hint_on_crash(&self) -> Option<String> {
        if self.pool_falls_short() || self.0.facts.kept_at_crash.at_most == Pages(0) {
            return self.hint_on_restart();
        }
        let worker = "set io_method = worker and restart the server";
        if self.0.does_not_fit() {
            return Some(sentence(worker));
        }
        let pool = self.set_pool(self.0.to_land?)?;
        Some(format!("Run \"{pool}\", which is enough for {} crashes, or {worker}.", io_uring::CRASHES))
    }

    /// How to raise the limits that are checked when a page is touched.
    pub(in crate::advise) fn raise_limits(&self) -> Option<String> {
        let mut steps: Vec<(String, Bytes)> = Vec::new();
        for excess in self.0.excesses() {
            match steps.iter_mut().find(|(path, _)| *path == excess.path) {
                Some((_, to)) => *to = excess.need.max(*to),
                None => steps.push((excess.path, excess.need)),
            }
        }
        let steps: Vec<_> = steps.iter().map(|(path, to)| raise(path, *to)).collect();
        (!steps.is_empty()).then(|| sentence(&list(&steps)))
    }

    /// What a cgroup must allow for the server to start in huge pages beside its other processes.
    fn limit_needed(&self, limit: &CgroupLimit) -> Option<Bytes> {
        Some(limit.usage_without(self.own_bytes()).saturating_add(self.needed_bytes()?))
    }
}
