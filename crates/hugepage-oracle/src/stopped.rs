//! The Oracle instances that oratab has and that do not run: what their next start will ask for, and what it would get.

use hugepage_assess::assessment::Forecast;
use hugepage_assess::model::{LockLimit, PoolState};
use hugepage_facts::{InstanceKey, LastStart, OracleKind, RunningOracle, StoppedFacts};
use hugepage_kernel::host::accounts::{self, Account};
use hugepage_kernel::host::mounts;
use hugepage_kernel::memory::sysctl::running_number;
use hugepage_kernel::{Bytes, InstanceFiles, Meminfo, Notes, Root};
use hugepage_sizing::{StoppedDatabase, Wants};

use crate::readers::OracleInstance;
use crate::readers::locate::{Search, is_numbered};
use crate::readers::oratab::{self, OratabEntry};
use crate::readers::words::size;
use crate::settings::on_disk;
use crate::start_limits::{GRID_REGISTRY, LackedMemlock};

/// ORA-27300: the operating system refused a call; where that is fork(2), a process.
pub(crate) const NO_CALL: u32 = 27300;

hugepage_facts::words! {
    /// Why an instance does not run.
    pub enum StoppedState {
        /// Stopped, or never started.
        Stopped,
        /// The last start in the alert log ended with an error about memory.
        Failed,
    }
}

/// An instance that does not run, and what its next start gets.
#[derive(Clone, Debug)]
pub struct StoppedOracle {
    /// The kind of the instance.
    pub kind: OracleKind,
    /// The SID.
    pub name: String,
    /// ORACLE_HOME.
    pub home: String,
    /// The owner of its program; `None` if that is not visible.
    pub owner: Option<u32>,
    /// Whether it starts at boot: by oratab (`Y` or `W`), or Grid Infrastructure starts it.
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
    /// The memory that it may not lock; `None` if that stops no start.
    pub memlock: Option<LackedMemlock>,
    /// What else the kernel refuses it for certain, in the order in which that stops the start.
    pub limits: Vec<LockLimit>,
    /// The last start in its alert log.
    pub last_start: Option<LastStart>,
    /// What could not be read of it.
    pub notes: Vec<String>,
}

impl StoppedOracle {
    /// What tells it from all others of the host.
    pub fn key(&self) -> InstanceKey {
        InstanceKey {
            kind: self.kind.to_string(),
            uid: self.owner,
            container: None,
            name: self.name.clone(),
            home: Some(self.home.clone()),
        }
    }

    /// What `size` counts.
    pub fn database(&self) -> StoppedDatabase {
        StoppedDatabase {
            key: self.key(),
            page_size: None,
            wants: self.wants.clone(),
            is_automatic: false,
            remark: None,
        }
    }
}

/// Whether Grid Infrastructure is there, which keeps a list of databases of its own.
pub fn has_grid_registry(root: &Root) -> bool {
    root.exists(GRID_REGISTRY)
}

/// What Grid Infrastructure may start, where it is there, if no database is among the `known` instances.
pub fn unlisted(
    has_registry: bool,
    mut known: impl Iterator<Item = OracleKind>,
) -> Option<StoppedDatabase> {
    let is_unlisted = has_registry && known.all(|kind| kind != OracleKind::Database);
    let why = "Grid Infrastructure may have databases that are not in /etc/oratab";
    is_unlisted
        .then(|| StoppedDatabase::named("oracle", "of srvctl".into(), Wants::Unknown(why.into())))
}

/// A running instance, by its SID and its user.
pub type Named<'a> = (&'a str, Option<u32>, &'a RunningOracle);

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

/// Who reads what a user owns, `None` if its owner is not visible.
pub type ClaimOf<'a> = &'a dyn Fn(Option<u32>) -> Claim;

