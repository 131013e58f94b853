//! A host as it was decided: its pools, and every database server on it.

use std::collections::BTreeMap;

use hugepage_assess::model::PagesOfStrangers;
use hugepage_facts::{HostFacts, Landing, Past, ServerIdentity, Snapshot, Unread, pools};
use hugepage_kernel::{Notes, PageSize, Pages, Pool};
use hugepage_oracle::stopped::StoppedOracle;
use hugepage_sizing::{PoolNeed, Sizing, StoppedDatabase};

use crate::assess::Instance;
use crate::pool_needs::{Comparison, sizing_of_host, stopped_needs};
use crate::reading::add_failures;
use crate::stopped_needs::stopped_clusters;

/// A host with an assessment of each server that runs and counts.
#[derive(Clone, Debug)]
pub struct Survey {
    /// What was read of the host.
    pub host: HostFacts,
    /// The servers.
    pub instances: Vec<Instance>,
    /// What strangers have of the host's pools, by page size.
    pub pages_of_strangers: BTreeMap<PageSize, PagesOfStrangers>,
    /// The Oracle instances of oratab that do not run.
    pub stopped: Vec<StoppedOracle>,
    /// The other servers that do not run, where a command looks for them.
    pub stopped_clusters: Vec<StoppedDatabase>,
    /// What could not be read of the host, and what nobody has attached of its memory.
    pub notes: Vec<String>,
    /// The percentage of memory that it keeps for base pages.
    pub reserve_percent: u32,
}

/// Who tells what was recorded when a server started, with notes on what could not be read of it.
pub type RecallPast<'a> = dyn Fn(&ServerIdentity, &mut Notes) -> Past + 'a;

/// Adds what was recorded when each server started.
pub fn recall(snapshot: &mut Snapshot, recall: &RecallPast<'_>) {
    for server in &mut snapshot.servers {
        let mut notes = Notes::default();
        server.past = recall(&server.id, &mut notes);
        server.notes_on_past = notes.into_vec();
    }
    add_failures(&mut snapshot.host.unread);
}

/// The host as it is decided, each server beside the others. `reserve_percent`: the percentage of memory that it keeps for base pages.
pub fn decide(snapshot: &Snapshot, reserve_percent: u32) -> Survey {
    let compared = Comparison::new(snapshot, reserve_percent);
    let instances = compared.all.iter().map(|server| server.assess(&compared));
    let instances = instances.collect();
    let Comparison {
        strangers, stopped, ..
    } = compared;
    let mut notes = Notes::default();
    notes.extend(&snapshot.host.notes);
    notes.extend(snapshot.host.unread.iter().map(Unread::to_string));
    let unattached = strangers.values().flat_map(|of_pool| &of_pool.unattached);
    notes.extend(unattached.map(|segment| {
        format!("no process has attached shared memory segment {segment}, which seems to hold huge pages")
    }));
    Survey {
        instances,
        stopped_clusters: stopped_clusters(snapshot),
        pages_of_strangers: strangers,
        stopped,
        notes: notes.into_vec(),
        host: snapshot.host.clone(),
        reserve_percent,
    }
}

impl Survey {
    /// How many of the servers are in pages of this kind.
    pub fn landed_in(&self, landing: Landing) -> usize {
        let is_there = |one: &&Instance| one.landed_in() == landing;
        self.instances.iter().filter(is_there).count()
    }

    /// The sizings for the servers that run and the Oracle instances that do not.
    pub fn sizings(&self) -> Vec<Sizing> {
        self.sizings_beside(&stopped_needs(&self.stopped))
    }

    /// A sizing for each page size that a server needs or that has pages. `down`: servers that do not run.
    pub fn sizings_beside(&self, down: &[(Option<PageSize>, PoolNeed)]) -> Vec<Sizing> {
        let default = self.host.default_page_size();
        let sizing = |pool: &Pool| {
            let size = pool.page_size;
            let of_size = |instance: &&Instance| {
                instance.status.facts.pool_state.huge_page_size == Some(size)
            };
            let running = self.instances.iter().filter(of_size).map(Instance::need);
            let down = down
                .iter()
                .filter(|(wanted, _)| wanted.or(default) == Some(size))
                .map(|(_, need)| need.clone());
            let next = self
                .instances
                .iter()
                .filter_map(|instance| instance.need_next(size));
            let mut sizing = sizing_of_host(
                &self.host,
                &self.pages_of_strangers,
                pool,
                running.chain(next).chain(down).collect(),
                self.reserve_percent,
            );
            let is_unknown = |instance: &Instance| instance.status.crash.needed.is_none();
            let has_unseen = self.host.is_in_container || !self.host.unread.is_empty();
            if has_unseen || self.instances.iter().filter(of_size).any(is_unknown) {
                // One has, or wants, pages that are not visible.
                sizing.recommended = None;
            }
            sizing
        };
        let wanted = |sizing: &Sizing| {
            !sizing.needs.is_empty()
                || sizing.others > Pages(0)
                || default == Some(sizing.page_size)
        };
        pools::of_host(&self.host.pools)
            .map(|row| sizing(&row.pool))
            .filter(wanted)
            .collect()
    }
}
