//! What one server asked for at its start, and asks for at the next one.

use std::time::Duration;

use hugepage_assess::model::{
    CrashRecovery, CurrentStart, Demand, HugePages, Landing, Pending, PoolFact, PoolState, Requested, Segment,
};
use hugepage_assess::pools;
use hugepage_kernel::cgroups::cgroup::CgroupLimits;
use hugepage_kernel::mapping::memory_policy::MemoryPolicy;
use hugepage_kernel::notes::Notes;
use hugepage_kernel::proc::process;
use hugepage_kernel::{Bytes, InstanceFiles, PageSize};
use hugepage_oracle::next_start::{lock_limit, next_start};
use hugepage_oracle::start_limits;
use hugepage_server::server::{nodes_of_process, pool_of_size};
use serde::{Deserialize, Serialize};

use super::context::{InspectContext, ServerSettings};
use super::identify::ServerIdentity;
use super::next_start::{ServerFiles, StartProgram};
use super::observe::ObservedMemory;
use super::postgresql::PostgreSqlSettings;
use crate::processes::memory_limit;

/// What a server asked for and has, and what its next start asks for.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct ServerRequest {
    pub(super) requested: Requested,
    /// Whether the files with `requested` have changed since the start.
    pub(super) requested_may_differ: bool,
    pub(super) segment: Option<Segment>,
    pub(super) pool_state: PoolState,
    pub(super) other_pools: Vec<PoolState>,
    pub(super) pending: Pending,
    pub(super) crash_recovery: CrashRecovery,
}

impl ServerRequest {
    /// What the next start is compared with.
    pub(super) fn current_start(&self) -> CurrentStart<'_> {
        let huge_page_size = self.pool_state.huge_page_size;
        CurrentStart { requested: self.requested, segment: self.segment.as_ref(), huge_page_size }
    }

    /// Whether what is on disk can't be what it was started with.
    fn is_of_other_files(&self, settings: &PostgreSqlSettings, default: Option<PageSize>) -> bool {
        let (size, files) = (self.requested.huge_page_size.or(default), &settings.configured.files);
        let has_less =
            |its: &Segment| its.size < self.requested.shared_buffers && files.get("shared_buffers").is_some();
        let is_other = |its: PageSize| Some(its) != size && self.current_start().landing() == Landing::Hugetlb;
        self.segment.as_ref().is_some_and(|its| has_less(its) || its.page_size.is_some_and(is_other))
    }
}

impl InspectContext<'_> {
    /// What the server asked for, and asks for at its next start.
    pub(super) fn request(
        &self,
        files: &InstanceFiles,
        id: &ServerIdentity,
        settings: ServerSettings,
        memory: &ObservedMemory,
        notes: &mut Notes,
    ) -> ServerRequest {
        let requested = settings.requested();
        let segment = self.segment(id, &requested, memory, notes);
        let in_use = segment.as_ref().filter(|segment| segment.in_huge_pages > Bytes(0));
        let size = in_use.and_then(|segment| segment.page_size).or(requested.huge_page_size).or(self.default);
        let mut unchanged = ServerRequest {
            requested,
            requested_may_differ: false,
            pool_state: self.pool_state(id.pid, size, notes),
            other_pools: self.other_pools(id, size),
            segment,
            pending: Pending::Unchanged,
            crash_recovery: CrashRecovery::default(),
        };
        if let Some(segment) = unchanged.segment.as_mut().filter(|segment| segment.in_huge_pages == Bytes(0)) {
            let memory = memory_limit::of_process(self.root, id.pid, &self.mounts);
            memory_limit::bound_need(memory, unchanged.pool_state.limits.as_ref(), segment, notes);
        }
        match settings {
            ServerSettings::PostgreSql(settings) => self.postgresql_request(unchanged, files, id, &settings, notes),
            ServerSettings::Oracle(_, settings) => {
                let current = unchanged.current_start();
                let lacks = |segment: Option<&Segment>| lock_limit(self.root, id.pid, segment, memory.memlock);
                let beyond = |size, own| start_limits::of_host(self.root, size, own);
                let (lock_limit, pending) =
                    next_start(&settings, &current, &unchanged.pool_state, lacks, beyond, notes);
                let pool_state = PoolState { lock_limit, ..unchanged.pool_state };
                ServerRequest { pool_state, pending, ..unchanged }
            }
        }
    }

    fn segment(
        &self,
        id: &ServerIdentity,
        requested: &Requested,
        memory: &ObservedMemory,
        notes: &mut Notes,
    ) -> Option<Segment> {
        // Where the kernel lacks the size, nothing is rounded up to it.
        let has_pool = |size: &PageSize| pools::of_size(&self.pools, *size).is_some();
        let wanted = requested.huge_page_size.filter(has_pool).or(self.default);
        let segment = memory.shared.as_ref()?.segment(self.base?, wanted)?;
        Some(self.unless_transparent(segment, id.pid, notes))
    }

    /// What a start of the server `pid` with pages of `huge_page_size` finds.
    pub(super) fn pool_state(&self, pid: i32, huge_page_size: Option<PageSize>, notes: &mut Notes) -> PoolState {
        let pool = match huge_page_size.and_then(|size| pools::of_size(&self.pools, size)) {
            Some(row) => PoolFact::Known(row.pool.clone()),
            None => pool_of_size(self.root, huge_page_size, self.meminfo.as_ref(), notes),
        };
        let limits = huge_page_size.and_then(|size| match &self.hierarchy {
            None => {
                notes.add("cgroup limits could not be determined; see the notes on the host");
                None
            }
            Some(None) => Some(CgroupLimits::default()),
            Some(Some(hierarchy)) => Some(hierarchy.limits_of(self.root, &pid.to_string(), size, notes)),
        });
        let nodes = nodes_of_process(self.root, &pool, &pid.to_string(), |_| MemoryPolicy::Unknown, notes);
        PoolState { huge_page_size, pool, limits, nodes, lock_limit: None }
    }
}

