//! The Oracle instances that oratab has and that do not run: what their next start will ask for, and what it would get.

use hugepage_assess::assessment::stopped::{StoppedState, severity};
use hugepage_assess::assessment::{Forecast, Outlook, Severity};
use hugepage_assess::model::{HugePages, LockLimit, PoolState};
use hugepage_assess::stopped_databases::{StoppedDatabase, Wants};
use hugepage_kernel::cgroups::cgroup::CgroupLimits;
use hugepage_kernel::notes::Notes;
use hugepage_kernel::{Bytes, InstanceFiles, PageSize, Pages};
use serde::{Deserialize, Serialize};

use crate::clusterware::Clusterware;
pub use crate::host_of_starts::HostOfStarts;
use crate::readers::locate::{Search, is_numbered};
use crate::readers::oratab::{HostOratab, OratabEntry};
use crate::readers::{LastStart, OracleInstance, OracleKind, Parameters};
use crate::requested::requested_by;
use crate::running::RunningOracle;
use crate::settings::Settings;
use crate::sga_size::{EXTRA, rounded};
use crate::start_limits::{self, StartLimits};

/// An instance that does not run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StoppedOracle {
    /// The kind of the instance.
    pub kind: OracleKind,
    /// The SID.
    pub name: String,
    /// ORACLE_HOME.
    pub home: String,
    /// The owner of its program; `None` if that is not visible.
    pub owner: Option<u32>,
    /// Whether oratab has it start at boot (`Y` or `W`).
    pub starts_at_boot: bool,
    /// Whether it was stopped, or its last start failed.
    pub state: StoppedState,
    /// What its next start will ask for.
    pub wants: Wants,
    /// `use_large_pages` of its files or its log; `None` if none of them shows it.
    pub use_large_pages: Option<String>,
    /// MEMORY_TARGET of its files or its log; `None` if it is not set.
    pub memory_target: Option<Bytes>,
    /// The size of /dev/shm; `None` if unknown.
    pub dev_shm: Option<Bytes>,
    /// What a start would get of the pool as it is, with what the kernel lets its owner have. A cgroup in which it might be
    /// started is not known. `None` if its need is unknown, or if it needs no huge pages and would start.
    pub forecast: Option<Forecast>,
    /// What the forecast is made with.
    pub pool_state: PoolState,
    /// The path of its alert log; `None` if none is visible.
    pub alert_log: Option<String>,
    /// The last start in its alert log.
    pub last_start: Option<LastStart>,
    /// Grid Infrastructure of its host.
    pub clusterware: Option<Clusterware>,
    /// What could not be read of it.
    pub notes: Vec<String>,
}

impl StoppedOracle {
    /// What `size` counts.
    pub fn database(&self) -> StoppedDatabase {
        let kind = if self.kind == OracleKind::Asm { "asm" } else { "oracle" };
        StoppedDatabase {
            kind: kind.into(),
            name: self.name.clone(),
            page_size: None,
            wants: self.wants.clone(),
            is_manual: false,
        }
    }

    /// What its next start would get; `Base` if it asks for no huge pages.
    pub fn outlook(&self) -> Outlook {
        match (&self.wants, &self.forecast) {
            (_, Some(forecast)) => forecast.outlook,
            (Wants::None(_), None) if self.lacks_dev_shm() => Outlook::Fails,
            (Wants::None(_), None) => Outlook::Base,
            _ => Outlook::Unknown,
        }
    }

    /// How severe it is that it does not run, or how it would start.
    pub fn severity(&self) -> Severity {
        let of_forecast = self.forecast.as_ref().map(|forecast| forecast.outlook);
        severity(self.state, self.starts_at_boot, of_forecast.or(self.lacks_dev_shm().then_some(Outlook::Fails)))
    }

    /// Whether /dev/shm is too small for MEMORY_TARGET (ORA-00845).
    pub(crate) fn lacks_dev_shm(&self) -> bool {
        self.memory_target.zip(self.dev_shm).is_some_and(|(needed, size)| size < needed)
    }
}

/// Whose files a process reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// Its own.
    Mine,
    /// Another process reads them.
    OfAnother,
    /// Nobody does: their owner is no service account.
    OfNobody,
}

