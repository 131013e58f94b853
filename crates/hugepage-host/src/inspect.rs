//! Inspects one server: what it is, what it has, what it asked for at its start, and what it asks for at the next one.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use hugepage_assess::model::{
    CrashRecovery, CurrentStart, Demand, HugePages, Landing, Past, Pending, PoolFact, PoolState, Requested, Segment,
};
use hugepage_assess::pools;
use hugepage_kernel::cgroups::cgroup::CgroupLimits;
use hugepage_kernel::fields::value;
use hugepage_kernel::mapping::memory_policy::MemoryPolicy;
use hugepage_kernel::proc::process;
use hugepage_kernel::{Bytes, InstanceFiles, Notes, PageSize};
use hugepage_oracle::next_start::{RunningLimits, lacks_group, next_start};
use hugepage_server::server::{nodes_of_process, pool_of_size};
use serde::{Deserialize, Serialize};

use super::context::InspectContext;
use super::control_group::{beyond_limit, memory_limit};
use super::discover::DiscoveredServer;
use super::identify::{ServerIdentity, ServerSettings};
use super::memory::ObservedMemory;
use super::next_start::{ServerFiles, StartProgram, of_service};
use super::postgresql::{Configured, PostgreSqlSettings, max_connections};
use super::processes::Credentials;

/// The first major with `huge_page_size`.
const FIRST_WITH_PAGE_SIZE: u32 = 14;
/// The kernel tells the start of a process, and how long it is up, in hundredths of a second (proc(5)).
const START_PRECISION: Duration = Duration::from_millis(20);