/// The kernel tells the start of a process, and how long it is up, in hundredths of a second (proc(5)).
const START_PRECISION: Duration = Duration::from_millis(20);

impl InspectContext<'_> {
    /// `unchanged`: what was seen, as if the files were what the server was started with.
    fn postgresql_request(
        &self,
        unchanged: ServerRequest,
        files: &InstanceFiles,
        id: &ServerIdentity,
        settings: &PostgreSqlSettings,
        notes: &mut Notes,
    ) -> ServerRequest {
        let is_later = |at| id.started.is_some_and(|started| at > started + START_PRECISION);
        let change = settings.last_change.as_ref().filter(|(at, _)| is_later(*at)).map(|(_, path)| path);
        // What runs is seen, whatever the files say by now.
        let io_uring = process::has_rings(self.root, id.pid).unwrap_or(unchanged.requested.io_uring);
        let unchanged = ServerRequest { requested: Requested { io_uring, ..unchanged.requested }, ..unchanged };
        let request = at_start(unchanged, settings, change.is_some());
        let server = server_files(files, id, settings);
        let pending = match change {
            // Also with "off" on disk: the server may refuse its files.
            Some(path) if request.pending != Pending::Unknown => {
                let pending = self.pending_of_changed(id, server.as_ref(), &request.current_start(), notes);
                pending.unwrap_or_else(|why| {
                    notes.add(format!(
                        "\"{}\" has changed since the server with process {} started, so what a restart needs is unknown \
                         from outside{why}; hugepage_preflight() in the server shows it",
                        path.display(),
                        id.pid
                    ));
                    Pending::Unknown
                })
            }
            None if request.pending == Pending::Unchanged && request.is_of_other_files(settings, self.default) => {
                notes.add(format!("process {} was started with another configuration than that on disk", id.pid));
                Pending::Unknown
            }
            _ => request.pending,
        };
        let crash_recovery = server.map(|server| crash_recovery(&server, change.is_some())).unwrap_or_default();
        let missing = settings.configured.files.missing.clone();
        let pending = missing.filter(|_| change.is_none()).map_or(pending, Pending::Refused);
        // With unchanged files a restart compares the same settings.
        let pending = match &crash_recovery {
            CrashRecovery::Refused(error) => Pending::Refused(error.clone()),
            CrashRecovery::Unknown(_) if change.is_none() => Pending::Unknown,
            CrashRecovery::Unknown(_) | CrashRecovery::Possible => pending,
        };
        ServerRequest { pending, crash_recovery, ..request }
    }

    /// What the changed files of a server come to; the error is why that is unknown, for the middle of a sentence.
    fn pending_of_changed(
        &self,
        id: &ServerIdentity,
        server: Option<&ServerFiles<'_>>,
        current: &CurrentStart<'_>,
        notes: &mut Notes,
    ) -> Result<Pending, String> {
        let (Some(ask), Some(server)) = (self.ask, server) else { return Err(String::new()) };
        let pool_state = |size: Option<PageSize>| self.pool_state(id.pid, size.or(self.default), notes);
        server.pending(ask, current, self.default, pool_state).map_err(|why| format!(": {why}"))
    }
}

/// What the server was certainly started with, and what its files ask for if that is another. `has_changed`: the files, since then.
fn at_start(seen: ServerRequest, settings: &PostgreSqlSettings, has_changed: bool) -> ServerRequest {
    let landing = seen.current_start().landing();
    let requested = match landing {
        Landing::Hugetlb if has_changed => Requested { sysv: false, ..seen.requested },
        // With "on" it would not have started.
        Landing::Base if has_changed && seen.requested.huge_pages == HugePages::On => {
            Requested { huge_pages: HugePages::Try, ..seen.requested }
        }
        _ => seen.requested,
    };
    let (requested, pending) = match &seen.segment {
        _ if !settings.has_configuration => (requested, Pending::Unknown),
        // A server in huge pages was not started with "off": that is for the next start, and a crash keeps what it has.
        Some(segment) if landing == Landing::Hugetlb && requested.huge_pages == HugePages::Off => {
            let max_connections = settings.max_connections;
            let demand = Demand { requested, max_connections, shared_memory: segment.size };
            (Requested { huge_pages: HugePages::Try, ..requested }, Pending::Changed(demand, seen.pool_state.clone()))
        }
        _ => (requested, Pending::Unchanged),
    };
    ServerRequest { requested, requested_may_differ: has_changed, pending, ..seen }
}

/// What the next start of a server depends on; `None` if its files may not be read.
fn server_files<'a>(
    files: &'a InstanceFiles,
    id: &'a ServerIdentity,
    settings: &'a PostgreSqlSettings,
) -> Option<ServerFiles<'a>> {
    Some(ServerFiles {
        program: StartProgram::Running(id.pid),
        version: id.version.as_deref()?,
        directory: id.postgresql()?.directory.as_deref()?,
        files,
        configured: &settings.configured,
    })
}

/// Whether a standby would recover after a crash with the settings that it was started with.
fn crash_recovery(server: &ServerFiles<'_>, has_changed: bool) -> CrashRecovery {
    if !server.is_standby() {
        return CrashRecovery::Possible;
    }
    if has_changed {
        let why = "whether the standby recovers after a crash depends on the settings that it was started with, and its files have \
                   changed since: they must be as high as those of its primary";
        return CrashRecovery::Unknown(why.to_owned());
    }
    server.crash_recovery().unwrap_or_else(|why| {
        CrashRecovery::Unknown(format!("whether the standby recovers after a restart or a crash is unknown: {why}"))
    })
}
