//! Looks at one server after the other, and assesses each beside the others.

use std::time::SystemTime;

use super::discover::{Found, Who};
use super::instance::{Instance, Kind};
use super::memory::{self, Memory};
use super::service_accounts::ServiceAccounts;
use super::{oracle, postgresql};
use crate::assess::page_tables::PageTables;
use crate::assess::{Asked, Facts, HugePages, Landing, Pending, PoolFact, Segment, Status};
use crate::collect::pools::{self, PoolRow};
use crate::collect::server::{pool_of_size, thp_in_use};
use crate::notes::Notes;
use crate::read::cgroup::{Hierarchy, Limits};
use crate::read::maps::Mapping;
use crate::read::meminfo::Meminfo;
use crate::read::oracle::LastStart;
use crate::read::rlimit::{self, LockedMemory};
use crate::read::shm_devices::Devices;
use crate::read::{InstanceFiles, Root, namespace, process};
use crate::{Bytes, PageSize, Pages, ReadError};

/// What is the same for all servers.
pub(super) struct Host<'a> {
    pub(super) root: &'a Root,
    pub(super) taken_at: SystemTime,
    pub(super) default: Option<PageSize>,
    pub(super) base: Option<PageSize>,
    pub(super) devices: Devices,
    pub(super) accounts: ServiceAccounts,
    pub(super) hierarchy: Option<Hierarchy>,
    pub(super) meminfo: Option<Meminfo>,
    pub(super) pools: Vec<PoolRow>,
    pub(super) reserve_percent: u32,
    /// Whether names of mappings tell huge pages.
    pub(super) numbered: bool,
}

/// What the files of a server say of it.
pub(super) struct Identity {
    pub(super) name: String,
    pub(super) home: Option<String>,
    pub(super) directory: Option<String>,
    pub(super) version: Option<String>,
    pub(super) system_identifier: Option<String>,
    pub(super) last_start: Option<LastStart>,
    pub(super) asked: Asked,
}

