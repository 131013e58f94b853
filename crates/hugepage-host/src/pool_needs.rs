//! What the servers of a host need of its pools, those that run and those that are only configured, and what they take from each other.

use std::cell::RefCell;
use std::collections::BTreeMap;

use hugepage_assess::assessment::Capacity;
use hugepage_assess::assessment::capacity::HostMemory;
use hugepage_assess::model::{PagesOfStrangers, Pending};
use hugepage_facts::{HostFacts, Snapshot, pools};
use hugepage_kernel::{Bytes, PageSize, Pages, Pool};
use hugepage_oracle::start_limits::HostOfStarts;
use hugepage_oracle::stopped::StoppedOracle;
use hugepage_oracle::stopped_oracle;
use hugepage_sizing::{PoolNeed, Sizing};

use crate::server::Server;
use crate::strangers::strangers;

/// The servers of a host beside each other. The sizing of a pool is made once: of a user's servers there may be thousands.
pub(super) struct Comparison<'a> {
    pub(super) all: Vec<Server<'a>>,
    pub(super) host: &'a HostFacts,
    pub(super) reserve_percent: u32,
    /// What strangers have of each pool.
    pub(super) strangers: BTreeMap<PageSize, PagesOfStrangers>,
    /// The Oracle instances that do not run.
    pub(super) stopped: Vec<StoppedOracle>,
    by_size: RefCell<BTreeMap<Option<PageSize>, Option<Lacks>>>,
}

/// What the servers that need pages of one size lack of what fits, and what they ask for beyond it: all and each.
#[derive(Default)]
struct Lacks {
    all: (Pages, Pages),
    each: Vec<(PoolNeed, (Pages, Pages))>,
}

impl<'a> Comparison<'a> {
    pub(super) fn new(snapshot: &'a Snapshot, reserve_percent: u32) -> Self {
        let host = &snapshot.host;
        let all: Vec<_> = snapshot
            .servers
            .iter()
            .map(|facts| Server::new(host, facts, reserve_percent))
            .collect();
        Self {
            host,
            reserve_percent,
            strangers: strangers(host, &all),
            stopped: stopped_of_host(host, &all),
            all,
            by_size: RefCell::default(),
        }
    }

    fn others_than(&self, one: &Server<'_>) -> impl Iterator<Item = &Server<'a>> {
        self.all
            .iter()
            .filter(move |other| other.facts.id.pid != one.facts.id.pid)
    }

    /// The memory in System V segments of huge pages that other instances of the same user have.
    pub(super) fn held_by_user(&self, one: &Server<'_>) -> Bytes {
        let uid = one.facts.id.place.uid;
        let of_user = self
            .others_than(one)
            .filter(|other| uid.is_some() && other.facts.id.place.uid == uid);
        of_user.map(Server::held).sum()
    }

    /// Whether another server may ask for more next than is known.
    pub(super) fn may_ask_for_more_than(&self, one: &Server<'_>) -> bool {
        self.others_than(one)
            .any(|other| other.alone.pending == Pending::Unknown)
    }

    /// The pages of `size` that the others than `one` lack, of what fits and beyond it; `None` if the need of one is unknown.
    pub(super) fn lack_of_others(
        &self,
        one: &Server<'_>,
        size: Option<PageSize>,
    ) -> Option<(Pages, Pages)> {
        let mut by_size = self.by_size.borrow_mut();
        let Lacks { all, each } = by_size
            .entry(size)
            .or_insert_with(|| self.lacks(size))
            .as_ref()?;
        let own = one.need();
        let (lack, beyond) = each
            .iter()
            .find(|(need, _)| *need == own)
            .map(|(_, its)| *its)
            .unwrap_or_default();
        Some((all.0.saturating_sub(lack), all.1.saturating_sub(beyond)))
    }

    fn lacks(&self, size: Option<PageSize>) -> Option<Lacks> {
        let of_size = self
            .all
            .iter()
            .filter(|other| other.alone.pool_state.huge_page_size == size);
        let mut needs: Vec<_> = of_size.map(Server::need).collect();
        if size == self.host.default_page_size() {
            if self
                .stopped
                .iter()
                .any(|stopped| stopped.wants.pages().is_none())
            {
                return None;
            }
            needs.extend(
                stopped_needs(&self.stopped)
                    .into_iter()
                    .map(|(_, need)| need),
            );
        }
        let Some(pool) = size.and_then(|size| self.host.pool(size)) else {
            return Some(Lacks::default());
        };
        let sizing = sizing_of_host(
            self.host,
            &self.strangers,
            pool,
            needs,
            self.reserve_percent,
        );
        let mut lacks = Lacks::default();
        for need in &sizing.needs {
            let counted = sizing.counted(need);
            let its = (
                counted.saturating_sub(need.held),
                need.pages.saturating_sub(counted),
            );
            lacks.all = (
                lacks.all.0.saturating_add(its.0),
                lacks.all.1.saturating_add(its.1),
            );
            lacks.each.push((need.clone(), its));
        }
        Some(lacks)
    }
}

/// The Oracle instances that do not run, beside those that do.
fn stopped_of_host(host: &HostFacts, servers: &[Server<'_>]) -> Vec<StoppedOracle> {
    let held = |uid| {
        let of_user = servers
            .iter()
            .filter(|server| server.facts.id.place.uid == Some(uid));
        of_user.map(Server::held).sum()
    };
    let starts = HostOfStarts {
        kernel: &host.kernel,
        dev_shm: host.dev_shm,
        meminfo: host.meminfo.as_ref(),
        pools: &host.pools,
        held: &held,
    };
    stopped_oracle(&host.stopped, &starts)
}

/// The needs of the Oracle instances that do not run.
pub(super) fn stopped_needs(stopped: &[StoppedOracle]) -> Vec<(Option<PageSize>, PoolNeed)> {
    stopped
        .iter()
        .filter_map(|stopped| stopped.database().need())
        .collect()
}

/// The sizing of `pool` for servers with `needs`.
pub(super) fn sizing_of_host(
    host: &HostFacts,
    strangers: &BTreeMap<PageSize, PagesOfStrangers>,
    pool: &Pool,
    needs: Vec<PoolNeed>,
    reserve_percent: u32,
) -> Sizing {
    let movable = needs.iter().map(|need| need.movable).sum();
    let other_pools =
        pools::of_host(&host.pools).filter(|row| row.pool.page_size != pool.page_size);
    let elsewhere = pools::memory(other_pools);
    let meminfo = host.meminfo.as_ref();
    let memory = meminfo
        .and_then(|meminfo| HostMemory::beside_pool(meminfo, pool, movable, reserve_percent));
    let capacity = memory.map(|memory| {
        Capacity::of_pool(
            &HostMemory {
                elsewhere,
                ..memory
            },
            pool,
        )
    });
    let strangers = strangers.get(&pool.page_size).cloned().unwrap_or_default();
    Sizing::new(pool, needs, strangers, capacity)
}
