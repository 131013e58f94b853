//! The Oracle instances that oratab has and that do not run: what their next start will ask for, and what it would get.

use std::fmt;

use hugepage_assess::assessment::Forecast;
use hugepage_assess::model::PoolState;
use hugepage_kernel::cgroups::cgroup::CgroupLimits;
use hugepage_kernel::{Bytes, InstanceFiles, Notes, Pages, Root};
use hugepage_sizing::{StoppedDatabase, Wants};
use serde::{Deserialize, Serialize};

use crate::readers::locate::{Search, is_numbered};
use crate::readers::oratab::{self, OratabEntry};
use crate::readers::{LastStart, OracleInstance, OracleKind};
use crate::running::RunningOracle;
use crate::settings::{NextRequest, Settings};
use crate::start_limits::{self, GRID_REGISTRY, HostOfStarts, StartLimits};

/// Why an instance does not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StoppedState {
    /// Stopped, or never started.
    Stopped,
    /// The last start in the alert log ended with an error about memory.
    Failed,
}

impl StoppedState {
    /// All states.
    pub const ALL: [Self; 2] = [Self::Stopped, Self::Failed];
}

impl fmt::Display for StoppedState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

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
}

/// What Grid Infrastructure may start, if no database is among the `known` instances: it keeps a list of its own.
pub fn unlisted(root: &Root, mut known: impl Iterator<Item = OracleKind>) -> Option<StoppedDatabase> {
    let is_unlisted = root.exists(GRID_REGISTRY) && known.all(|kind| kind != OracleKind::Database);
    let wants = Wants::Unknown("Grid Infrastructure may have databases that are not in /etc/oratab".to_owned());
    let (kind, name) = ("oracle".into(), "of srvctl".to_owned());
    is_unlisted.then_some(StoppedDatabase { kind, name, page_size: None, wants, is_manual: false })
}

/// A running instance, by its SID.
pub type Named<'a> = (&'a str, &'a RunningOracle);

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

/// The instances of oratab that do not run, in its order. An entry that names the database of a running instance of a
/// cluster stands for that instance. `running`: those that oratab may have. `home`: the only one that is looked at. `is_mine`: who reads
/// the files of a home with a program of that user, `None` if that is not visible. Each with the number of its entry.
pub fn stopped(
    host: &HostOfStarts<'_>,
    running: &[Named<'_>],
    home: Option<&String>,
    is_mine: &dyn Fn(Option<u32>) -> Claim,
    notes: &mut Notes,
) -> Vec<(usize, StoppedOracle)> {
    let files = &InstanceFiles::own(host.root);
    let mut found: Vec<(usize, StoppedOracle)> = Vec::new();
    let listed = oratab::read(host.root, notes);
    let entries = listed.iter().cloned().enumerate();
    for (number, entry) in entries.filter(|(_, entry)| home.is_none_or(|home| entry.home == *home)) {
        let mut of_entry = Notes::default();
        // The owner of a home's program is that of its instances.
        let owner = files.owner(&format!("{}/bin/oracle", entry.home)).ok();
        match is_mine(owner) {
            Claim::Mine => {}
            Claim::OfAnother => continue,
            Claim::OfNobody => {
                let sid = &entry.sid;
                notes.add(format!("{sid} of oratab is not counted: the owner of its program is no service account"));
                continue;
            }
        }
        if running.iter().any(|one| stands_for(&listed, files, one, &entry)) {
            continue;
        }
        let listed = OracleInstance::new(&entry.sid);
        let search = Search { instance: &listed, home: Some(&entry.home), diagnostic_dest: None, pmon: None };
        let sid = search.sid_of_database(files, &mut of_entry);
        // Clusters before 12.1 have both the database and its instance in oratab.
        if found.iter().any(|(_, other)| (&other.name, &other.home) == (&sid, &entry.home)) {
            continue;
        }
        found.push((number, inspect(host, OracleInstance::new(&sid), entry, owner, of_entry)));
    }
    found
}

/// Whether a running instance is the one that an entry names, by its SID or by its database.
fn stands_for(listed: &[OratabEntry], files: &InstanceFiles, (sid, oracle): &Named<'_>, entry: &OratabEntry) -> bool {
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
        [] => is_numbered(sid, &entry.sid) && listed.iter().all(|other| other.sid != *sid),
        names => names.iter().any(|name| name.eq_ignore_ascii_case(&entry.sid)),
    }
}

fn inspect(
    host: &HostOfStarts<'_>,
    instance: OracleInstance,
    entry: OratabEntry,
    owner: Option<u32>,
    mut notes: Notes,
) -> StoppedOracle {
    let search = Search { instance: &instance, home: Some(&entry.home), diagnostic_dest: None, pmon: None };
    let settings = Settings::on_disk(&search, &InstanceFiles::own(host.root), |_| true, &mut notes);
    let request = NextRequest::new(&settings);
    let (page_size, pool) = host.pool();
    let wants = request.wants(page_size, instance.kind, &entry.home);
    let start = settings.start.as_ref();
    let is_let = start.is_some_and(|start| start.huge_pages().any(|row| row.allocated > Some(Pages(0))));
    let limits = StartLimits { root: host.root, held: host.held, owner, kind: instance.kind, start, is_let };
    let lock_limit = request.least_segments(&wants, page_size).and_then(|size| {
        start_limits::of_host(host.root, size, Bytes(0)).or_else(|| limits.permission(size, &mut notes))
    });
    let limits = Some(CgroupLimits::default());
    let pool_state = PoolState { huge_page_size: page_size, pool, limits, nodes: None, lock_limit };
    let forecast = request.forecast(&wants, &pool_state);
    if let Wants::Unknown(why) = &wants {
        notes.add(why.clone());
    }
    let failed = start.is_some_and(|start| start.pmon.is_none() && !start.errors.is_empty());
    let NextRequest { use_large_pages, memory_target, .. } = request;
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
        dev_shm: host.dev_shm(),
        forecast,
        pool_state,
        alert_log: settings.log,
        last_start: settings.start,
        notes: notes.into_vec(),
    }
}
