//! What the files and the processes of an Oracle instance say, one that runs or one that does not.

use std::fmt;

use hugepage_kernel::host::accounts::Account;
use hugepage_kernel::{Bytes, PageSize, Pages, Rlimit};
use serde::{Deserialize, Serialize};

/// The kind of an instance: what it serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum OracleKind {
    /// A database (`ora_pmon_SID`; `xe_pmon_XE` of Express Edition, `db_pmon_FREE` of Free).
    Database,
    /// Automatic Storage Management (`asm_pmon_+ASM1`).
    Asm,
    /// The Grid Infrastructure management repository (`mdb_pmon_-MGMTDB`).
    ManagementDatabase,
    /// An ASM proxy instance of Flex ASM (`apx_pmon_+APX1`).
    AsmProxy,
    /// An I/O server instance of Flex ASM (`ios_pmon_+IOS1`).
    IoServer,
}

impl fmt::Display for OracleKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Database => "oracle",
            Self::Asm => "asm",
            Self::ManagementDatabase => "mgmtdb",
            Self::AsmProxy => "apx",
            Self::IoServer => "ios",
        })
    }
}

/// The part of a running server that is Oracle's.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunningOracle {
    /// The kind of the instance.
    pub kind: OracleKind,
    /// ORACLE_HOME; `None` if it is not visible.
    pub home: Option<String>,
    /// What its files say of this start and of the next one.
    #[serde(default)]
    pub settings: OracleSettings,
    /// Whether its SGA is files of /dev/shm; `None` if that may not be seen.
    pub is_in_shm: Option<bool>,
    /// What the kernel lets its PMON lock; `None` if that may not be seen.
    pub lock_rights: Option<LockRights>,
}

/// What was read of an instance that does not run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StoppedFacts {
    /// The kind of the instance.
    pub kind: OracleKind,
    /// The SID.
    pub name: String,
    /// ORACLE_HOME.
    pub home: String,
    /// The owner of its program; `None` if that is not visible.
    pub owner: Option<u32>,
    /// The account of that owner; in a tree, which has the owners of whoever made it, the one that manuals name.
    pub account: Option<Account>,
    /// Whether that account is in the group of `vm.hugetlb_shm_group`; `None` if unknown.
    pub is_in_shm_group: Option<bool>,
    /// Whether oratab has it start at boot (`Y` or `W`).
    pub starts_at_boot: bool,
    /// What its files say.
    pub settings: OracleSettings,
    /// What could not be read of it.
    pub notes: Vec<String>,
}

/// What decides whether a process may have System V segments in huge pages (proc(5)).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockRights {
    /// `CapEff`.
    pub capabilities: u64,
    /// The effective one of `Gid`.
    pub gid: u32,
    /// All of `Gid` and `Groups`.
    pub groups: Vec<u64>,
}

/// The settings of an instance as its files have them.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct OracleSettings {
    /// What the next start will read; `None` if that is unknown.
    pub parameters: Option<Parameters>,
    /// The last start in the alert log.
    pub start: Option<LastStart>,
    /// The path of that log.
    pub log: Option<String>,
    /// Whether there is a parameter file that could not be read, such as an spfile in ASM.
    pub is_unread: bool,
}

impl OracleSettings {
    /// The release, by the log.
    pub fn version(&self) -> Option<&str> {
        self.start.as_ref()?.version.as_deref()
    }

    /// The names of the database: DB_UNIQUE_NAME and DB_NAME by the parameters; then by the path of its alert log, in lower case.
    pub fn database_names(&self) -> Vec<String> {
        let of_start = self.start.iter().map(|start| &start.parameters);
        let of_parameters = of_start
            .chain(&self.parameters)
            .flat_map(|known| ["db_unique_name", "db_name"].map(|name| known.get(name)));
        // `orcl` in `/u01/app/oracle/diag/rdbms/orcl/orcl1/trace/alert_orcl1.log`.
        let of_log = self
            .log
            .as_deref()
            .and_then(|log| log.rsplit_once("/diag/rdbms/")?.1.split('/').next());
        of_parameters
            .chain([of_log])
            .flatten()
            .map(str::to_owned)
            .collect()
    }
}

/// Parameters that were set; all others have Oracle's defaults.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parameters(pub Vec<Parameter>);

/// A parameter of an instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parameter {
    /// The SID of the instance that the parameter is for, `*` or empty for all.
    pub sid: String,
    /// The name in lower case.
    pub name: String,
    /// The value without its quotes.
    pub value: String,
}

