//! A running server whose files are not, or may not be, what it was started with.

use hugepage_assess::model::{CrashRecovery, Demand, Facts, HugePages, Landing, Pending};
use hugepage_kernel::notes::Notes;
use hugepage_kernel::{InstanceFiles, PageSize};

use super::context::{Identity, InspectContext};
use super::discover::DiscoveredServer;
use super::next_start::RunningServer;

impl InspectContext<'_> {
    /// What the changed files of a server come to; the error is why that is unknown, for the middle of a sentence.
    pub(super) fn pending_of_changed(
        &self,
        found: &DiscoveredServer,
        server: Option<&RunningServer<'_>>,
        facts: &Facts,
        notes: &mut Notes,
    ) -> Result<Pending, String> {
        let (Some(ask), Some(server), None) = (self.ask, server, &found.not_counted) else { return Err(String::new()) };
        let ground = |size: Option<PageSize>| self.ground(found.pid, size.or(self.default), notes);
        server.pending(ask, &facts.current_start(), self.default, ground).map_err(|why| format!(": {why}"))
    }
}

/// What its next start depends on; `None` for Oracle, and where its files may not be read.
pub(super) fn running_server<'a>(
    found: &DiscoveredServer,
    files: &'a InstanceFiles,
    identity: &'a Identity,
) -> Option<RunningServer<'a>> {
    Some(RunningServer {
        pid: found.pid,
        version: identity.version.as_deref()?,
        directory: identity.directory.as_deref()?,
        files,
        configured: identity.configured.as_ref()?,
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

/// Of a server whose files have changed since its start: what it certainly was started with, whatever they have now.
pub(super) fn of_running(facts: &mut Facts) {
    facts.asked_may_differ = true;
    match facts.landing() {
        Landing::Hugetlb => facts.asked.sysv = false,
        // With "on" it would not have started.
        Landing::Base if facts.asked.huge_pages == HugePages::On => facts.asked.huge_pages = HugePages::Try,
        _ => {}
    }
}

/// A server in huge pages was not started with the `huge_pages = off` that its files have: those are for the next start,
/// and a restart after a crash keeps what it has.
pub(super) fn split_off_pending(facts: &mut Facts, max_connections: u64) {
    let Some(segment) = facts.segment.as_ref().filter(|segment| segment.landing == Landing::Hugetlb) else { return };
    if facts.asked.huge_pages != HugePages::Off {
        return;
    }
    let demand = Demand { asked: facts.asked, max_connections, shared_memory: segment.size };
    facts.pending = Pending::Changed(demand, facts.ground.clone());
    facts.asked.huge_pages = HugePages::Try;
}