/// All that a server shows by itself.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct InspectedServer {
    pub(super) id: ServerIdentity,
    pub(super) memory: ObservedMemory,
    pub(super) request: ServerRequest,
    /// What could not be read of it.
    pub(super) notes: Vec<String>,
    /// What was recorded at its start.
    pub(super) past: Past,
    /// What could not be read of that.
    pub(super) notes_on_past: Vec<String>,
}

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
    /// `None` for a postgres program without shared memory, such as one that initialises or only answers a question.
    pub(super) fn inspect(&self, found: &DiscoveredServer) -> Option<InspectedServer> {
        let mut notes = Notes::default();
        let stat = notes.keep(process::stat(self.root, found.pid)).flatten();
        let after_boot = stat.map(|stat| stat.start_after_boot());
        let started = after_boot.and_then(|time| notes.keep(process::boot_time(self.root))?.checked_add(time));
        let (memory, is_in_shm) = self.observe(found, &mut notes)?;
        let files = &InstanceFiles::of_process(self.root, found.pid);
        let (id, settings) = self.identify(found, files, started, &memory, is_in_shm, &mut notes);
        let request = self.request(files, &id, settings, &memory, &mut notes);
        let (past, notes_on_past) = Default::default();
        // Its number may be another process's by now.
        let is_it = Credentials::read(self.root, found.pid) == found.users;
        let notes = notes.into_vec();
        is_it.then_some(InspectedServer { id, memory, request, notes, past, notes_on_past })
    }

    /// What the server asked for, and asks for at its next start.
    fn request(
        &self,
        files: &InstanceFiles,
        id: &ServerIdentity,
        settings: ServerSettings,
        memory: &ObservedMemory,
        notes: &mut Notes,
    ) -> ServerRequest {
        let requested = match &settings {
            ServerSettings::PostgreSql(settings) => settings.requested,
            ServerSettings::Oracle(requested, _) => *requested,
        };
        let segment = self.segment(id.pid, &requested, memory, notes);
        let in_use = segment.as_ref().filter(|segment| segment.in_huge_pages > Bytes(0));
        let size = in_use.and_then(|segment| segment.page_size).or(requested.huge_page_size).or(self.default);
        let unchanged = ServerRequest {
            requested,
            requested_may_differ: false,
            pool_state: self.pool_state(id.pid, size, notes),
            other_pools: self.other_pools(id, size),
            segment,
            pending: Pending::Unchanged,
            crash_recovery: CrashRecovery::default(),
        };
        let mut request = match settings {
            ServerSettings::PostgreSql(settings) => self.postgresql_request(unchanged, files, id, &settings, notes),
            ServerSettings::Oracle(_, settings) => {
                let current = unchanged.current_start();
                let (root, gid) = (self.root, lacks_group(self.root, id.pid));
                let owner = id.place.uid.filter(|_| id.place.container.is_none());
                let limits = RunningLimits { root, owner, gid, memlock: memory.memlock };
                let (lock_limit, pending) = next_start(&settings, &current, &unchanged.pool_state, &limits, notes);
                let pool_state = PoolState { lock_limit, ..unchanged.pool_state };
                ServerRequest { pool_state, pending, ..unchanged }
            }
        };
        let wants = request.pending.may_request_next(requested) && !matches!(request.pending, Pending::Refused(_));
        let in_base = request.segment.as_ref().filter(|segment| wants && segment.in_huge_pages == Bytes(0));
        let of_group = || memory_limit(self.root, id.pid, &self.mounts);
        let limits = request.pool_state.limits.as_ref();
        if let Some(why) = in_base.and_then(|segment| beyond_limit(of_group(), limits, segment)) {
            notes.add(why);
            (request.pending, request.pool_state.pool) = (Pending::Unknown, PoolFact::Unknown);
        }
        request
    }

    /// What a start with each other page size than `size` would find, of those that have pages or may get some. Empty for Oracle.
    fn other_pools(&self, id: &ServerIdentity, size: Option<PageSize>) -> Vec<PoolState> {
        if id.postgresql().is_none() || id.major().is_some_and(|major| major < FIRST_WITH_PAGE_SIZE) {
            return Vec::new();
        }
        let sizes = pools::of_host(&self.pools).filter(|row| row.pool.may_serve()).map(|row| row.pool.page_size);
        let others = sizes.filter(|other| Some(*other) != size);
        // What is unknown of these limits is unknown of the server's own, which has the notes.
        others.map(|other| self.pool_state(id.pid, Some(other), &mut Notes::default())).collect()
    }

    /// What a start of the server `pid` with pages of `huge_page_size` finds.
    fn pool_state(&self, pid: i32, huge_page_size: Option<PageSize>, notes: &mut Notes) -> PoolState {
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
        let directory = id.postgresql().and_then(|server| server.directory.as_deref());
        let server = id.version.as_deref().zip(directory).map(|(version, directory)| {
            let program = StartProgram::Running(id.pid);
            ServerFiles { program, version, directory, files, configured: &settings.configured }
        });
        let pending = match change {
            // Also with "off" on disk: the server may refuse its files.
            Some(path) if request.pending != Pending::Unknown => {
                let pool_state = |size: Option<PageSize>| self.pool_state(id.pid, size.or(self.default), notes);
                let current = request.current_start();
                let pending = self.ask.zip(server.as_ref()).ok_or_else(String::new).and_then(|(ask, server)| {
                    server.pending(ask, &current, self.default, pool_state).map_err(|why| format!(": {why}"))
                });
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
        let other = (pending != Pending::Unknown).then(|| self.other_start(id, &settings.configured, is_later));
        let pending = other.flatten().map_or(pending, |why| {
            notes.add(why);
            Pending::Unknown
        });
        let crash_recovery = server.map(|server| server.crash_recovery(change.is_some())).unwrap_or_default();
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

    /// Why a restart may be another start than that of the server, whatever its files say.
    fn other_start(
        &self,
        id: &ServerIdentity,
        configured: &Configured,
        is_later: impl Fn(SystemTime) -> bool,
    ) -> Option<String> {
        // A container repeats the command line of its first process.
        let is_first = |text: &str| value(text, "NSpid")?.split_ascii_whitespace().last().map(|last| last == "1");
        let repeats = || self.root.read_short(&format!("/proc/{}/status", id.pid), is_first).ok().flatten();
        if let Some(name) = configured.option_with_effect().filter(|_| repeats() != Some(true)) {
            let why = "which only pg_ctl restart repeats, so what another restart needs is unknown";
            return Some(format!("the command line of process {} sets {name}, {why}", id.pid));
        }
        let program = process::link(self.root, id.pid, "exe").ok().flatten();
        let deleted = program.and_then(|path| path.strip_suffix(" (deleted)").map(PathBuf::from));
        let files = InstanceFiles::own(self.root);
        let is_newer = |path: &PathBuf| files.last_change(path).is_some_and(|(at, _)| is_later(at));
        let newer = |service: &String| of_service(self.root, service, configured).into_iter().find(is_newer);
        let path = deleted.or_else(|| id.service.as_ref().and_then(newer))?.display().to_string();
        Some(format!("\"{path}\" has changed since process {} started, so what a restart needs is unknown", id.pid))
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
            let max_connections = max_connections(&settings.configured.effective());
            let demand = Demand { requested, max_connections, shared_memory: segment.size };
            (Requested { huge_pages: HugePages::Try, ..requested }, Pending::Changed(demand, seen.pool_state.clone()))
        }
        _ => (requested, Pending::Unchanged),
    };
    ServerRequest { requested, requested_may_differ: has_changed || !settings.has_configuration, pending, ..seen }
}
