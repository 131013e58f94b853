//! Inspects one server after the other.

use std::time::{Duration, SystemTime};

use hugepage_assess::assessment::Status;
use hugepage_assess::assessment::io_uring::Rings;
use hugepage_assess::assessment::page_tables::PageTables;
use hugepage_assess::model::{
    Asked, CrashRecovery, Facts, KeptPages, Landing, LockLimit, Pending, PoolFact, PoolState, Segment,
};
use hugepage_assess::pools;
use hugepage_kernel::cgroups::cgroup::CgroupLimits;
use hugepage_kernel::host::identity;
use hugepage_kernel::mapping::memory_policy::MemoryPolicy;
use hugepage_kernel::notes::Notes;
use hugepage_kernel::proc::credentials::Credentials;
use hugepage_kernel::proc::rlimit::{self, LockedMemory};
use hugepage_kernel::proc::{namespace, process, service};
use hugepage_kernel::{Bytes, InstanceFiles, PageSize, Pages};
use hugepage_server::nodes;
use hugepage_server::server::pool_of_size;

use super::asked::asked_next;
use super::changed_files::{crash_recovery, of_running, running_server, split_off_pending};
use super::context::{Identity, InspectContext};
use super::discover::{DiscoveredKind, DiscoveredServer};
use super::instance::{Instance, InstanceKind, InstancePlace};
use super::pending::pending;
use super::{oracle, postgresql};

/// The kernel tells the start of a process, and how long it is up, in hundredths of a second (proc(5)).
const START_PRECISION: Duration = Duration::from_millis(20);

