//! Every database server on a host, seen from outside: what it has, what it was asked for, and what that comes to.
//!
//! Processes are found by their titles, shared memory by the mappings of one process of each server. Nothing of a server
//! is stopped, walked or asked. What can't be read without privilege is a note, and what follows from it is unknown.

pub mod found;
pub mod memory;
mod oracle;
mod postgresql;
mod sizing;

use std::fmt;
use std::time::SystemTime;

use crate::assess::page_tables::PageTables;
use crate::assess::{Asked, Cause, Facts, HugePages, Landing, Loss, Pending, PoolFact, Segment, Status};
use crate::notes::Notes;
use crate::read::cgroup::{Hierarchy, Limits};
use crate::read::devices::Devices;
use crate::read::limits::{self, LockedMemory};
use crate::read::maps::Mapping;
use crate::read::meminfo::Meminfo;
use crate::read::oracle::{Kind as OracleKind, LastStart};
use crate::read::postgresql_conf::Configuration;
use crate::read::root::if_there;
use crate::read::{Root, identity, process, thp};
use crate::survey::pools::{self, PoolRow};
use crate::survey::server::{pool_of_size, thp_in_use};
use crate::{Bytes, PageSize, Pages, ReadError};
use found::{Found, Who};
use memory::Memory;
pub use oracle::memlock_counts;

/// What a server is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// PostgreSQL.
    PostgreSql,
    /// Oracle.
    Oracle(OracleKind),
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::PostgreSql => "postgresql",
            Self::Oracle(OracleKind::Database) => "oracle",
            Self::Oracle(OracleKind::Asm) => "asm",
            Self::Oracle(OracleKind::ManagementDatabase) => "mgmtdb",
            Self::Oracle(OracleKind::AsmProxy) => "apx",
            Self::Oracle(OracleKind::IoServer) => "ios",
        })
    }
}

/// Where all of a server's shared memory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Landed {
    /// In huge pages.
    All,
    /// In huge pages in part.
    Mixed,
    /// In huge pages, at least in part: more can't be seen without privilege.
    Some,
    /// In base pages.
    Nothing,
    /// In files of /dev/shm, because of MEMORY_TARGET.
    Amm,
    /// Not to be seen.
    Unknown,
}

impl fmt::Display for Landed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::All => "all",
            Self::Mixed => "mixed",
            Self::Some => "some",
            Self::Nothing => "none",
            Self::Amm => "AMM",
            Self::Unknown => "unknown",
        })
    }
}

/// One server.
#[derive(Clone, Debug)]
pub struct Instance {
    /// What it is.
    pub kind: Kind,
    /// Its SID, or its data directory; `process 4711` where that can't be seen.
    pub name: String,
    /// The postmaster, or PMON.
    pub pid: i32,
    /// ORACLE_HOME.
    pub home: Option<String>,
    /// PostgreSQL's data directory.
    pub directory: Option<String>,
    /// PostgreSQL's major version, Oracle's from its alert log.
    pub version: Option<String>,
    /// PostgreSQL's system identifier.
    pub system_identifier: Option<String>,
    /// When that process started.
    pub started: Option<SystemTime>,
    /// Its shared memory; `None` if it may not be seen.
    pub memory: Option<Memory>,
    /// Of all its processes.
    pub page_tables: PageTables,
    /// What it may lock.
    pub memlock: Option<LockedMemory>,
    /// Whether a process of it certainly has huge pages (`HugetlbPages` in its status).
    pub has_hugetlb_pages: bool,
    /// What the alert log says of the start of this very instance.
    pub last_start: Option<LastStart>,
    /// The assessment.
    pub status: Status,
    /// What its landing was seen in, the best first.
    pub evidence: Vec<&'static str>,
    /// What could not be seen of it.
    pub notes: Vec<String>,
}

/// A host with its servers.
#[derive(Clone, Debug)]
pub struct Survey {
    /// The host's name.
    pub host_name: Option<String>,
    /// When this was seen; of captured files when they were written.
    pub taken_at: SystemTime,
    /// The kernel's identifier of this boot.
    pub boot_id: Option<String>,
    /// The host's memory.
    pub meminfo: Option<Meminfo>,
    /// All pools.
    pub pools: Vec<PoolRow>,
    /// `transparent_hugepage/enabled`.
    pub transparent_hugepage: Option<String>,
    /// Whether /dev/shm is a ramfs, as papers of 2002 had it for 32-bit Oracle: nothing limits what is in it.
    pub shm_is_ramfs: bool,
    /// The servers that run.
    pub instances: Vec<Instance>,
    /// What could not be seen of the host.
    pub notes: Vec<String>,
}

