//! What one server asked for and has, and what its next start asks for, decided from what was read of it alone.

use std::path::{Path, PathBuf};

use hugepage_assess::assessment::base_limits;
use hugepage_assess::model::{
    CrashRecovery, Demand, Facts, HugePages, NodePools, Pending, PoolFact, PoolState, Requested,
    Segment,
};
use hugepage_facts::{
    HostFacts, Landing, PostgreSqlSettings, RunningOracle, ServerFacts, ServerProduct, pools,
};
use hugepage_kernel::memory::pool::{NodePool, from_meminfo};
use hugepage_kernel::{Bytes, MemoryPolicy, Notes, PageSize, Pages, PoolAtBoot};
use hugepage_oracle::next_start::{RunningLimits, next_start};
use hugepage_oracle::running;

use crate::next_start::StartFiles;
use crate::postgresql::{changed_since, has_configuration};
use crate::postgresql_settings::{
    invalid, max_connections, option_with_effect, requested_by_settings,
};
use crate::segment::segment_of;

/// The first major with `huge_page_size`.
const FIRST_WITH_PAGE_SIZE: u32 = 14;

/// What `server` asked for and has, and asks for at its next start, as if it were alone. What could not be read of it, and what of it is
/// not known by that, is a note.
pub(super) fn alone(
    host: &HostFacts,
    server: &ServerFacts,
    reserve_percent: u32,
    notes: &mut Notes,
) -> Facts {
    notes.extend(&server.notes);
    let requested = match &server.id.product {
        ServerProduct::PostgreSql(its) => requested_at_start(&its.settings),
        ServerProduct::Oracle(its) => running::requested(its, notes),
    };
    let segment = segment_of(host, server, &requested, notes);
    let in_use = segment
        .as_ref()
        .filter(|segment| segment.in_huge_pages > Bytes(0));
    let size = in_use
        .and_then(|segment| segment.page_size)
        .or(requested.huge_page_size)
        .or(host.default_page_size());
    let of_server = Finder { host, server };
    let pool_state = of_server.pool_state(size, &requested, segment.as_ref(), notes);
    let meminfo = host.meminfo.clone();
    let mut facts = Facts::new(requested, segment, pool_state, meminfo, reserve_percent);
    facts.has_other_pools = of_server.has_other_pools(size);
    facts.next_boot = size.map(|size| host.next_boot.pool(size));
    match &server.id.product {
        ServerProduct::PostgreSql(its) => of_server.postgresql(&mut facts, &its.settings, notes),
        ServerProduct::Oracle(its) => of_server.oracle(&mut facts, its, notes),
    }
    facts
}

/// Keeps what the server was certainly started with, and what its files ask for if that is another. `has_changed`: the files, since
/// then.
fn correct_start(facts: &mut Facts, settings: &PostgreSqlSettings, has_changed: bool) {
    let has_configuration = has_configuration(settings);
    facts.requested_may_differ = has_changed || !has_configuration;
    facts.requested_is_assumed = !has_configuration || !settings.can_see;
    let is_off = facts.requested.huge_pages == HugePages::Off;
    let landing = facts.landing();
    match landing {
        Landing::Hugetlb if has_changed => facts.requested.sysv = false,
        // With "on" it would not have started.
        Landing::Base if has_changed && facts.requested.huge_pages == HugePages::On => {
            facts.requested.huge_pages = HugePages::Try;
        }
        _ => {}
    }
    if !has_configuration {
        facts.pending = Pending::Unknown;
    } else if landing == Landing::Hugetlb
        && is_off
        && let Some(segment) = &facts.segment
    {
        // A server in huge pages was not started with "off": that is for the next start, and a crash keeps what it has.
        let demand = Demand {
            requested: facts.requested,
            max_connections: max_connections(&settings.configured.effective()),
            shared_memory: segment.size,
        };
        facts.pending = Pending::Changed(demand, facts.pool_state.clone());
        facts.requested.huge_pages = HugePages::Try;
    }
}

/// Whether what is on disk can't be what it was started with.
fn is_of_other_files(
    facts: &Facts,
    settings: &PostgreSqlSettings,
    default: Option<PageSize>,
) -> bool {
    let size = facts.requested.huge_page_size.or(default);
    let files = &settings.configured.files;
    let has_less = |its: &Segment| {
        its.size < facts.requested.shared_buffers && files.contains_key("shared_buffers")
    };
    let is_other = |its: PageSize| Some(its) != size && facts.landing() == Landing::Hugetlb;
    facts
        .segment
        .as_ref()
        .is_some_and(|its| has_less(its) || its.page_size.is_some_and(is_other))
}

