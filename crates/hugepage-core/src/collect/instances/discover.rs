//! Which processes of a host are database servers, and which processes belong to them. The titles of all processes
//! tell, and every user may read them.

use std::collections::BTreeMap;

use crate::notes::Notes;
use crate::read::oracle::{self, OracleRole};
use crate::read::process::{self, ProcessStatus};
use crate::read::{Root, postmaster_opts};

/// The kind of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DiscoveredKind {
    /// A postmaster, with the arguments of its command line.
    PostgreSql(Vec<String>),
    /// An instance of Oracle.
    Oracle(oracle::OracleInstance),
}

/// A server with its processes.
#[derive(Clone, Debug)]
pub struct DiscoveredServer {
    /// What it is.
    pub who: DiscoveredKind,
    /// The postmaster, or PMON.
    pub pid: i32,
    /// The status of each of its processes, the process `pid` first.
    pub processes: Vec<ProcessStatus>,
}

/// Every server whose processes are visible, in the order of their process ids.
pub fn servers(root: &Root, notes: &mut Notes) -> Vec<DiscoveredServer> {
    let pids = notes.keep(process::pids(root)).unwrap_or_default();
    let mut found: Vec<DiscoveredServer> = Vec::new();
    let mut members: Vec<(oracle::OracleInstance, ProcessStatus)> = Vec::new();
    let mut children: BTreeMap<i32, Vec<ProcessStatus>> = BTreeMap::new();
    for pid in pids {
        // A process that ends meanwhile, or is hidden, belongs to no server.
        let Ok(Some(seen)) = root.read_short(&format!("/proc/{pid}/cmdline"), Seen::parse) else { continue };
        let Ok(Some(status)) = process::status(root, pid) else { continue };
        match seen {
            Seen::Oracle(oracle::OracleProcess { instance, role: OracleRole::Pmon }) => {
                found.push(DiscoveredServer { who: DiscoveredKind::Oracle(instance), pid, processes: vec![status] });
            }
            Seen::Oracle(process) => members.push((process.instance, status)),
            Seen::Postmaster(arguments) => {
                children.entry(status.parent.unwrap_or(0)).or_default().push(status);
                found.push(DiscoveredServer {
                    who: DiscoveredKind::PostgreSql(arguments),
                    pid,
                    processes: vec![status],
                });
            }
            Seen::Backend => children.entry(status.parent.unwrap_or(0)).or_default().push(status),
        }
    }
    // A child that has not set its own title yet has that of its postmaster.
    let postmasters: Vec<i32> = found
        .iter()
        .filter(|found| matches!(found.who, DiscoveredKind::PostgreSql(_)))
        .map(|found| found.pid)
        .collect();
    found.retain(|found| match found.who {
        DiscoveredKind::PostgreSql(_) => !found.processes[0].parent.is_some_and(|parent| postmasters.contains(&parent)),
        DiscoveredKind::Oracle(_) => true,
    });
    for found in &mut found {
        match &found.who {
            DiscoveredKind::PostgreSql(_) => found.processes.extend(children.remove(&found.pid).unwrap_or_default()),
            DiscoveredKind::Oracle(instance) => {
                found.processes.extend(members.iter().filter(|(whose, _)| whose == instance).map(|(_, status)| status));
            }
        }
    }
    found
}

/// What a command line shows.
enum Seen {
    Oracle(oracle::OracleProcess),
    Postmaster(Vec<String>),
    Backend,
}

impl Seen {
    fn parse(cmdline: &str) -> Option<Self> {
        if let Some(process) = oracle::OracleProcess::parse(cmdline) {
            return Some(Self::Oracle(process));
        }
        if cmdline.starts_with("postgres: ") {
            return Some(Self::Backend);
        }
        let mut words = cmdline.trim_end_matches('\0').split('\0');
        let program = words.next()?.rsplit('/').next()?;
        let arguments: Vec<String> = words.map(str::to_owned).collect();
        let serves = matches!(program, "postgres" | "postmaster" | "edb-postgres" | "edb-postmaster")
            && postmaster_opts::serves(&arguments);
        serves.then_some(Self::Postmaster(arguments))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Writes processes as (pid, parent, command line, VmPTE in kB).
    fn host(processes: &[(i32, i32, &str, u64)]) -> tempfile::TempDir {
        let tree = tempfile::tempdir().unwrap();
        for (pid, parent, cmdline, tables) in processes {
            let directory = tree.path().join(format!("proc/{pid}"));
            fs::create_dir_all(&directory).unwrap();
            fs::write(directory.join("cmdline"), cmdline).unwrap();
            fs::write(directory.join("status"), format!("PPid:\t{parent}\nVmPTE:\t{tables} kB\n")).unwrap();
        }
        tree
    }

    #[test]
    fn servers_and_whose_the_processes_are() {
        let tree = host(&[
            (1, 0, "/sbin/init\0", 1),
            (10, 1, "/usr/lib/postgresql/15/bin/postgres\0-D\0/data\0", 1),
            (11, 10, "postgres: checkpointer \0\0\0", 2),
            (12, 10, "postgres: app db [local] idle\0", 4),
            // Forked a moment ago, without a title of its own.
            (13, 10, "/usr/lib/postgresql/15/bin/postgres\0-D\0/data\0", 8),
            (14, 12, "/usr/bin/archive\0", 100),
            (20, 1, "postgres\0", 16),
            (21, 1, "/usr/lib/postgresql/15/bin/postgres\0--single\0db\0", 100),
            (22, 1, "/usr/lib/postgresql/15/bin/postgres\0-D\0/x\0-C\0port\0", 100),
            (23, 1, "vi\0postgres\0", 100),
            (30, 1, "ora_pmon_A_1\0", 1),
            (31, 1, "oracleA_1\0(LOCAL=NO)\0", 2),
            (32, 1, "ora_dbw0_A_1", 4),
            (33, 1, "ora_dbw0_A", 100),
            (40, 1, "asm_pmon_+ASM1\0", 8),
        ]);
        let mut notes = Notes::default();
        let found = servers(&Root::at(tree.path()), &mut notes);
        let tables = |found: &DiscoveredServer| -> u64 {
            found.processes.iter().map(|status| status.page_tables.unwrap().0 >> 10).sum()
        };
        let shown: Vec<_> = found.iter().map(|found| (found.pid, found.processes.len(), tables(found))).collect();
        assert_eq!(shown, [(10, 4, 15), (20, 1, 16), (30, 3, 7), (40, 1, 8)]);
        assert_eq!(found[0].who, DiscoveredKind::PostgreSql(vec!["-D".to_owned(), "/data".to_owned()]));
        assert!(notes.into_vec().is_empty());
    }
}