impl InspectContext<'_> {
    /// `None` for a postgres program without shared memory, such as one that initialises or only answers a question.
    pub(super) fn inspect(&self, found: DiscoveredServer) -> Option<Instance> {
        let mut notes = Notes::default();
        let (root, pid) = (self.root, found.pid);
        root.forget_processes();
        let started = self.started(pid, &mut notes);
        let memlock = notes.keep(rlimit::locked_memory(root, pid)).flatten();
        if found.undecided > 0 {
            notes.add(format!(
                "{} processes are of this instance or of another one with its SID: run this as root to count them",
                found.undecided
            ));
        }
        let mut has_hugetlb_pages =
            found.processes.iter().any(|status| status.hugetlb_pages.is_some_and(|size| size.0 > 0));
        let container = namespace::container(root, pid);
        let mut memory = self.memory(&found, container.is_some(), &mut notes);
        let files = &InstanceFiles::of_process(root, pid);
        let (automatic, managed_global_area) =
            memory.as_mut().filter(|_| matches!(found.who, DiscoveredKind::Oracle(_))).map(oracle::keep_sga).unzip();
        if matches!((&found.who, &memory), (DiscoveredKind::PostgreSql(_), Some(memory)) if memory.mappings.is_empty())
        {
            return None;
        }
        let memory = memory.filter(|memory| !memory.mappings.is_empty());
        let mut evidence: Vec<&'static str> = memory.iter().map(|memory| memory.source.name()).collect();
        let identity = match &found.who {
            DiscoveredKind::PostgreSql(arguments) => self.postgresql(pid, files, arguments, &mut notes),
            DiscoveredKind::Oracle(instance) => self.oracle(pid, files, instance, started, automatic, &mut notes),
        };
        // Where the kernel lacks the size, nothing is rounded up to it.
        let has_pool = |size: &PageSize| pools::of_size(&self.pools, *size).is_some();
        let wanted = identity.asked.huge_page_size.filter(has_pool).or(self.default);
        let seen = memory.as_ref().zip(self.base).and_then(|(memory, base)| memory.segment(base, wanted));
        let segment = match seen.or_else(|| oracle::logged_segment(identity.last_start.as_ref()?)) {
            Some(segment) if memory.is_none() => {
                evidence.push("alert log");
                Some(segment)
            }
            segment => segment.map(|segment| self.unless_transparent(segment, pid, &mut notes)),
        };
        has_hugetlb_pages &= !matches!(&segment, Some(Segment { landing: Landing::Base, .. }));
        if has_hugetlb_pages {
            evidence.push("HugetlbPages");
        }
        let uid = Credentials::read(root, pid).ok().flatten().map(|credentials| credentials.effective);
        let directory = identity.directory.as_deref().or(identity.home.as_deref());
        let place = InstancePlace {
            uid,
            container: self.container(pid, container.is_some(), files, directory),
            host_name: identity::host_name_of(root, pid, files),
        };
        let base = self.base.unwrap_or_else(PageSize::base);
        let mut facts = self.facts(pid, &identity.asked, segment, memlock, &mut notes);
        let refusal = || oracle::logged_refusal(identity.last_start.as_ref()?, facts.segment.as_ref()?);
        if facts.ground.lock_limit.is_none()
            && let Some(refusal) = refusal()
        {
            facts.ground.lock_limit = Some(refusal);
            if refusal == LockLimit::Unexplained {
                notes.add(
                    "the start found enough huge pages and took none of them: compare kernel.shmall, the NUMA policy and the \
                     limits of its owner with the alert log",
                );
            }
        }
        if let Some((entries, size)) = identity.ring_entries.zip(facts.ground.huge_page_size) {
            facts.kept_at_crash = self.kept_at_crash(pid, entries, size);
        }
        facts.clusterware.clone_from(&identity.clusterware);
        let change = identity.last_change.as_ref();
        let change = change.filter(|(at, _)| started.is_some_and(|started| *at > started + START_PRECISION));
        if change.is_some() {
            of_running(&mut facts);
        }
        if !identity.has_configuration {
            facts.pending = Pending::Unknown;
        } else if let Some(max_connections) = identity.max_connections {
            split_off_pending(&mut facts, max_connections);
        } else if let Some(settings) = identity.settings.as_ref().filter(|_| !facts.asked.is_automatic_asm()) {
            let version = identity.version.as_deref();
            let lock_limit = || oracle::lock_limit(root, pid, &facts.asked, None, memlock);
            facts.pending = pending(settings, &facts, lock_limit, |next| asked_next(next, &facts.asked, version));
        }
        let server = running_server(&found, files, &identity);
        // Also with "off" on disk: the server may refuse its files.
        if let Some((_, path)) = change
            && facts.pending != Pending::Unknown
        {
            facts.pending = self.pending_of_changed(&found, server.as_ref(), &facts, &mut notes).unwrap_or_else(|why| {
                notes.add(format!(
                    "\"{}\" has changed since the server with process {pid} started, so what a restart needs is unknown \
                     from outside{why}; hugepage_preflight() in the server shows it",
                    path.display()
                ));
                Pending::Unknown
            });
        }
        if let Some(server) = &server {
            facts.crash_recovery = crash_recovery(server, change.is_some());
            // With unchanged files a restart compares the same settings.
            match &facts.crash_recovery {
                CrashRecovery::Refused(error) => facts.pending = Pending::Refused(error.clone()),
                CrashRecovery::Unknown(_) if change.is_none() => facts.pending = Pending::Unknown,
                CrashRecovery::Unknown(_) | CrashRecovery::Possible => {}
            }
        }
        let status = Status::of(facts);
        status.notes_on_outlook().for_each(|note| notes.add(note));
        Some(Instance {
            kind: match &found.who {
                DiscoveredKind::PostgreSql(_) => InstanceKind::PostgreSql,
                DiscoveredKind::Oracle(instance) => InstanceKind::Oracle(instance.kind),
            },
            name: identity.name,
            pid,
            place,
            home: identity.home,
            database: identity.database,
            directory: identity.directory,
            history_directory: identity.configured.as_ref().and_then(postgresql::Configured::history_directory),
            version: identity.version,
            system_identifier: identity.system_identifier,
            started,
            memory,
            managed_global_area,
            page_tables: if found.undecided == 0 {
                PageTables::sum(found.processes.iter(), base)
            } else {
                PageTables::default()
            },
            private_memory: median(found.processes.iter().filter_map(|process| process.rss_anon)),
            memlock,
            has_hugetlb_pages,
            alert_log: identity.settings.and_then(|settings| settings.log),
            last_start: identity.last_start,
            status,
            evidence,
            not_counted: found.not_counted,
            uid,
            owner: uid.map(|uid| self.accounts.name(root, uid)),
            service: service::service_of(root, pid),
            notes: notes.into_vec(),
        })
    }

    /// When the process started, by the clock now; `None` if it has ended, or a note says why it is unknown.
    fn started(&self, pid: i32, notes: &mut Notes) -> Option<SystemTime> {
        let stat = notes.keep(process::stat(self.root, pid)).flatten()?;
        match self.booted.get_or_init(|| process::boot_time(self.root).map_err(|error| error.to_string())) {
            Ok(booted) => booted.checked_add(stat.start_after_boot()),
            Err(why) => {
                notes.add(why);
                None
            }
        }
    }

    /// The container of [`InstancePlace`]. `directory`: the data directory, or the home. What a service sees in a mount
    /// namespace of its own, as systemd makes them, may still be the directory of that name of the host.
    fn container(
        &self,
        pid: i32,
        is_contained: bool,
        files: &InstanceFiles,
        directory: Option<&str>,
    ) -> Option<String> {
        if !is_contained || self.root.is_tree() {
            return None;
        }
        let its = directory.and_then(|directory| files.inode(directory));
        let ours = directory.and_then(|directory| InstanceFiles::own(self.root).inode(directory));
        (its.is_none() || its != ours).then(|| match its {
            Some((device, inode)) => {
                let device = (rustix::fs::major(device), rustix::fs::minor(device));
                format!("{}.{}-{inode}", device.0, device.1)
            }
            None => namespace::number(self.root, pid).unwrap_or_default(),
        })
    }

    fn postgresql(&self, pid: i32, files: &InstanceFiles, arguments: &[String], notes: &mut Notes) -> Identity {
        let files = postgresql::files(self.root, files, pid, arguments, notes);
        Identity {
            name: files.directory.clone().unwrap_or_else(|| format!("process {pid}")),
            home: None,
            database: None,
            directory: files.directory,
            version: files.version,
            system_identifier: files.system_identifier,
            last_start: None,
            settings: None,
            asked: files.asked,
            max_connections: Some(files.max_connections),
            has_configuration: files.has_configuration,
            last_change: files.last_change,
            configured: Some(files.configured),
            ring_entries: Some(files.ring_entries),
            clusterware: None,
        }
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

    fn facts(
        &self,
        pid: i32,
        asked: &Asked,
        segment: Option<Segment>,
        memlock: Option<LockedMemory>,
        notes: &mut Notes,
    ) -> Facts {
        let in_use = segment.as_ref().filter(|segment| segment.in_huge_pages > Bytes(0));
        let huge_page_size = in_use.and_then(|segment| segment.page_size).or(asked.huge_page_size).or(self.default);
        let ground = self.ground(pid, huge_page_size, notes);
        let lock_limit = oracle::lock_limit(self.root, pid, asked, segment.as_ref(), memlock);
        Facts {
            others_lack: Some(Pages(0)),
            others_may_serve: self
                .pools
                .iter()
                .any(|row| Some(row.pool.page_size) != huge_page_size && row.pool.may_serve()),
            ..Facts::new(
                *asked,
                segment,
                PoolState { lock_limit, ..ground },
                self.meminfo.clone(),
                self.reserve_percent,
            )
        }
    }

    /// What a start of the server `pid` with pages of `huge_page_size` finds.
    pub(super) fn ground(&self, pid: i32, huge_page_size: Option<PageSize>, notes: &mut Notes) -> PoolState {
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
            Some(Some(hierarchy)) => Some(hierarchy.limits_of(self.root, pid, size, notes)),
        });
        let nodes = nodes::of(self.root, &pool, &pid.to_string(), |_| MemoryPolicy::Unknown, notes);
        PoolState { huge_page_size, pool, limits, nodes, lock_limit: None }
    }
}

fn median(sizes: impl Iterator<Item = Bytes>) -> Option<Bytes> {
    let mut sizes: Vec<_> = sizes.collect();
    sizes.sort_unstable();
    sizes.get(sizes.len() / 2).copied()
}
