//! Which processes of a host are database servers, and which processes belong to them. The titles of all processes
//! tell, and every user may read them.

use std::collections::BTreeMap;

use hugepage_kernel::Root;
use hugepage_kernel::notes::Notes;
use hugepage_kernel::postgresql::postmaster_opts;
use hugepage_kernel::proc::process::{self, ProcessStatus, Processes};
use hugepage_oracle::equal_sids::{Pmons, Whose};
use hugepage_oracle::readers::{self, OracleRole};

/// Servers that do not count are looked at up to this number: any user can start as many as it may have processes.
pub const MAX_NOT_COUNTED: usize = 100;
/// What is kept of the arguments of a postmaster, in bytes.
const MAX_ARGUMENT_BYTES: usize = 64 << 10;

/// The kind of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DiscoveredKind {
    /// A postmaster, with the arguments of its command line.
    PostgreSql(Vec<String>),
    /// An instance of Oracle.
    Oracle(readers::OracleInstance),
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
    /// Why it does not count; `None` if it does.
    pub not_counted: Option<String>,
    /// Processes that are its or those of another instance with its SID, and that are not among `processes`.
    pub undecided: usize,
}

/// Every server whose processes are visible, in the order of their process ids; of those that `why_not` has a reason
/// against the first [`MAX_NOT_COUNTED`].
pub fn servers(root: &Root, why_not: impl Fn(i32) -> Option<String>, notes: &mut Notes) -> Vec<DiscoveredServer> {
    let pids = notes.keep(process::pids(root)).unwrap_or_default();
    let mut found: Vec<DiscoveredServer> = Vec::new();
    let mut members: BTreeMap<readers::OracleInstance, Vec<(i32, ProcessStatus)>> = BTreeMap::new();
    let mut children: BTreeMap<i32, Vec<ProcessStatus>> = BTreeMap::new();
    let (mut not_counted, mut passed_over) = (0_usize, 0_usize);
    let mut is_passed_over = |why: Option<&String>| {
        not_counted += usize::from(why.is_some());
        let passes = why.is_some() && not_counted > MAX_NOT_COUNTED;
        passed_over += usize::from(passes);
        passes
    };
    let all = Processes::open(root);
    for pid in pids {
        // A process that ends meanwhile, or is hidden, belongs to no server.
        let read = all.command_line(pid, Seen::parse);
        if let Err(error) = &read
            && error.is_unanswered()
        {
            notes.add(format!("whether process {pid} is a server is unknown: {error}"));
        }
        let Ok(Some(Some(seen))) = read else { continue };
        let status = if seen.is_server() { process::status_of_server(root, pid) } else { all.status(pid) };
        let Ok(Some(status)) = status else { continue };
        match seen {
            Seen::Oracle(readers::OracleProcess { instance, role: OracleRole::Pmon }) => {
                let not_counted = why_not(pid);
                if !is_passed_over(not_counted.as_ref()) {
                    let who = DiscoveredKind::Oracle(instance);
                    found.push(DiscoveredServer { who, pid, processes: vec![status], not_counted, undecided: 0 });
                }
            }
            Seen::Oracle(process) => members.entry(process.instance).or_default().push((pid, status)),
            Seen::Postmaster(arguments) => {
                let not_counted = why_not(pid);
                if is_passed_over(not_counted.as_ref()) {
                    continue;
                }
                children.entry(status.parent.unwrap_or(0)).or_default().push(status);
                let who = DiscoveredKind::PostgreSql(arguments);
                found.push(DiscoveredServer { who, pid, processes: vec![status], not_counted, undecided: 0 });
            }
            Seen::Backend => children.entry(status.parent.unwrap_or(0)).or_default().push(status),
        }
    }
    if passed_over > 0 {
        notes.add(format!(
            "{passed_over} more processes of ordinary users have names of servers; only the first {MAX_NOT_COUNTED} are shown"
        ));
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
        if let DiscoveredKind::PostgreSql(_) = found.who {
            found.processes.extend(children.remove(&found.pid).unwrap_or_default());
        }
    }
    let pmons = found.iter().enumerate().filter_map(|(server, found)| match &found.who {
        DiscoveredKind::Oracle(instance) => Some((server, found.pid, instance.clone())),
        DiscoveredKind::PostgreSql(_) => None,
    });
    let pmons = Pmons::new(root, pmons);
    for (instance, processes) in members {
        for (pid, status) in processes {
            match pmons.owner(&instance, pid) {
                Whose::Server(server) => found[server].processes.push(status),
                Whose::Undecided(servers) => servers.into_iter().for_each(|server| found[server].undecided += 1),
                Whose::Nobody => {}
            }
        }
    }
    found
}