impl Host<'_> {
    /// `None`: it is a postgres program without shared memory, as one that initialises or only answers a question.
    pub(super) fn look(&self, found: Found) -> Option<Instance> {
        let mut notes = Notes::default();
        let (root, pid) = (self.root, found.pid);
        let started = notes.keep(process::age(root, pid)).flatten().and_then(|age| self.taken_at.checked_sub(age));
        let memlock = notes.keep(rlimit::locked_memory(root, pid)).flatten();
        let mut has_hugetlb_pages =
            found.processes.iter().any(|status| status.hugetlb_pages.is_some_and(|size| size.0 > 0));
        let container = namespace::container(root, pid);
        let mut memory = self.memory(&found, container.is_some(), &mut notes);
        let files = &InstanceFiles::of_process(root, pid);
        let automatic = memory.as_mut().filter(|_| matches!(found.who, Who::Oracle(_))).map(oracle::keep_sga);
        if matches!((&found.who, &memory), (Who::PostgreSql(_), Some(memory)) if memory.mappings.is_empty()) {
            return None;
        }
        let memory = memory.filter(|memory| !memory.mappings.is_empty());
        let mut evidence: Vec<&'static str> = memory.iter().map(|memory| memory.source.name()).collect();
        let identity = match &found.who {
            Who::PostgreSql(arguments) => self.postgresql(pid, files, arguments, &mut notes),
            Who::Oracle(instance) => self.oracle(pid, files, instance, started, automatic, &mut notes),
        };
        let wanted = identity.asked.huge_page_size.or(self.default);
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
        let base = self.base.unwrap_or_else(PageSize::base);
        let facts = self.facts(pid, &identity.asked, segment, memlock, &mut notes);
        Some(Instance {
            kind: match &found.who {
                Who::PostgreSql(_) => Kind::PostgreSql,
                Who::Oracle(instance) => Kind::Oracle(instance.kind),
            },
            name: identity.name,
            pid,
            home: identity.home,
            directory: identity.directory,
            version: identity.version,
            system_identifier: identity.system_identifier,
            started,
            memory,
            page_tables: PageTables::sum(found.processes.iter(), base),
            memlock,
            has_hugetlb_pages,
            last_start: identity.last_start,
            status: Status::of(facts),
            evidence,
            not_counted: self.accounts.why_not(root, pid),
            notes: notes.into_vec(),
        })
    }

    /// The mappings of one process stand for the server's, for all of its processes attach all of it.
    fn memory(&self, found: &Found, is_contained: bool, notes: &mut Notes) -> Option<Memory> {
        let is_postgresql = matches!(found.who, Who::PostgreSql(_));
        let of_container = (is_contained && !is_postgresql)
            .then(|| notes.keep(self.devices.with_mounts_of(self.root, found.pid)))
            .flatten();
        let devices = of_container.as_ref().unwrap_or(&self.devices);
        let wanted = |mapping: &Mapping| match is_postgresql {
            true => postgresql::is_shared_memory(mapping),
            false => oracle::may_be_sga(mapping, devices, self.base),
        };
        match memory::of(self.root, found.pid, devices, self.default, self.numbered, wanted) {
            Ok(mut memory) => {
                if is_postgresql
                    && let Some(main) = memory.mappings.iter().max_by_key(|mapping| mapping.size()).cloned()
                {
                    memory.mappings = vec![main];
                }
                Some(memory)
            }
            Err(ReadError::Io { source, path, .. }) if source.kind() == std::io::ErrorKind::PermissionDenied => {
                notes.add(format!("\"{}\" may not be read: run this as root, or with CAP_SYS_PTRACE", path.display()));
                None
            }
            Err(error) => {
                notes.add(error.to_string());
                None
            }
        }
    }

    fn postgresql(&self, pid: i32, files: &InstanceFiles, arguments: &[String], notes: &mut Notes) -> Identity {
        let files = postgresql::files(self.root, files, pid, arguments, notes);
        Identity {
            name: files.directory.clone().unwrap_or_else(|| format!("process {pid}")),
            home: None,
            directory: files.directory,
            version: files.version,
            system_identifier: files.system_identifier,
            last_start: None,
            asked: files.asked,
        }
    }

    /// Whether base pages were put together into transparent huge pages only a walk of the server's page tables could
    /// tell, which the server itself may do and nobody else should.
    fn unless_transparent(&self, mut segment: Segment, pid: i32, notes: &mut Notes) -> Segment {
        if segment.landing == Landing::Base && thp_in_use(self.meminfo.as_ref()) {
            segment.landing = Landing::Unknown;
            notes.add(format!(
                "some shared memory of this host is in transparent huge pages; whether that of process {pid} is can't be \
                 told without walking its page tables"
            ));
        }
        segment
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
        let pool = match huge_page_size.and_then(|size| pools::of_size(&self.pools, size)) {
            Some(row) => PoolFact::Known(row.pool.clone()),
            None => pool_of_size(self.root, huge_page_size, self.meminfo.as_ref(), notes),
        };
        let limits = huge_page_size.map(|size| match &self.hierarchy {
            Some(hierarchy) => hierarchy.limits_of(self.root, pid, size, notes),
            None => Limits::default(),
        });
        Facts {
            lock_limit: oracle::lock_limit(self.root, pid, asked, segment.as_ref(), memlock),
            asked: *asked,
            segment,
            huge_page_size,
            pool,
            meminfo: self.meminfo.clone(),
            limits,
            pending: Pending::Unchanged,
            reserve_percent: self.reserve_percent,
            others_lack: Pages(0),
            cause_at_start: None,
            loss: None,
        }
    }
}

/// Assesses each again beside what the others lack, so that one number for the pool serves all that count.
pub(super) fn beside_each_other(instances: &mut [Instance]) {
    let lack = |instance: &Instance| if instance.counts() { lack(&instance.status.facts) } else { Pages(0) };
    let lacks: Vec<_> =
        instances.iter().map(|instance| (instance.status.facts.huge_page_size, lack(instance))).collect();
    for (index, instance) in instances.iter_mut().enumerate() {
        let size = instance.status.facts.huge_page_size;
        let others = lacks.iter().enumerate().filter(|(other, (of, _))| *other != index && *of == size);
        let others_lack = others.fold(Pages(0), |sum, (_, (_, lack))| sum.saturating_add(*lack));
        if others_lack > Pages(0) {
            instance.assess_with(|facts| facts.others_lack = others_lack);
        }
    }
}

/// The pages that a server was asked to have and has not.
pub(super) fn lack(facts: &Facts) -> Pages {
    let wants = facts.asked.huge_pages != HugePages::Off && !facts.asked.never_in_huge_pages();
    let (Some(segment), Some(page), PoolFact::Known(_), true) =
        (&facts.segment, facts.huge_page_size, &facts.pool, wants)
    else {
        return Pages(0);
    };
    page.pages_to_hold(segment.to_reserve).saturating_sub(facts.own())
}
