//! What is only in the data directory of a PostgreSQL server, and decides on a start.

use hugepage_kernel::InstanceFiles;
use hugepage_kernel::postgresql::pg_control::{self, PgControl, SIGNAL_FILES};
use serde::{Deserialize, Serialize};

/// What is in a data directory; an error is why it is not known.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DataDirectory {
    /// Whether it is that of a standby (`standby.signal`), or may be one.
    pub is_standby: bool,
    /// Whether the next start recovers from an archive (`recovery.signal`), or may.
    pub recovers: bool,
    /// What global/pg_control has.
    pub control: Result<PgControl, String>,
    /// The number of replication slots.
    pub slots: Result<usize, String>,
}

impl DataDirectory {
    /// Reads it.
    pub fn read(files: &InstanceFiles, directory: &str) -> Self {
        let has = |name: &str| !files.is_absent(&format!("{directory}/{name}"));
        let [is_standby, recovers] = SIGNAL_FILES.map(has);
        let slots = files.list(&format!("{directory}/pg_replslot"));
        Self {
            is_standby,
            recovers,
            control: control(files, directory),
            slots: slots
                .map(|slots| slots.len())
                .map_err(|error| error.to_string()),
        }
    }
}

fn control(files: &InstanceFiles, directory: &str) -> Result<PgControl, String> {
    let path = format!("{directory}/global/pg_control");
    let bytes = files.read_first(&path, pg_control::LENGTH);
    let found = PgControl::parse(&bytes.map_err(|error| error.to_string())?);
    found.ok_or_else(|| "its pg_control is not one of a known version".to_owned())
}
