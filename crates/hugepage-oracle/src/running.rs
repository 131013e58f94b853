//! What only a running Oracle instance has beside what every server has.

use hugepage_kernel::Bytes;

use crate::clusterware::Clusterware;
use crate::readers::{LastStart, OracleKind};

/// The part of a running server that is Oracle's.
#[derive(Clone, Debug)]
pub struct RunningOracle {
    /// The kind of the instance.
    pub kind: OracleKind,
    /// ORACLE_HOME; `None` if it is not visible.
    pub home: Option<String>,
    /// The names of its database, by the path of its alert log and by its parameters; empty if none is known.
    pub database: Vec<String>,
    /// The path of its alert log, as its processes see it; `None` if none is visible.
    pub alert_log: Option<String>,
    /// What the alert log shows of the start of this instance.
    pub last_start: Option<LastStart>,
    /// Grid Infrastructure; `None` where there is none.
    pub clusterware: Option<Clusterware>,
    /// The Managed Global Area: files of /dev/shm beside the SGA (18c and later). `None` if its memory may not be read.
    pub managed_global_area: Option<Bytes>,
}

impl RunningOracle {
    /// The release, by the alert log.
    pub fn version(&self) -> Option<&str> {
        self.last_start.as_ref()?.version.as_deref()
    }
}