/// What a PostgreSQL configuration asks for.
pub fn asked_of(configuration: &Configuration, notes: &mut Notes) -> Asked {
    postgresql::asked(|name| configuration.get(name).map(str::to_owned), notes)
}

/// Looks at the host. `reserve_percent`: the hundredths of memory that it keeps for base pages.
pub fn survey(root: &Root, reserve_percent: u32) -> Survey {
    let mut notes = Notes::default();
    let meminfo = notes.keep(Meminfo::read(root));
    let hierarchy = notes.keep(Hierarchy::find(root));
    let view = hierarchy.as_ref().map(Option::as_ref);
    let pools = pools::rows(root, view, &mut notes);
    let host = Host {
        root,
        taken_at: taken_at(root),
        default: meminfo.as_ref().and_then(|meminfo| meminfo.huge_page_size),
        base: notes.keep(root.base_page_size()),
        devices: notes.keep(Devices::find(root)).unwrap_or_default(),
        hierarchy: hierarchy.flatten(),
        meminfo: with_hugetlb(meminfo, &pools),
        reserve_percent,
        namespace: namespace(root, "self"),
    };
    let found = found::servers(root, &mut notes);
    let seen: Vec<_> = found.into_iter().filter_map(|found| host.look(found)).collect();
    Survey {
        host_name: notes.keep(identity::host_name(root)),
        taken_at: host.taken_at,
        boot_id: notes.keep(identity::boot_id(root)).flatten(),
        pools,
        transparent_hugepage: notes.keep(thp::choice(root, "enabled")).flatten(),
        shm_is_ramfs: notes.keep(shm_is_ramfs(root)).unwrap_or(false),
        instances: assessed(seen),
        meminfo: host.meminfo,
        notes: notes.into_vec(),
    }
}

/// What is the same for all servers.
struct Host<'a> {
    root: &'a Root,
    taken_at: SystemTime,
    default: Option<PageSize>,
    base: Option<PageSize>,
    devices: Devices,
    hierarchy: Option<Hierarchy>,
    meminfo: Option<Meminfo>,
    reserve_percent: u32,
    /// The mount namespace that this program is in.
    namespace: Option<String>,
}

/// An instance before its assessment, which needs what all others lack.
struct Seen {
    kind: Kind,
    name: String,
    pid: i32,
    identity: Identity,
    started: Option<SystemTime>,
    memory: Option<Memory>,
    page_tables: PageTables,
    memlock: Option<LockedMemory>,
    has_hugetlb_pages: bool,
    facts: Facts,
    evidence: Vec<&'static str>,
    notes: Notes,
}

/// What the files of a server say of it.
struct Identity {
    name: String,
    home: Option<String>,
    directory: Option<String>,
    version: Option<String>,
    system_identifier: Option<String>,
    last_start: Option<LastStart>,
    asked: Asked,
}