/// A running instance with its name.
#[derive(Clone, Copy, Debug)]
pub struct NamedOracle<'a> {
    /// The SID.
    pub sid: &'a str,
    /// The instance.
    pub oracle: &'a RunningOracle,
}

/// The instances of oratab that do not run, in its order. An entry that names the database of a running instance of a
/// cluster stands for that instance. `running`: those that oratab may have. `home`: the only one that is looked at. `is_mine`: who reads
/// the files of a home with a program of that user, `None` if that is not visible. Each with the number of its entry.
pub fn stopped(
    host: &HostOfStarts<'_>,
    running: &[NamedOracle<'_>],
    home: Option<&String>,
    is_mine: &dyn Fn(Option<u32>) -> Claim,
    notes: &mut Notes,
) -> Vec<(usize, StoppedOracle)> {
    let files = &InstanceFiles::own(host.oratab.root());
    let mut found: Vec<(usize, StoppedOracle)> = Vec::new();
    let entries = host.oratab.entries(files, notes).into_owned().into_iter().enumerate();
    for (number, entry) in entries.filter(|(_, entry)| home.is_none_or(|home| entry.home == *home)) {
        let mut of_entry = Notes::default();
        match is_mine(files.owner(&program(&entry.home)).ok()) {
            Claim::Mine => {}
            Claim::OfAnother => continue,
            Claim::OfNobody => {
                notes.add(format!(
                    "{} of oratab is not counted: the owner of its program is no service account",
                    entry.sid
                ));
                continue;
            }
        }
        if running.iter().any(|one| stands_for(host.oratab, files, one, &entry)) {
            continue;
        }
        let kind = OracleKind::of_sid(&entry.sid);
        let listed = OracleInstance { kind, sid: entry.sid.clone() };
        let search = Search { instance: &listed, home: Some(&entry.home), diagnostic_dest: None, pmon: None };
        let sid = search.sid_of_database(files, &mut of_entry);
        // Clusters before 12.1 have both the database and its instance in oratab.
        if found.iter().any(|(_, other)| (&other.name, &other.home) == (&sid, &entry.home)) {
            continue;
        }
        let instance = OracleInstance { kind, sid };
        found.push((number, inspect(host, instance, entry, files, of_entry)));
    }
    found
}

/// The program of a home, whose owner is that of the home's instances.
fn program(home: &str) -> String {
    format!("{home}/bin/oracle")
}

/// Whether a running instance is the one that an entry names, by its SID or by its database.
fn stands_for(oratab: &HostOratab<'_>, files: &InstanceFiles, running: &NamedOracle<'_>, entry: &OratabEntry) -> bool {
    let NamedOracle { sid, oracle } = running;
    if *sid == entry.sid {
        return true;
    }
    let inode = |home: &str| files.root().inode(home);
    let is_home = |home: &String| *home == entry.home || inode(home).is_some_and(|its| inode(&entry.home) == Some(its));
    if oracle.kind != OracleKind::Database || !oracle.home.as_ref().is_none_or(is_home) {
        return false;
    }
    match oracle.database.as_slice() {
        // Its log is not visible, so only the name tells; one that has an entry of its own is another database.
        [] => {
            let entries = oratab.entries(files, &mut Notes::default());
            is_numbered(sid, &entry.sid) && entries.iter().all(|other| other.sid != *sid)
        }
        names => names.iter().any(|name| name.eq_ignore_ascii_case(&entry.sid)),
    }
}

fn inspect(
    host: &HostOfStarts<'_>,
    instance: OracleInstance,
    entry: OratabEntry,
    files: &InstanceFiles,
    mut notes: Notes,
) -> StoppedOracle {
    let home = &entry.home;
    let owner = files.owner(&program(home)).ok();
    let search = Search { instance: &instance, home: Some(home), diagnostic_dest: None, pmon: None };
    let settings = Settings::on_disk(&search, files, |_| true, &mut notes);
    let start = settings.start.as_ref();
    let known = || settings.parameters.iter().chain(start.map(|start| &start.parameters));
    let use_large_pages = known().find_map(|parameters| parameters.get("use_large_pages")).map(str::to_ascii_uppercase);
    let use_large_pages = use_large_pages.or_else(|| start?.use_large_pages.clone());
    let of_log = start.filter(|_| settings.parameters.is_none()).and_then(|start| start.dev_shm);
    let memory_target = known().next().and_then(Parameters::memory_target).or(of_log);
    let automatic_memory = memory_target.is_some();
    let sga = known().find_map(|parameters| parameters.sga_max_size());
    let requested = requested_by(use_large_pages.as_deref(), settings.version(), automatic_memory, sga);

    let page_size = host.page_size();
    let expected = |size: PageSize| -> Option<Pages> {
        let expected = start?.expected().into_iter().find(|(of, _)| *of == size)?;
        Some(expected.1)
    };
    let is_unread = settings.is_unread && settings.parameters.is_none();
    let wants = match page_size {
        _ if is_unread => Wants::Unknown("its parameter file is not read".into()),
        _ if requested.huge_pages == HugePages::Off => Wants::None("use_large_pages = FALSE".into()),
        None => Wants::None("this kernel has no huge pages".into()),
        Some(size) => {
            let expected = expected(size);
            let configured = sga.map(|sga| size.pages_to_hold(rounded(sga)));
            match expected.max(configured).filter(|pages| *pages > Pages(0)) {
                _ if automatic_memory => Wants::None("MEMORY_TARGET: its SGA is files in /dev/shm".into()),
                _ if sga.zip(known().next()).is_some_and(|(sga, one)| one.components() > sga) => {
                    Wants::Unknown("its pools are larger than its SGA_MAX_SIZE and SGA_TARGET".into())
                }
                Some(pages) => {
                    let by = if expected.is_some() { "its last start and parameters" } else { "its parameters" };
                    Wants::Pages(pages.saturating_add(EXTRA), by.into())
                }
                // Database Reference, MEMORY_TARGET: an ASM instance has a default of its own.
                None if instance.kind == OracleKind::Asm && known().next().is_some() => {
                    Wants::None("ASM uses MEMORY_TARGET unless its parameters say otherwise".into())
                }
                None => Wants::Unknown(format!(
                    "neither a parameter file with SGA_MAX_SIZE or SGA_TARGET nor an alert log with the size was found for \
                     {home}"
                )),
            }
        }
    };
    let clusterware = settings.clusterware(&instance, files, || entry.by_agent, &mut notes);
    let at_least = match (wants.pages(), page_size) {
        _ if automatic_memory => None,
        (Some(pages @ Pages(1..)), Some(size)) => Some(size.times(pages.saturating_sub(EXTRA))),
        _ => sga.or_else(|| start?.refused_segment),
    };
    let limits = StartLimits {
        oratab: host.oratab,
        owner,
        kind: instance.kind,
        start,
        clusterware: clusterware.as_ref(),
        held: host.held,
    };
    let lock_limit = at_least.and_then(|size| limits.lock_limit(size, &mut notes));
    let (pool, limits) = (host.pool(), Some(CgroupLimits::default()));
    let pool_state = PoolState { huge_page_size: page_size, pool, limits, nodes: None, lock_limit };
    // On a kernel without huge pages ONLY fails, whatever the size is, and with MEMORY_TARGET on every kernel (ORA-27138).
    let is_refused = matches!(wants, Wants::None(_))
        && requested.huge_pages == HugePages::On
        && (automatic_memory || page_size.is_none() && host.meminfo.is_some());
    let asked = page_size.zip(wants.pages()).map(|(size, pages)| size.times(pages));
    let is_known = matches!(wants, Wants::Pages(..)) || lock_limit.is_some_and(LockLimit::prevents_start);
    let asked = asked.filter(|_| is_known);
    let forecast = (is_known || is_refused).then(|| Forecast::of_start(&requested, asked, &pool_state, Pages(0)));
    if let Wants::Unknown(why) = &wants {
        notes.add(why.clone());
    }
    let failed = start.is_some_and(|start| start.pmon.is_none() && !start.errors.is_empty());
    StoppedOracle {
        kind: instance.kind,
        name: instance.sid,
        home: entry.home,
        owner,
        starts_at_boot: entry.starts_at_boot,
        state: if failed { StoppedState::Failed } else { StoppedState::Stopped },
        wants,
        use_large_pages,
        memory_target,
        dev_shm: start_limits::dev_shm(host.oratab.root(), host.meminfo),
        forecast,
        pool_state,
        alert_log: settings.log,
        last_start: settings.start,
        clusterware,
        notes: notes.into_vec(),
    }
}
