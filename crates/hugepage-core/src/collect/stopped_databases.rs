//! Oracle instances that are configured on a host and do not run, and the pages that they will need.

use crate::assess::host::PoolNeed;
use crate::assess::oracle_size::{self, when_down};
use crate::collect::instances::Survey;
use crate::notes::Notes;
use crate::read::oracle::locate::Search;
use crate::read::oracle::{OracleInstance, OracleKind, Parameters, oratab};
use crate::read::{InstanceFiles, Root};
use crate::{PageSize, Pages};

/// A server that does not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoppedDatabase {
    /// Its kind: `oracle`, `asm`, `postgresql`.
    pub kind: &'static str,
    /// Its SID, or its data directory.
    pub name: String,
    /// The size of the pages that it asks for; `None` for the host's default.
    pub page_size: Option<PageSize>,
    /// What it needs of them.
    pub wants: Wants,
}

/// What a server that does not run will ask for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wants {
    /// This number of huge pages, and the source of the number.
    Pages(Pages, &'static str),
    /// None, and why.
    None(&'static str),
    /// It could not be determined, and why.
    Unknown(String),
}

impl StoppedDatabase {
    /// Its need of a pool; `None` if the number is unknown.
    pub fn need(&self) -> Option<(Option<PageSize>, PoolNeed)> {
        let Wants::Pages(pages, _) = self.wants else { return None };
        Some((self.page_size, PoolNeed { name: self.name.clone(), pages, held: Pages(0), is_running: false }))
    }
}

/// The instances of oratab that do not run.
pub fn oracle(root: &Root, survey: &Survey, notes: &mut Notes) -> Vec<StoppedDatabase> {
    let default = survey.default_page_size();
    // A process that only bears the name does not stand for it.
    let runs = |sid: &str| survey.counted().any(|instance| instance.name == sid);
    let down = oratab::read(root, notes).into_iter().filter(|entry| !runs(&entry.sid));
    down.map(|entry| {
        let kind = if entry.sid.starts_with('+') { OracleKind::Asm } else { OracleKind::Database };
        let instance = OracleInstance { kind, sid: entry.sid.clone() };
        let wants = match default {
            Some(default) => wants(root, &instance, &entry.home, default, notes),
            None => Wants::None("this kernel has no huge pages"),
        };
        let kind = if kind == OracleKind::Asm { "asm" } else { "oracle" };
        StoppedDatabase { kind, name: entry.sid, page_size: None, wants }
    })
    .collect()
}

fn wants(root: &Root, instance: &OracleInstance, home: &str, page_size: PageSize, notes: &mut Notes) -> Wants {
    // The directory of Grid Infrastructure's home is root's; its program belongs to its user.
    let files = &InstanceFiles::of_owner(root, &format!("{home}/bin/oracle"));
    let search = Search { instance, home: Some(home), diagnostic_dest: None, pmon: None };
    let parameters = search
        .parameter_file(files, notes)
        .map(|path| Parameters::read(files, &path, &instance.sid, notes))
        .filter(|parameters| !parameters.is_empty());
    let destination = parameters.as_ref().and_then(|parameters| parameters.get("diagnostic_dest"));
    let start = Search { diagnostic_dest: destination, ..search }.last_start(files, notes).map(|(_, start)| start);
    let known = [parameters.as_ref(), start.as_ref().map(|start| &start.parameters)];
    // The next start reads the parameter file; the log shows the last start.
    let setting = known.iter().flatten().find_map(|parameters| parameters.get("use_large_pages"));
    if setting.is_some_and(|setting| setting.eq_ignore_ascii_case("false")) {
        return Wants::None("use_large_pages = FALSE");
    }
    let expected = start
        .as_ref()
        .and_then(|start| start.expected().into_iter().find(|(size, _)| *size == page_size).map(|(_, pages)| pages));
    let down = oracle_size::StoppedOracle {
        expected,
        sga_max_size: known.iter().flatten().find_map(|parameters| parameters.sga_max_size()),
        automatic_memory: known.iter().flatten().next().is_some_and(|parameters| parameters.is_automatic_memory()),
    };
    match when_down(&down, page_size) {
        oracle_size::OracleNeed::Pages(pages) if down.expected.is_some() => {
            Wants::Pages(pages, "its last start and parameters")
        }
        oracle_size::OracleNeed::Pages(pages) => Wants::Pages(pages, "its parameters"),
        oracle_size::OracleNeed::AutomaticMemory => Wants::None("MEMORY_TARGET: its SGA is files in /dev/shm"),
        oracle_size::OracleNeed::Unknown => Wants::Unknown(format!(
            "neither a parameter file with SGA_MAX_SIZE or SGA_TARGET nor an alert log with the size was found for {home}"
        )),
    }
}
