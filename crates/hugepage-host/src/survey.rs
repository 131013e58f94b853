//! The survey of a host: its pools, and every database server on it.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

use hugepage_assess::model::PoolHolder;
use hugepage_assess::pools::{self, PoolRow};
use hugepage_kernel::cgroups::cgroup::Hierarchy;
use hugepage_kernel::host::identity;
use hugepage_kernel::host::mounts;
use hugepage_kernel::mapping::shm_devices::Devices;
use hugepage_kernel::memory::meminfo::{LXCFS, Meminfo};
use hugepage_kernel::memory::pool::Pool;
use hugepage_kernel::memory::thp;
use hugepage_kernel::next_boot::NextBoot;
use hugepage_kernel::notes::Notes;
use hugepage_kernel::proc::{namespace, process};
use hugepage_kernel::{Bytes, PageSize, Root};
use hugepage_oracle::start_limits::HostOfStarts;
use hugepage_oracle::stopped::StoppedOracle;

use crate::compare::Comparison;
use crate::context::InspectContext;
use crate::discover::FoundServers;
use crate::glances::{Candidate, Glances};
use crate::inspect::InspectedServer;
use crate::readers::{self, Owner, Unread};
use crate::service_accounts::ServiceAccounts;
use crate::snapshot::{HostFacts, Snapshot, StoppedClusters};
use crate::{AskStart, Instance, ServerIdentity, holders, stopped_readers};

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
        let mut glances = Glances::look(root, &host.accounts, &mut notes);
        let mut unread = Vec::new();
        let servers = host.servers(&mut glances, &mut unread);
        let owners = host.accounts.owners(root);
        let stopped = host.stopped_oracle(&servers, &owners, &mut unread, &mut notes);
        let of_holders = || host.holders(&glances);
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
        let of_pool = |pool: &Pool| {
            holders::strangers(pool, &servers, &glances, promised.as_deref().filter(|_| sees_all), &holders)
        };
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

impl<'a> InspectContext<'a> {
    /// What is the same for all servers. What could not be read is a note.
    fn read(root: &'a Root, service_accounts: &[String], ask: Option<&'a AskStart<'a>>, notes: &mut Notes) -> Self {
        let meminfo = notes.keep(Meminfo::read(root));
        let hierarchy = notes.keep(Hierarchy::find(root));
        let pools = hugepage_server::pools::rows(root, hierarchy.as_ref(), notes);
        let context = Self {
            root,
            booted: OnceCell::new(),
            default: meminfo.as_ref().and_then(|meminfo| meminfo.huge_page_size),
            base: notes.keep(root.base_page_size()),
            accounts: ServiceAccounts::read(root, service_accounts, notes),
            devices: notes.keep(Devices::find(root)).unwrap_or_default(),
            hierarchy,
            meminfo: with_hugetlb(meminfo, &pools),
            mounts: root.read(mounts::PATH).unwrap_or_default(),
            pools,
            ask,
        };
        if context.meminfo.as_ref().is_some_and(|meminfo| meminfo.is_of_lxcfs) {
            notes.add(LXCFS);
        }
        context
    }

    /// The Oracle instances of oratab that do not run.
    fn stopped_oracle(
        &self,
        servers: &[InspectedServer],
        owners: &[Owner],
        unread: &mut Vec<Unread>,
        notes: &mut Notes,
    ) -> Vec<StoppedOracle> {
        let held = |uid| {
            let of_user = servers.iter().filter(|server: &&InspectedServer| server.id.place.uid == Some(uid));
            of_user.map(InspectedServer::held).fold(Bytes(0), Bytes::saturating_add)
        };
        let (meminfo, pools) = (self.meminfo.as_ref(), &self.pools);
        let of_starts = HostOfStarts { root: self.root, meminfo, pools, held: &held };
        // This host's oratab has nothing of a container.
        let of_host = servers.iter().map(|server| &server.id).filter(|id| id.place.container.is_none());
        let running: Vec<_> = of_host.filter_map(ServerIdentity::named_oracle).collect();
        stopped_readers::stopped_oracle(owners, &of_starts, &running, unread, notes)
    }

    /// Every server that counts, inspected by its user's reader, in the order of process ids. `glances` gets those that are none.
    fn servers(&self, glances: &mut Glances, unread: &mut Vec<Unread>) -> Vec<InspectedServer> {
        let (owners, candidates): (Vec<_>, Vec<_>) =
            Owner::of_processes(self.root, glances.take_candidates(self.root)).into_iter().unzip();
        let read = |number: usize| self.servers_of(&candidates[number]);
        let mut servers = Vec::new();
        let answers = readers::read_each(&owners, read);
        for ((owner, candidates), answer) in owners.iter().zip(candidates).zip(answers) {
            let Ok((mut found, refused, others)) = answer.map_err(|why| why.add_to(unread)) else { continue };
            // Whose they are it does not say itself.
            found.retain(|server| candidates.iter().any(|one| one.pid == server.id.pid));
            found.iter_mut().for_each(|server| server.id.reader = owner.clone());
            servers.extend(found);
            glances.add_found(self.root, &self.accounts, candidates, &refused, &others);
        }
        servers.sort_by_key(|server| server.id.pid);
        servers
    }

    /// The servers of one user, who does not count and why, and the processes that are of no server.
    fn servers_of(&self, candidates: &[Candidate]) -> (Vec<InspectedServer>, BTreeMap<i32, String>, BTreeSet<i32>) {
        let FoundServers { servers, refused, others } = FoundServers::among(self.root, &self.accounts, candidates);
        let servers = servers.iter().filter_map(|found| self.inspect(found)).collect();
        (servers, refused, others)
    }

    /// The programs that have huge pages, and what root's have mapped of each size and not touched.
    fn holders(&self, glances: &Glances) -> (Vec<PoolHolder>, Vec<(PageSize, Bytes)>) {
        let holders = holders::holders(self.root, &self.accounts, &self.pools, &self.devices, &glances.holders);
        let of_pool = |row: &PoolRow| {
            let size = row.pool.page_size;
            (size, holders::promised_to_root(self, size, &glances.of_root))
        };
        (holders, pools::of_host(&self.pools).map(of_pool).collect())
    }
}

/// Kernels before 4.19 do not show the sum of all pools in meminfo.
fn with_hugetlb(meminfo: Option<Meminfo>, pools: &[PoolRow]) -> Option<Meminfo> {
    let mut meminfo = meminfo?;
    meminfo.hugetlb = meminfo.hugetlb.or_else(|| Some(pools::memory(pools::of_host(pools))));
    Some(meminfo)
}