impl Host<'_> {
    /// `None`: it is a postgres program without shared memory, as one that initialises or only answers a question.
    fn look(&self, found: Found) -> Option<Seen> {
        let mut notes = Notes::default();
        let (root, pid) = (self.root, found.pid);
        let started = notes.keep(process::age(root, pid)).flatten().and_then(|age| self.taken_at.checked_sub(age));
        let memlock = notes.keep(limits::locked_memory(root, pid)).flatten();
        let mut has_hugetlb_pages =
            found.processes.iter().any(|status| status.hugetlb_pages.is_some_and(|size| size.0 > 0));
        let container = self.container_of(pid);
        let mut memory = self.memory(&found, container.is_some(), &mut notes);
        let files = container.as_ref().unwrap_or(root);
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
        Some(Seen {
            kind: match &found.who {
                Who::PostgreSql(_) => Kind::PostgreSql,
                Who::Oracle(instance) => Kind::Oracle(instance.kind),
            },
            name: identity.name.clone(),
            pid,
            started,
            page_tables: PageTables::sum(found.processes.iter(), base),
            memlock,
            has_hugetlb_pages,
            facts: self.facts(pid, &identity.asked, segment, memlock, &mut notes),
            identity,
            memory,
            evidence,
            notes,
        })
    }

    /// The files that `pid` sees, where those are not this program's: those of its container.
    fn container_of(&self, pid: i32) -> Option<Root> {
        let its = namespace(self.root, &pid.to_string())?;
        let elsewhere = self.namespace.as_ref().is_some_and(|own| *own != its);
        elsewhere.then(|| self.root.below(&format!("/proc/{pid}/root")))
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
        match memory::of(self.root, found.pid, devices, self.default, wanted) {
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

    fn postgresql(&self, pid: i32, files: &Root, arguments: &[String], notes: &mut Notes) -> Identity {
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
        let pool = pool_of_size(self.root, huge_page_size, self.meminfo.as_ref(), notes);
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

/// Each is assessed beside what the others lack, so that one number for the pool serves all.
fn assessed(seen: Vec<Seen>) -> Vec<Instance> {
    let lacks: Vec<_> = seen.iter().map(|seen| (seen.facts.huge_page_size, lack(&seen.facts))).collect();
    let assess = |(index, seen): (usize, Seen)| {
        let Seen { kind, name, pid, identity, started, memory, page_tables, memlock, has_hugetlb_pages, .. } = seen;
        let mut facts = seen.facts;
        let others =
            lacks.iter().enumerate().filter(|(other, (size, _))| *other != index && *size == facts.huge_page_size);
        facts.others_lack = others.fold(Pages(0), |sum, (_, (_, lack))| sum.saturating_add(*lack));
        Instance {
            kind,
            name,
            pid,
            home: identity.home,
            directory: identity.directory,
            version: identity.version,
            system_identifier: identity.system_identifier,
            started,
            memory,
            page_tables,
            memlock,
            has_hugetlb_pages,
            last_start: identity.last_start,
            status: Status::of(facts),
            evidence: seen.evidence,
            notes: seen.notes.into_vec(),
        }
    };
    seen.into_iter().enumerate().map(assess).collect()
}

/// The pages that a server was asked to have and has not.
fn lack(facts: &Facts) -> Pages {
    let wants = facts.asked.huge_pages != HugePages::Off && !facts.asked.never_in_huge_pages();
    let (Some(segment), Some(page), PoolFact::Known(_), true) =
        (&facts.segment, facts.huge_page_size, &facts.pool, wants)
    else {
        return Pages(0);
    };
    page.pages_to_hold(segment.to_reserve).saturating_sub(facts.own())
}

impl Instance {
    /// Takes into the assessment what was seen when it started.
    pub fn remember(&mut self, cause_at_start: Option<Cause>, loss: Option<Loss>) {
        let facts = Facts { cause_at_start, loss, ..self.status.facts.clone() };
        self.status = Status::of(facts);
    }

    /// Where its shared memory is.
    pub fn landed(&self) -> Landed {
        match self.status.facts.landing() {
            Landing::Hugetlb => Landed::All,
            Landing::Mixed => Landed::Mixed,
            Landing::Base if self.status.cause == Some(Cause::MemoryTarget) => Landed::Amm,
            Landing::Base | Landing::Thp | Landing::PartialThp => Landed::Nothing,
            // PostgreSQL's is in huge pages as a whole, or not at all.
            Landing::Unknown if self.has_hugetlb_pages && self.kind == Kind::PostgreSql => Landed::All,
            Landing::Unknown if self.has_hugetlb_pages => Landed::Some,
            Landing::Unknown => Landed::Unknown,
        }
    }
}

/// What tells one mount namespace from another (namespaces(7)); `None` if that may not be seen.
fn namespace(root: &Root, process: &str) -> Option<String> {
    root.read_link(&format!("/proc/{process}/ns/mnt")).ok()
}

/// Kernels before 4.19 have no sum of all pools in meminfo.
fn with_hugetlb(meminfo: Option<Meminfo>, pools: &[PoolRow]) -> Option<Meminfo> {
    let mut meminfo = meminfo?;
    let of_host = pools.iter().filter(|row| row.node.is_none());
    let sum = of_host.fold(Bytes(0), |sum, row| sum.saturating_add(row.pool.page_size.times(row.pool.nr)));
    meminfo.hugetlb = meminfo.hugetlb.or(Some(sum));
    Some(meminfo)
}

/// From /proc/self/mountinfo (proc(5)); of several mounts on one place the last is seen.
fn shm_is_ramfs(root: &Root) -> Result<bool, ReadError> {
    let mounts = if_there(root.read("/proc/self/mountinfo"))?.unwrap_or_default();
    let on_shm = |line: &&str| line.split(' ').nth(4) == Some("/dev/shm");
    let last = mounts.lines().rfind(on_shm);
    Ok(last.is_some_and(|line| line.split(" - ").nth(1).is_some_and(|system| system.starts_with("ramfs "))))
}

fn taken_at(root: &Root) -> SystemTime {
    let written = || std::fs::metadata(root.path("/proc/uptime")).and_then(|metadata| metadata.modified()).ok();
    if root.is_live() { SystemTime::now() } else { written().unwrap_or_else(SystemTime::now) }
}