/// What the settings ask for, but io_uring as it is seen: that runs, whatever the files say by now.
fn requested_at_start(settings: &PostgreSqlSettings) -> Requested {
    let effective = settings.configured.effective();
    let requested = requested_by_settings(&effective, &mut Notes::default());
    Requested {
        io_uring: settings.has_rings.unwrap_or(requested.io_uring),
        ..requested
    }
}

/// Finds what a start of one server meets.
#[derive(Clone, Copy)]
struct Finder<'a> {
    host: &'a HostFacts,
    server: &'a ServerFacts,
}

impl Finder<'_> {
    /// What a start finds that asks for `requested`, with pages of `size`, once the server has ended, which has `segment`.
    fn pool_state(
        self,
        size: Option<PageSize>,
        requested: &Requested,
        segment: Option<&Segment>,
        notes: &mut Notes,
    ) -> PoolState {
        let Self { host, server } = self;
        let pool = pool_fact(host, size, notes);
        let of_size = size.and_then(|size| server.limits.get(&size));
        notes.extend(of_size.iter().flat_map(|of_size| &of_size.notes));
        let base_limits = base_limits(
            &host.kernel,
            server.shares_ipc,
            requested,
            segment,
            host.meminfo.as_ref(),
        );
        PoolState {
            huge_page_size: size,
            nodes: self.nodes(&pool),
            pool,
            limits: of_size.and_then(|of_size| of_size.limits.clone()),
            lock_limit: None,
            base_limits,
        }
    }

    /// The node pools of the server; `None` if the host has one node, or the pool has no pages and the server may use all nodes.
    fn nodes(self, pool: &PoolFact) -> Option<NodePools> {
        let pool = pool.known()?;
        let of_size = |row: &&pools::PoolRow| row.pool.page_size == pool.page_size;
        let share = |row: &pools::PoolRow| {
            Some(NodePool {
                node: row.node?,
                pool: row.pool.clone(),
                memory: None,
            })
        };
        let rows = self.host.pools.iter().filter(of_size);
        let nodes = NodePools {
            pools: rows.filter_map(share).collect(),
            allowed: self.server.allowed_nodes.clone(),
            policy: MemoryPolicy::Unknown,
        };
        let may_matter = pool.nr > Pages(0) && nodes.pools.len() > 1;
        (may_matter || nodes.is_restricted()).then_some(nodes)
    }

    /// Whether pools of another size than `size` have pages, or may get some, for a server that can ask for them.
    fn has_other_pools(self, size: Option<PageSize>) -> bool {
        let id = &self.server.id;
        let can_ask = id.postgresql().is_some()
            && id.major().is_none_or(|major| major >= FIRST_WITH_PAGE_SIZE);
        can_ask
            && pools::of_host(&self.host.pools)
                .any(|row| Some(row.pool.page_size) != size && row.pool.may_serve())
    }

    /// `facts`: what was seen, as if the files were what the instance was started with.
    fn oracle(self, facts: &mut Facts, oracle: &RunningOracle, notes: &mut Notes) {
        let limits = RunningLimits {
            kernel: &self.host.kernel,
            rights: oracle.lock_rights.as_ref(),
            memlock: self.server.memory.memlock,
            group: self.host.kernel.system_v.hugetlb_shm_group,
        };
        (facts.pool_state.lock_limit, facts.pending) =
            next_start(&oracle.settings, &facts.current_start(), &limits, notes);
        let next = facts.start_next().unwrap_or(facts.start_again());
        // A pool that is too small then is known to lose it.
        let at_boot = facts.next_boot.as_ref().and_then(PoolAtBoot::pages);
        if at_boot >= next.needed()
            && limits.loses_by(
                self.host.next_boot.shm_group(),
                next.size.unwrap_or_default(),
            )
        {
            facts.next_boot = Some(PoolAtBoot::Unknown(
                "nothing seen sets vm.hugetlb_shm_group as it is now".to_owned(),
            ));
        }
    }

    /// `facts`: what was seen, as if the files were what the server was started with.
    fn postgresql(self, facts: &mut Facts, settings: &PostgreSqlSettings, notes: &mut Notes) {
        let change = changed_since(settings, self.server.id.started);
        correct_start(facts, settings, change.is_some());
        let version = self.server.id.version.as_deref();
        let files = version.zip(settings.data.as_ref());
        let files = files.map(|(version, data)| StartFiles {
            version,
            data,
            configured: &settings.configured,
        });
        let configured = &settings.configured;
        let invalid = change.and_then(|_| invalid(configured));
        let pending = match configured.missing.clone().or(invalid) {
            Some(error) => Pending::Refused(error),
            None => self.pending(facts, settings, change, files.as_ref(), notes),
        };
        facts.crash_recovery = match files {
            Some(files) => files.crash_recovery(change.is_some()),
            None if has_configuration(settings) => CrashRecovery::Possible,
            None => CrashRecovery::Unknown("its data directory could not be read".to_owned()),
        };
        // With unchanged files a restart compares the same settings.
        facts.pending = match &facts.crash_recovery {
            CrashRecovery::Refused(error) => Pending::Refused(error.clone()),
            CrashRecovery::Unknown(_) if change.is_none() => Pending::Unknown,
            _ => pending,
        };
    }

    /// What the next start asks for by the files and the command line of the server.
    fn pending(
        self,
        facts: &Facts,
        settings: &PostgreSqlSettings,
        change: Option<&PathBuf>,
        files: Option<&StartFiles<'_>>,
        notes: &mut Notes,
    ) -> Pending {
        let pid = self.server.id.pid;
        let default = self.host.default_page_size();
        let pending = match change {
            // Also with "off" on disk: the server may refuse its files.
            Some(path) if facts.pending != Pending::Unknown => {
                self.changed(facts, settings, path, files, notes)
            }
            None if facts.pending == Pending::Unchanged
                && is_of_other_files(facts, settings, default) =>
            {
                notes.add(format!(
                    "process {pid} was started with another configuration than that on disk"
                ));
                Pending::Unknown
            }
            _ => facts.pending.clone(),
        };
        if pending == Pending::Unknown {
            return pending;
        }
        self.other_start(settings).map_or(pending, |why| {
            notes.add(why);
            Pending::Unknown
        })
    }

    /// What files ask for that have changed since the start, by what the program of the server said.
    fn changed(
        self,
        facts: &Facts,
        settings: &PostgreSqlSettings,
        path: &Path,
        files: Option<&StartFiles<'_>>,
        notes: &mut Notes,
    ) -> Pending {
        let default = self.host.default_page_size();
        let current = facts.current_start();
        let pool_state = |requested: &Requested| {
            let size = requested.huge_page_size.or(default);
            self.pool_state(size, requested, current.segment, notes)
        };
        let asked = files.zip(settings.answer.as_ref());
        let pending = asked.ok_or_else(String::new).and_then(|(files, answer)| {
            let pending = files.pending(answer, &current, default, pool_state);
            pending.map_err(|why| format!(": {why}"))
        });
        pending.unwrap_or_else(|why| {
            notes.add(format!(
                "\"{}\" has changed since the server with process {} started, so what a restart needs is unknown \
                 from outside{why}; hugepage_preflight() in the server shows it",
                path.display(),
                self.server.id.pid
            ));
            Pending::Unknown
        })
    }

    /// Why a restart may be another start than that of the server, whatever its files say.
    fn other_start(self, settings: &PostgreSqlSettings) -> Option<String> {
        let pid = self.server.id.pid;
        let option = option_with_effect(&settings.configured);
        if let Some(name) = option.filter(|_| settings.is_first_process != Some(true)) {
            let why = "which only pg_ctl restart repeats, so what another restart needs is unknown";
            return Some(format!(
                "the command line of process {pid} sets {name}, {why}"
            ));
        }
        let path = settings.replaced_program.as_ref()?;
        Some(format!(
            "\"{path}\" has changed since process {pid} started, so what a restart needs is unknown"
        ))
    }
}

/// The pool of pages of `size`; `None` is the size that the kernel does not have.
fn pool_fact(host: &HostFacts, size: Option<PageSize>, notes: &mut Notes) -> PoolFact {
    let Some(size) = size else {
        // Meminfo has no default size: the kernel has no huge pages, if /sys confirms it.
        let sizes = host.page_sizes.clone().filter(Vec::is_empty);
        return sizes.map_or(PoolFact::Unknown, PoolFact::Unsupported);
    };
    if let Some(pool) = host.pool(size) {
        return PoolFact::Known(pool.clone());
    }
    // The kernel has its default size, also where /sys does not show it.
    let is_default = host.default_page_size() == Some(size);
    match &host.page_sizes {
        Some(sizes) if !is_default && !sizes.contains(&size) => {
            return PoolFact::Unsupported(sizes.clone());
        }
        _ => notes.add(format!(
            "the pool of {size} pages could not be read; see the notes on the host"
        )),
    }
    // On a kernel before 2.6.27, or with a hidden /sys, meminfo has only the pool of the default size.
    let of_default = host.meminfo.as_ref().and_then(from_meminfo);
    let of_default = of_default.filter(|pool| pool.page_size == size);
    of_default.map_or(PoolFact::Unknown, PoolFact::Known)
}
