//! The survey of a host: its pools, and every database server on it.

use hugepage_assess::pools;
use hugepage_kernel::host::identity;
use hugepage_kernel::memory::pool::Pool;
use hugepage_kernel::memory::thp;
use hugepage_kernel::next_boot::NextBoot;
use hugepage_kernel::proc::{namespace, process};
use hugepage_kernel::{Notes, PageSize, Pages, Root};
use hugepage_sizing::{PoolNeed, Sizing};

use crate::AskStart;
use crate::assess::Instance;
use crate::context::InspectContext;
use crate::discover::FoundServers;
use crate::glances::Glances;
use crate::holders::strangers;
use crate::inspect::InspectedServer;
use crate::pool_needs::Comparison;
use crate::readers::{self, Owner, Unread};
use crate::snapshot::{HostFacts, Snapshot, StoppedClusters};

/// A host with an assessment of each server that runs and counts.
#[derive(Clone, Debug)]
pub struct Survey {
    /// What was read of the host.
    pub host: HostFacts,
    /// The servers.
    pub instances: Vec<Instance>,
    /// The percentage of memory that it keeps for base pages.
    pub reserve_percent: u32,
}

/// Surveys the host, whose past nobody knows. `reserve_percent`: the percentage of memory that it keeps for base pages.
pub fn survey(root: &Root, reserve_percent: u32) -> Survey {
    Snapshot::read(root, &[], None).assess(reserve_percent)
}

impl Snapshot {
    /// Reads the host and inspects each of its servers. The accounts with the names or uids `service_accounts` are service accounts
    /// too, whose servers count; `ask` answers what files of PostgreSQL servers come to that have changed since the start.
    pub fn read(root: &Root, service_accounts: &[String], ask: Option<&AskStart<'_>>) -> Self {
        let mut notes = Notes::default();
        let host = InspectContext::read(root, service_accounts, ask, &mut notes);
        let taken_at = root.now();
        let processes_are_hidden = process::hides_others(root);
        if processes_are_hidden {
            notes.add("/proc is mounted with hidepid, which hides the processes of other users: run this as root");
        }
        let mut glances = Glances::look(&host.accounts, &mut notes);
        let mut unread = Vec::new();
        let servers = host.servers(&mut glances, &mut unread);
        let owners = host.accounts.owners();
        let stopped = host.stopped_oracle(&servers, &owners, &mut unread, &mut notes);
        let of_holders = || (host.holders(&glances.holders), host.promised_to_root(&glances.of_root));
        // Whoever holds pages can keep this from an answer, and no server has another one by that.
        let of_holders = readers::read_as(&Owner::nobody(root), of_holders).map_err(|why| notes.add(why.to_string()));
        let (holders, promised) = of_holders.map_or((Vec::new(), None), |(all, of_root)| (all, Some(of_root)));
        let is_in_container = namespace::shows_container_alone(root);
        // What cannot be seen may be a service account's.
        let sees_all = root.is_live()
            && !processes_are_hidden
            && !is_in_container
            && unread.is_empty()
            && servers.iter().all(|server| server.request.segment.is_some());
        let promised = promised.as_ref().filter(|_| sees_all);
        let of_pool = |pool: &Pool| strangers(pool, &servers, &glances, promised, &holders);
        let pages_of_strangers =
            pools::of_host(&host.pools).map(|row| (row.pool.page_size, of_pool(&row.pool))).collect();
        unread.iter().for_each(|unread| notes.add(unread.to_string()));
        let host = HostFacts {
            host_name: notes.keep(identity::host_name(root)),
            taken_at,
            next_boot: NextBoot::read(root),
            base_page_size: host.base,
            pools: host.pools,
            transparent_hugepage: notes.keep(thp::choice(root, "enabled")).flatten(),
            processes_are_hidden,
            holders,
            is_in_container,
            strangers: glances.strangers,
            unread,
            owners,
            pages_of_strangers,
            stopped,
            stopped_clusters: StoppedClusters::default(),
            meminfo: host.meminfo,
            notes: notes.into_vec(),
        };
        Self { host, servers }
    }

    /// The host with an assessment of each server beside the others. `reserve_percent`: what it keeps for base pages.
    pub fn assess(&self, reserve_percent: u32) -> Survey {
        let compared = Comparison::new(&self.servers, &self.host, reserve_percent);
        let instances = self.servers.iter().map(|server| server.assess(&compared));
        Survey { instances: instances.collect(), host: self.host.clone(), reserve_percent }
    }
}

impl Survey {
    /// The sizings for the servers that run and the Oracle instances that do not.
    pub fn sizings(&self) -> Vec<Sizing> {
        self.sizings_beside(&self.host.stopped_needs())
    }

    /// A sizing for each page size that a server needs or that has pages. `down`: servers that do not run.
    pub fn sizings_beside(&self, down: &[(Option<PageSize>, PoolNeed)]) -> Vec<Sizing> {
        let default = self.host.default_page_size();
        let sizing = |pool: &Pool| {
            let size = pool.page_size;
            let of_size = |instance: &&Instance| instance.planned().facts.pool_state.huge_page_size == Some(size);
            let running = self.instances.iter().filter(of_size).map(Instance::need);
            let down = down.iter().filter(|(wanted, _)| wanted.or(default) == Some(size)).map(|(_, need)| need.clone());
            let next = self.instances.iter().filter_map(|instance| instance.need_next(size));
            let mut sizing = self.host.sizing(pool, running.chain(next).chain(down).collect(), self.reserve_percent);
            let is_unknown = |instance: &Instance| instance.status.needed.is_none();
            if !self.host.unread.is_empty() || self.instances.iter().filter(of_size).any(is_unknown) {
                // One has, or wants, pages that are not visible.
                sizing.recommended = None;
            }
            sizing
        };
        let wanted =
            |sizing: &Sizing| !sizing.needs.is_empty() || sizing.others > Pages(0) || default == Some(sizing.page_size);
        pools::of_host(&self.host.pools).map(|row| sizing(&row.pool)).filter(wanted).collect()
    }
}

impl InspectContext<'_> {
    /// Every server that counts, inspected by its user's reader, in the order of process ids. `glances` gets those that are none.
    fn servers(&self, glances: &mut Glances, unread: &mut Vec<Unread>) -> Vec<InspectedServer> {
        let candidates = std::mem::take(&mut glances.candidates);
        let (owners, candidates): (Vec<_>, Vec<_>) = Owner::of_processes(self.root, candidates).into_iter().unzip();
        let read = |number: usize| {
            let found = FoundServers::among(&self.accounts, &candidates[number]);
            let servers: Vec<_> = found.servers.iter().filter_map(|found| self.inspect(found)).collect();
            (servers, found.others)
        };
        let mut servers = Vec::new();
        let answers = readers::read_each(&owners, read);
        for ((owner, candidates), answer) in owners.iter().zip(candidates).zip(answers) {
            let Ok((mut found, others)) = answer.map_err(|why| why.add_to(unread)) else { continue };
            // Whose they are it does not say itself.
            found.retain(|server| candidates.iter().any(|one| one.pid == server.id.pid));
            found.iter_mut().for_each(|server| server.id.reader = owner.clone());
            servers.extend(found);
            glances.add_found(&self.accounts, candidates, &others);
        }
        servers.sort_by_key(|server| server.id.pid);
        servers
    }
}
