//! What is only in the data directory of a PostgreSQL server, and decides on a start.

use hugepage_facts::DataDirectory;
use hugepage_kernel::InstanceFiles;
use hugepage_kernel::postgresql::pg_control::{self, PgControl, SIGNAL_FILES};

/// Reads it.
pub fn read(files: &InstanceFiles, directory: &str) -> DataDirectory {
    let has = |name: &str| !files.is_absent(&format!("{directory}/{name}"));
    let [is_standby, recovers] = SIGNAL_FILES.map(has);
    let slots = files.list(&format!("{directory}/pg_replslot"));
    DataDirectory {
        is_standby,
        recovers,
        control: control(files, directory),
        slots: slots
            .map(|slots| slots.len())
            .map_err(|error| error.to_string()),
    }
}

fn control(files: &InstanceFiles, directory: &str) -> Result<PgControl, String> {
    let path = format!("{directory}/global/pg_control");
    let bytes = files.read_first(&path, pg_control::LENGTH);
    let found = PgControl::parse(&bytes.map_err(|error| error.to_string())?);
    found.ok_or_else(|| "its pg_control is not one of a known version".to_owned())
}