/// What a command line shows.
enum Seen {
    Oracle(readers::OracleProcess),
    Postmaster(Vec<String>),
    Backend,
}

impl Seen {
    /// Whether it is what a server is told by: its PMON or postmaster.
    const fn is_server(&self) -> bool {
        matches!(self, Self::Postmaster(_) | Self::Oracle(readers::OracleProcess { role: OracleRole::Pmon, .. }))
    }

    fn parse(cmdline: &str) -> Option<Self> {
        if let Some(process) = readers::OracleProcess::parse(cmdline) {
            return Some(Self::Oracle(process));
        }
        if cmdline.starts_with("postgres: ") {
            return Some(Self::Backend);
        }
        let mut words = cmdline.trim_end_matches('\0').split('\0');
        let program = words.next()?.rsplit('/').next()?;
        if !matches!(program, "postgres" | "postmaster" | "edb-postgres" | "edb-postmaster") {
            return None;
        }
        let mut left = MAX_ARGUMENT_BYTES;
        let is_kept = |word: &&str| {
            let fits = word.len() < left;
            left = left.saturating_sub(word.len() + 1);
            fits
        };
        let arguments: Vec<String> = words.take_while(is_kept).map(str::to_owned).collect();
        postmaster_opts::serves(&arguments).then_some(Self::Postmaster(arguments))
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
        let found = servers(&Root::at(tree.path()), |_| None, &mut notes);
        let tables = |found: &DiscoveredServer| -> u64 {
            found.processes.iter().map(|status| status.page_tables.unwrap().0 >> 10).sum()
        };
        let shown: Vec<_> = found.iter().map(|found| (found.pid, found.processes.len(), tables(found))).collect();
        assert_eq!(shown, [(10, 4, 15), (20, 1, 16), (30, 3, 7), (40, 1, 8)]);
        assert_eq!(found[0].who, DiscoveredKind::PostgreSql(vec!["-D".to_owned(), "/data".to_owned()]));
        assert!(notes.into_vec().is_empty());
    }

    #[test]
    fn servers_that_do_not_count_are_bounded() {
        let long = format!("postgres\0-D\0{}\0-c\0a=b\0", "x".repeat(1 << 20));
        let processes: Vec<_> =
            (10..310).map(|pid| (pid, 1, if pid % 2 == 0 { "postgres\0" } else { "ora_pmon_A\0" }, 1)).collect();
        let tree = host(&[processes, vec![(400, 1, "postgres\0-D\0/real\0", 1), (401, 1, &*long, 1)]].concat());
        let mut notes = Notes::default();
        let why_not = |pid| (pid != 400).then(|| "runs as alice".to_owned());
        let found = servers(&Root::at(tree.path()), why_not, &mut notes);
        assert_eq!(found.len(), MAX_NOT_COUNTED + 1);
        let last = found.last().unwrap();
        assert_eq!((last.pid, &last.not_counted), (400, &None), "one that counts is never passed over");
        let note = "201 more processes of ordinary users have names of servers; only the first 100 are shown";
        assert_eq!(notes.into_vec(), [note]);
        let Some(Seen::Postmaster(arguments)) = Seen::parse(&long) else { panic!() };
        assert_eq!(arguments, ["-D"], "cut before the argument that is too long");
    }
}