/// The instances of oratab that do not run, in its order. An entry that names the database of a running instance of a
/// cluster stands for that instance. `running`: those that oratab may have. `home`: the only one that is looked at. `is_mine`: who reads
/// the files of a home with a program of that user, `None` if that is not visible. Each with the number of its entry.
pub fn stopped(
    root: &Root,
    running: &[Named<'_>],
    home: Option<&String>,
    is_mine: ClaimOf<'_>,
    notes: &mut Notes,
) -> Vec<(usize, StoppedFacts)> {
    let files = &InstanceFiles::own(root);
    let mut found: Vec<(usize, StoppedFacts)> = Vec::new();
    let listed = oratab::read(root, notes);
    let entries = listed.iter().enumerate();
    for (number, entry) in entries.filter(|(_, entry)| home.is_none_or(|home| entry.home == *home))
    {
        let mut of_entry = Notes::default();
        // The owner of a home's program is that of its instances.
        let program = format!("{}/bin/oracle", entry.home);
        let owner = files.owner(&program).ok();
        let why = match is_mine(owner) {
            Claim::Mine if files.is_absent(&program) => Some("its home has no bin/oracle"),
            Claim::Mine => None,
            Claim::OfAnother => continue,
            Claim::OfNobody => Some("the owner of its program is no service account"),
        };
        if let Some(why) = why {
            notes.add(format!("{} of oratab is not counted: {why}", entry.sid));
            continue;
        }
        // Whoever calls itself so and is another user has another home; the owners in a tree are none of the host's.
        let is_owner = |one: &&Named<'_>| {
            root.is_tree() || owner.is_none() || one.1.is_none() || one.1 == owner
        };
        if running
            .iter()
            .filter(is_owner)
            .any(|one| stands_for(&listed, files, one, entry))
        {
            continue;
        }
        let search = Search {
            instance: &OracleInstance::new(&entry.sid),
            home: Some(&entry.home),
            diagnostic_dest: None,
            pmon: None,
        };
        let sid = search.sid_of_database(files, &mut of_entry);
        // Clusters before 12.1 have both the database and its instance in oratab.
        if found
            .iter()
            .any(|(_, other)| (&other.name, &other.home) == (&sid, &entry.home))
        {
            continue;
        }
        let search = Search {
            instance: &OracleInstance::new(&sid),
            ..search
        };
        let facts = read(root, &search, entry, owner, of_entry);
        found.push((number, facts));
    }
    found
}

/// Whether a running instance is the one that an entry names, by its SID or by its database.
fn stands_for(
    listed: &[OratabEntry],
    files: &InstanceFiles,
    (sid, _, oracle): &Named<'_>,
    entry: &OratabEntry,
) -> bool {
    let inode = |home: &str| files.root().inode(home);
    let is_home_of = |entry: &OratabEntry| {
        let is_home = |home: &String| {
            *home == entry.home || inode(home).is_some_and(|its| inode(&entry.home) == Some(its))
        };
        oracle.home.as_ref().is_none_or(is_home)
    };
    if *sid == entry.sid {
        let of_sid = |other: &&OratabEntry| other.sid == *sid;
        return is_home_of(entry) || !listed.iter().filter(of_sid).any(is_home_of);
    }
    if oracle.kind != OracleKind::Database || !is_home_of(entry) {
        return false;
    }
    match oracle.settings.database_names().as_slice() {
        // Its log is not visible, so only the name tells; one that has an entry of its own is another database.
        [] => is_numbered(sid, &entry.sid) && listed.iter().all(|other| other.sid != *sid),
        names => names
            .iter()
            .any(|name| name.eq_ignore_ascii_case(&entry.sid)),
    }
}

fn read(
    root: &Root,
    search: &Search<'_>,
    entry: &OratabEntry,
    owner: Option<u32>,
    mut notes: Notes,
) -> StoppedFacts {
    let instance = search.instance;
    let settings = on_disk(search, &InstanceFiles::own(root), |_| true, &mut notes);
    let account = account(root, owner, instance.kind);
    let group =
        running_number(root, "vm.hugetlb_shm_group").and_then(|gid| u32::try_from(gid).ok());
    let is_in_shm_group = group
        .zip(account.as_ref())
        .and_then(|(gid, account)| accounts::is_member(root, account.uid, gid));
    StoppedFacts {
        kind: instance.kind,
        name: instance.sid.clone(),
        home: entry.home.clone(),
        owner,
        account,
        is_in_shm_group,
        // Grid Infrastructure starts its own, whatever oratab has.
        starts_at_boot: entry.starts_at_boot
            || instance.kind != OracleKind::Database && has_grid_registry(root),
        settings,
        notes: notes.into_vec(),
    }
}

/// The account of the `owner` of a program.
fn account(root: &Root, owner: Option<u32>, kind: OracleKind) -> Option<Account> {
    let all = accounts::accounts(root).ok()?;
    if !root.is_tree() {
        return all.into_iter().find(|account| Some(account.uid) == owner);
    }
    let names: &[&str] = if kind == OracleKind::Database {
        &["oracle"]
    } else {
        &["grid", "oracle"]
    };
    names
        .iter()
        .find_map(|name| all.iter().find(|account| account.name == *name))
        .cloned()
}

/// The size of /dev/shm, which has to hold MEMORY_TARGET; `None` if unknown. The kernel shows it where it is not its default.
pub fn dev_shm(root: &Root, meminfo: Option<&Meminfo>) -> Option<Bytes> {
    let mount = mounts::seen_at(root, "/dev/shm").filter(|mount| mount.kind == "tmpfs")?;
    match mount
        .options
        .iter()
        .find_map(|option| option.strip_prefix("size="))
    {
        Some("0k") => Some(Bytes(u64::MAX)),
        Some(text) => size(text),
        None => Some(Bytes(meminfo?.mem_total?.0 / 2)),
    }
}