impl Parameters {
    /// The effective value.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0
            .iter()
            .rev()
            .find(|parameter| parameter.name == name)
            .map(|parameter| parameter.value.as_str())
    }

    /// The effective value in upper case; `None` also of `0` and `FALSE`.
    pub fn set(&self, name: &str) -> Option<String> {
        let value = self.get(name)?.to_ascii_uppercase();
        (!matches!(&*value, "0" | "FALSE")).then_some(value)
    }

    /// Whether nothing was set.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The last start in a log, up to PMON's start, be it that of the running instance or an earlier one.
///
/// Sizes that Oracle rounds down (`28 GB` for 14,497 pages) are as printed. What the log does not have is `None`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LastStart {
    /// The time before the line; `None` in a log without its beginning.
    pub at: Option<Timestamp>,
    /// `normal`, `restrict`, `force`...
    pub mode: Option<String>,
    /// `PMON started with pid=2, OS id=4352`, in the PID namespace of the instance. `None` if the start did not get there.
    pub pmon: Option<i32>,
    /// `11.2.0.4.0`; where the log has it, with the release update (`19.24.0.0.0`).
    pub version: Option<String>,
    /// The spfile or pfile that was used, in ASM if it begins with `+`.
    pub parameter_file: Option<String>,
    /// `System parameters with non-default values`.
    pub parameters: Parameters,
    /// Of the parameters, or the value that was refused.
    pub use_large_pages: Option<String>,
    /// `Per process system memlock (soft) limit` (since 11.2.0.4).
    pub memlock: Option<Rlimit>,
    /// The table of page sizes (since 12.1), base pages first; of 11.2 the huge pages alone.
    pub page_sizes: Vec<LoggedPageRow>,
    /// What MEMORY_TARGET needs in /dev/shm, where that was too small (ORA-00845, which the log does not show).
    pub dev_shm: Option<Bytes>,
    /// What the operating system said of an error: the number of errno(3), as in `Linux-x86_64 Error: 28`.
    pub os_error: Option<u32>,
    /// Errors while starting, one line each: `ORA-27137: unable to allocate Large Pages ...`, `use_large_pages = FALSE
    /// is not a supported setting for database on Exadata`. A start that went well has none.
    pub errors: Vec<String>,
}

/// A row of the table since 12.1, or what the block of 11.2 has for one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoggedPageRow {
    /// PAGESIZE.
    pub page_size: PageSize,
    /// AVAILABLE_PAGES; `None` for base pages, which have the word `Configured`.
    pub available: Option<Pages>,
    /// Whether the row is that of base pages.
    pub is_base: bool,
    /// EXPECTED_PAGES: what Oracle expected of this size.
    pub expected: Option<Pages>,
    /// ALLOCATED_PAGES: the pages that the instance got.
    pub allocated: Option<Pages>,
    /// ERROR(s), `None` for `NONE` and where the column is missing.
    pub error: Option<String>,
}

impl LastStart {
    /// The rows of the table for huge pages.
    pub fn huge_pages(&self) -> impl Iterator<Item = &LoggedPageRow> {
        self.page_sizes.iter().filter(|row| !row.is_base)
    }

    /// The errors of the table and of the start.
    pub fn all_errors(&self) -> impl Iterator<Item = &String> + Clone {
        let of_table = self.page_sizes.iter().filter_map(|row| row.error.as_ref());
        of_table.chain(&self.errors)
    }

    /// Whether an error of the start has that code.
    pub fn has_error(&self, code: u32) -> bool {
        let code = format!("ORA-{code}");
        self.all_errors().any(|error| error.starts_with(&code))
    }

    /// The row of huge pages of `size`; `None` if the log does not have it.
    pub fn pages_of(&self, size: PageSize) -> Option<&LoggedPageRow> {
        self.huge_pages().find(|row| row.page_size == size)
    }
}

/// A time as a log has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timestamp {
    /// Seconds from 1970-01-01 00:00 to this time of day in the log's own time zone.
    pub local: i64,
    /// The zone's offset from UTC in seconds, east positive; `None` up to 12.1, which does not print it.
    pub offset: Option<i64>,
}

impl Timestamp {
    /// Seconds since 1970-01-01 00:00 UTC; `None` without an offset.
    pub fn unix(&self) -> Option<i64> {
        Some(self.local - self.offset?)
    }
}
