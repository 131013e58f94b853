//! What a PostgreSQL server asked for, whose files are not, or may not be, what it was started with.

use std::time::Duration;

use hugepage_assess::assessment::io_uring::Rings;
use hugepage_assess::model::{Asked, CrashRecovery, CurrentStart, Demand, HugePages, KeptPages, Landing, Pending};
use hugepage_kernel::notes::Notes;
use hugepage_kernel::proc::process;
use hugepage_kernel::{InstanceFiles, PageSize, Pages};

use super::context::InspectContext;
use super::discover::DiscoveredServer;
use super::identity::ServerIdentity;
use super::next_start::RunningServer;
use super::postgresql::PostgreSqlSettings;
use super::request::ServerRequest;

/// The kernel tells the start of a process, and how long it is up, in hundredths of a second (proc(5)).
const START_PRECISION: Duration = Duration::from_millis(20);

impl InspectContext<'_> {
    /// `unchanged`: what was seen, as if the files were what the server was started with.
    pub(super) fn postgresql_request(
        &self,
        unchanged: ServerRequest,
        found: &DiscoveredServer,
        files: &InstanceFiles,
        identity: &ServerIdentity,
        settings: &PostgreSqlSettings,
        notes: &mut Notes,
    ) -> ServerRequest {
        let size = unchanged.ground.huge_page_size;
        let kept_at_crash = size.map(|size| self.kept_at_crash(found.pid, settings.ring_entries, size));
        let is_later = |at| identity.started.is_some_and(|started| at > started + START_PRECISION);
        let change = settings.last_change.as_ref().filter(|(at, _)| is_later(*at)).map(|(_, path)| path);
        let request = at_start(unchanged, settings, change.is_some());
        let server = running_server(files, identity, settings);
        let pending = match change {
            // Also with "off" on disk: the server may refuse its files.
            Some(path) if request.pending != Pending::Unknown => {
                let pending = self.pending_of_changed(found, server.as_ref(), &request.current_start(), notes);
                pending.unwrap_or_else(|why| {
                    notes.add(format!(
                        "\"{}\" has changed since the server with process {} started, so what a restart needs is unknown \
                         from outside{why}; hugepage_preflight() in the server shows it",
                        path.display(),
                        found.pid
                    ));
                    Pending::Unknown
                })
            }
            _ => request.pending,
        };
        let crash_recovery = server.map(|server| crash_recovery(&server, change.is_some())).unwrap_or_default();
        // With unchanged files a restart compares the same settings.
        let pending = match &crash_recovery {
            CrashRecovery::Refused(error) => Pending::Refused(error.clone()),
            CrashRecovery::Unknown(_) if change.is_none() => Pending::Unknown,
            CrashRecovery::Unknown(_) | CrashRecovery::Possible => pending,
        };
        ServerRequest { pending, crash_recovery, kept_at_crash: kept_at_crash.unwrap_or_default(), ..request }
    }

    /// What the changed files of a server come to; the error is why that is unknown, for the middle of a sentence.
    fn pending_of_changed(
        &self,
        found: &DiscoveredServer,
        server: Option<&RunningServer<'_>>,
        current: &CurrentStart<'_>,
        notes: &mut Notes,
    ) -> Result<Pending, String> {
        let (Some(ask), Some(server), None) = (self.ask, server, &found.not_counted) else { return Err(String::new()) };
        let ground = |size: Option<PageSize>| self.ground(found.pid, size.or(self.default), notes);
        server.pending(ask, current, self.default, ground).map_err(|why| format!(": {why}"))
    }

    /// At most what the open rings of io_uring keep at a crash: how many of them are of the present segment is not visible
    /// from outside. Nothing where they are mappings of the kernel.
    fn kept_at_crash(&self, pid: i32, entries: u64, size: PageSize) -> KeptPages {
        let open = process::open_rings(self.root, &pid.to_string()).unwrap_or(0);
        let are_mapped = || self.root.read(&format!("/proc/{pid}/maps")).is_ok_and(|maps| maps.contains("[io_uring]"));
        if open == 0 || are_mapped() {
            return KeptPages::default();
        }
        let base = self.base.unwrap_or_else(PageSize::base);
        KeptPages { at_least: Pages(0), ..Rings { count: open, open, entries }.pages(size, base) }
    }
}

/// What the server certainly was started with, and what its files ask for if that is something else. `has_changed`: whether
/// the files have changed since.
fn at_start(seen: ServerRequest, settings: &PostgreSqlSettings, has_changed: bool) -> ServerRequest {
    let landing = seen.current_start().landing();
    let asked = match landing {
        Landing::Hugetlb if has_changed => Asked { sysv: false, ..seen.asked },
        // With "on" it would not have started.
        Landing::Base if has_changed && seen.asked.huge_pages == HugePages::On => {
            Asked { huge_pages: HugePages::Try, ..seen.asked }
        }
        _ => seen.asked,
    };
    let (asked, pending) = match &seen.segment {
        _ if !settings.has_configuration => (asked, Pending::Unknown),
        // A server in huge pages was not started with "off": that is for the next start, and a restart after a crash keeps
        // what it has.
        Some(segment) if landing == Landing::Hugetlb && asked.huge_pages == HugePages::Off => {
            let max_connections = settings.max_connections;
            let demand = Demand { asked, max_connections, shared_memory: segment.size };
            (Asked { huge_pages: HugePages::Try, ..asked }, Pending::Changed(demand, seen.ground.clone()))
        }
        _ => (asked, Pending::Unchanged),
    };
    ServerRequest { asked, asked_may_differ: has_changed, pending, ..seen }
}

/// What the next start of a server depends on; `None` where its files may not be read.
fn running_server<'a>(
    files: &'a InstanceFiles,
    identity: &'a ServerIdentity,
    settings: &'a PostgreSqlSettings,
) -> Option<RunningServer<'a>> {
    Some(RunningServer {
        pid: identity.pid,
        version: identity.version.as_deref()?,
        directory: identity.directory.as_deref()?,
        files,
        configured: &settings.configured,
    })
}

/// Whether a standby would recover after a crash with the settings that it was started with.
pub(super) fn crash_recovery(server: &RunningServer<'_>, has_changed: bool) -> CrashRecovery {
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
