//! What a standby database of this host will need in the role of the primary: as much as the primary, whose parameter file
//! may have a larger SGA.

use hugepage_kernel::{PageSize, Pages};

use crate::readers::{OracleKind, Parameters};
use crate::running::RunningOracle;
use crate::sga_size::{OracleNeed, StoppedOracleSize, when_down};
use crate::stopped::{NamedOracle, StoppedOracle};

/// The need of a primary, by its parameter file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrimaryNeed {
    /// DB_NAME, which a standby has, too.
    pub db_name: String,
    /// The pages that it needs, of the largest of its instances.
    pub pages: Pages,
    /// The instances of this host with that DB_NAME, running or stopped; empty for a standby that is yet to be made.
    pub instances: Vec<String>,
}

impl PrimaryNeed {
    /// The instances that need as much; of a standby that is yet to be made a name for it.
    pub fn names(&self) -> Vec<String> {
        match self.instances.as_slice() {
            [] => vec![format!("{} (a new standby)", self.db_name)],
            names => names.to_vec(),
        }
    }
}

/// The need of the primary with these parameters, one of each of its instances. `running`, `stopped`: the instances of this host.
/// The error says what is unknown.
pub fn need_of_primary<'a>(
    instances: &[Parameters],
    size: PageSize,
    running: impl Iterator<Item = NamedOracle<'a>>,
    stopped: &[StoppedOracle],
) -> Result<PrimaryNeed, String> {
    let get = |name: &str| instances.iter().find_map(|parameters| parameters.get(name));
    let db_name = get("db_name").ok_or("it has no DB_NAME")?;
    if let Some(file) = get("spfile").or_else(|| get("ifile")) {
        return Err(format!("it names another file, {file}: run CREATE PFILE = '...' FROM SPFILE on the primary"));
    }
    let need = |parameters: &Parameters| {
        let is_off = parameters.get("use_large_pages").is_some_and(|value| value.eq_ignore_ascii_case("FALSE"));
        let automatic_memory = is_off || parameters.is_automatic_memory();
        let sga_max_size = parameters.sga_max_size();
        match when_down(&StoppedOracleSize { expected: None, sga_max_size, automatic_memory }, size) {
            OracleNeed::Pages(pages) => Some(pages),
            OracleNeed::AutomaticMemory => Some(Pages(0)),
            OracleNeed::Unknown => None,
        }
    };
    // What is set for instances that the file names, and for none other, is in their entries alone.
    let pages = instances.iter().filter_map(need).max().ok_or("it has neither SGA_MAX_SIZE nor SGA_TARGET")?;
    let is_name = |names: &[String]| names.iter().any(|name| name.eq_ignore_ascii_case(db_name));
    let is_of_it = |oracle: &RunningOracle| oracle.kind == OracleKind::Database && is_name(&oracle.database);
    let running = running.filter(|running| is_of_it(running.oracle));
    let stopped = stopped.iter().filter(|stopped| is_name(&stopped.database));
    let names = running.map(|running| running.sid).chain(stopped.map(|stopped| &*stopped.name));
    Ok(PrimaryNeed { db_name: db_name.to_owned(), pages, instances: names.map(str::to_owned).collect() })
}
