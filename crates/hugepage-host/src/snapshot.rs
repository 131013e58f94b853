//! What was read of a host: plain data, from which everything is decided.

use std::collections::BTreeMap;
use std::time::SystemTime;

use hugepage_assess::model::{CurrentStart, PagesOfStrangers, Past, PoolHolder};
use hugepage_assess::pools::{self, PoolRow};
use hugepage_kernel::memory::meminfo::Meminfo;
use hugepage_kernel::memory::pool::Pool;
use hugepage_kernel::next_boot::NextBoot;
use hugepage_kernel::{Notes, PageSize};
use hugepage_oracle::stopped::StoppedOracle;
use hugepage_sizing::StoppedDatabase;
use serde::{Deserialize, Serialize};

use crate::glances::Strangers;
use crate::identify::ServerIdentity;
use crate::inspect::InspectedServer;
use crate::readers::{Owner, Unread};

/// Who tells what was recorded when a server started, with notes on what could not be read of it.
pub type RecallPast<'a> = dyn Fn(&ServerIdentity, &CurrentStart<'_>, &mut Notes) -> Past + 'a;

/// What was read of a host and its servers. All else is decided from it, so it can be kept and decided again.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Snapshot {
    /// The host without its servers.
    pub host: HostFacts,
    pub(super) servers: Vec<InspectedServer>,
}

/// What was read of a host.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HostFacts {
    /// The host's name.
    pub host_name: Option<String>,
    /// When this was read; for a tree when its files were written.
    pub taken_at: SystemTime,
    /// What the next boot sets; `None` if it could not be read.
    pub next_boot: NextBoot,
    /// The host's memory.
    pub meminfo: Option<Meminfo>,
    /// The size of base pages.
    pub base_page_size: Option<PageSize>,
    /// All pools.
    pub pools: Vec<PoolRow>,
    /// `transparent_hugepage/enabled`.
    pub transparent_hugepage: Option<String>,
    /// Whether /proc hides the processes of other users, so that servers may run that are not seen.
    pub processes_are_hidden: bool,
    /// Whether this program certainly sees the processes of a container alone.
    pub is_in_container: bool,
    /// Processes that call themselves servers and do not count.
    pub strangers: Strangers,
    /// What strangers have of the host's pools, by page size.
    pub pages_of_strangers: BTreeMap<PageSize, PagesOfStrangers>,
    /// The Oracle instances of oratab that do not run.
    pub stopped: Vec<StoppedOracle>,
    /// The PostgreSQL clusters that do not run, where a command looks for them.
    pub stopped_clusters: StoppedClusters,
    /// The programs beside database servers that have huge pages, the largest first.
    pub holders: Vec<PoolHolder>,
    /// The users of whom something was not read; the notes say it, too.
    pub unread: Vec<Unread>,
    /// As whom the files of servers that do not run are read, nobody last.
    pub(crate) owners: Vec<Owner>,
    /// What could not be read of the host.
    pub notes: Vec<String>,
}

/// The clusters that do not run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct StoppedClusters {
    /// The clusters.
    pub found: Vec<StoppedDatabase>,
    /// What could not be read of them.
    pub notes: Vec<String>,
    /// The users of whom something was not read for them alone; the notes say it, too.
    pub unread: Vec<Unread>,
}

impl Snapshot {
    /// Adds what was recorded when each server started.
    pub fn recall(&mut self, recall: &RecallPast<'_>) {
        for server in &mut self.servers {
            let mut notes = Notes::default();
            server.past = recall(&server.id, &server.request.current_start(), &mut notes);
            server.notes_on_past = notes.into_vec();
        }
    }
}

impl HostFacts {
    /// The size of huge pages for mappings that ask for no size; `None` if there is none, or it is unknown.
    pub fn default_page_size(&self) -> Option<PageSize> {
        self.meminfo.as_ref()?.huge_page_size
    }

    /// As whom the files of a user are read that is no running server's.
    pub fn reader_of(&self, uid: Option<u32>) -> Owner {
        let account = self.owners.iter().find(|owner| Some(owner.uid) == uid).or(self.owners.last());
        account.cloned().unwrap_or_else(Owner::own)
    }

    /// The pool of `size`.
    pub fn pool(&self, size: PageSize) -> Option<&Pool> {
        pools::of_size(&self.pools, size).map(|row| &row.pool)
    }
}
