//! Which processes of one user are database servers, and which processes belong to them. Their titles tell.

use std::collections::BTreeMap;

use hugepage_kernel::Root;
use hugepage_kernel::proc::process::{self, ProcessStatus};
use hugepage_kernel::proc::program;
use hugepage_oracle::readers::{OracleInstance, OracleProcess};

use super::processes::{Credentials, ProcessGlance, Seen, arguments};
use super::service_accounts::ServiceAccounts;

/// The kind of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DiscoveredKind {
    /// A postmaster, with the arguments of its command line.
    PostgreSql(Vec<String>),
    /// An instance of Oracle.
    Oracle(OracleInstance),
}

/// A server with its processes.
#[derive(Clone, Debug)]
pub struct DiscoveredServer {
    /// What it is.
    pub who: DiscoveredKind,
    /// The postmaster, or PMON.
    pub pid: i32,
    /// Its users; `None` in a tree that does not tell them.
    pub users: Option<Credentials>,
    /// The status of each of its processes, the process `pid` first.
    pub processes: Vec<ProcessStatus>,
    /// Processes that are its or those of another instance with its SID, and that are not among `processes`.
    pub undecided: usize,
}

/// What the processes of a user are.
#[derive(Debug, Default)]
pub(super) struct FoundServers {
    /// Every server that counts, in the order of their process ids.
    pub(super) servers: Vec<DiscoveredServer>,
    /// The processes that are of no server, and why one that calls itself one does not count.
    pub(super) others: BTreeMap<i32, Option<String>>,
}

impl FoundServers {
    /// What `processes` are.
    pub(super) fn among(accounts: &ServiceAccounts<'_>, processes: &[ProcessGlance]) -> Self {
        let mut pass = Pass {
            accounts,
            found: Self::default(),
            sessions: Vec::new(),
            children: BTreeMap::new(),
            parents: BTreeMap::new(),
            unnamed: Vec::new(),
        };
        for process in processes {
            pass.add(process);
        }
        pass.finish()
    }
}

/// A pass over the processes of a user.
struct Pass<'a> {
    accounts: &'a ServiceAccounts<'a>,
    /// What was found so far.
    found: FoundServers,
    /// The other processes of Oracle's instances.
    sessions: Vec<(&'a ProcessGlance, OracleInstance)>,
    /// The processes that may be PostgreSQL's, by their parent.
    children: BTreeMap<i32, Vec<ProcessStatus>>,
    /// The parents of backends, each with the name of a backend's program: the parent's, until one runs another program.
    parents: BTreeMap<i32, String>,
    /// Processes that may be postmasters under any name.
    unnamed: Vec<&'a ProcessGlance>,
}

impl<'a> Pass<'a> {
    fn add(&mut self, process: &'a ProcessGlance) {
        let seen = process::read(self.accounts.root, process.pid, "cmdline", Seen::parse);
        match seen.ok().flatten().flatten() {
            None if process.may_be_in_server() => self.unnamed.push(process),
            seen => self.add_as(process, seen),
        }
    }

    /// Adds a process as what it was seen to be.
    fn add_as(&mut self, process: &'a ProcessGlance, seen: Option<Seen>) {
        let added = seen.map_or(Err(None), |seen| self.add_seen(process, seen));
        self.found
            .others
            .extend(added.err().map(|why| (process.pid, why)));
    }

    /// Adds a process of a server that counts; the error is why it does not count, if it calls itself a server.
    fn add_seen(&mut self, process: &'a ProcessGlance, seen: Seen) -> Result<(), Option<String>> {
        let ProcessGlance {
            pid,
            name,
            users,
            status,
        } = process;
        let parent = status.parent.unwrap_or(0);
        let who = match seen {
            Seen::Oracle(OracleProcess {
                instance,
                is_pmon: true,
            }) => DiscoveredKind::Oracle(instance),
            Seen::Postmaster(arguments) => DiscoveredKind::PostgreSql(arguments),
            Seen::Oracle(OracleProcess { instance, .. }) => {
                self.sessions.push((process, instance));
                return Ok(());
            }
            Seen::Backend => {
                self.parents.entry(parent).or_insert_with(|| name.clone());
                self.children.entry(parent).or_default().push(*status);
                return Ok(());
            }
        };
        if let Some(why) = self.accounts.why_not(*pid, users.as_ref()) {
            return Err(Some(why));
        }
        if let Ok(Some(status)) = process::status(self.accounts.root, *pid) {
            if let DiscoveredKind::PostgreSql(_) = who {
                self.children
                    .entry(status.parent.unwrap_or(0))
                    .or_default()
                    .push(status);
            }
            self.found.servers.push(DiscoveredServer {
                who,
                pid: *pid,
                users: users.clone(),
                processes: vec![status],
                undecided: 0,
            });
        }
        Ok(())
    }

    /// Gives each server its processes.
    fn finish(mut self) -> FoundServers {
        for process in std::mem::take(&mut self.unnamed) {
            let is_head = self.parents.get(&process.pid) == Some(&process.name);
            let found = is_head
                .then(|| process::read(self.accounts.root, process.pid, "cmdline", arguments))
                .and_then(Result::ok)
                .flatten();
            self.add_as(process, found.map(Seen::Postmaster));
        }
        self.found.servers.sort_by_key(|found| found.pid);
        let Self {
            accounts,
            found: mut host,
            sessions,
            mut children,
            ..
        } = self;
        let found = &mut host.servers;
        keep_postmasters(found);
        for found in &mut *found {
            if let DiscoveredKind::PostgreSql(_) = found.who {
                found
                    .processes
                    .extend(children.remove(&found.pid).unwrap_or_default());
            }
        }
        for (process, instance) in sessions {
            let who = DiscoveredKind::Oracle(instance);
            let mut owners: Vec<_> = found
                .iter_mut()
                .filter(|server| server.who == who)
                .collect();
            // In containers, or in several Oracle homes.
            let is_alike = |at: &usize| {
                owners.len() > 1 && may_be_beside(accounts.root, process.pid, owners[*at].pid)
            };
            let alike: Vec<_> = (0..owners.len()).filter(is_alike).collect();
            if let [only] = alike[..] {
                owners = vec![owners.swap_remove(only)];
            }
            let is_decided = owners.len() == 1;
            for server in owners
                .into_iter()
                .filter(|server| server.has_member(accounts, process))
            {
                if is_decided {
                    server.processes.push(process.status)
                } else {
                    server.undecided += 1
                }
            }
        }
        host
    }
}

/// Whether nothing that is visible tells two processes apart: their namespaces of processes, System V segments and mounts
/// (namespaces(7)), and their program.
fn may_be_beside(root: &Root, one: i32, other: i32) -> bool {
    let is_same = |name: &str| {
        // A program that was replaced by a patch is in the same home.
        let link = |pid| {
            Some(
                process::link(root, pid, name)
                    .ok()??
                    .trim_end_matches(" (deleted)")
                    .to_owned(),
            )
        };
        link(one)
            .zip(link(other))
            .is_none_or(|(one, other)| one == other)
    };
    ["ns/pid", "ns/ipc", "ns/mnt", "exe"]
        .into_iter()
        .all(is_same)
}

/// A child that has not set its own title yet has that of its postmaster.
fn keep_postmasters(found: &mut Vec<DiscoveredServer>) {
    let all: BTreeMap<_, _> = found
        .iter()
        .map(|found| (found.pid, found.who.clone()))
        .collect();
    found.retain(|found| {
        let parent = found.processes[0]
            .parent
            .and_then(|parent| all.get(&parent));
        matches!(found.who, DiscoveredKind::Oracle(_)) || parent != Some(&found.who)
    });
}

impl DiscoveredServer {
    /// Whether a process that calls itself one of this instance runs its program as its user, for a service account. Anybody can give a
    /// process such a title, also the setuid program itself.
    fn has_member(&self, accounts: &ServiceAccounts<'_>, process: &ProcessGlance) -> bool {
        let Some((users, own)) = process.users.as_ref().zip(self.users.as_ref()) else {
            return true;
        };
        let is_of_service = users.real == own.real || accounts.is_service(users.real);
        let programs =
            program::file(accounts.root, process.pid).zip(program::file(accounts.root, self.pid));
        users.effective == own.effective
            && is_of_service
            && programs.is_none_or(|(program, own)| program.inode == own.inode)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use hugepage_kernel::Bytes;
    use hugepage_kernel::notes::Notes;

    use super::*;
    use crate::glances::Glances;
    use hugepage_facts::Strangers;

    /// Writes processes as (pid, parent, command line, VmPTE in kB).
    fn host(processes: &[(i32, i32, &str, u64)]) -> tempfile::TempDir {
        let tree = tempfile::tempdir().unwrap();
        for (pid, parent, cmdline, tables) in processes {
            let directory = tree.path().join(format!("proc/{pid}"));
            fs::create_dir_all(&directory).unwrap();
            fs::write(directory.join("cmdline"), cmdline).unwrap();
            fs::write(
                directory.join("status"),
                format!("PPid:\t{parent}\nVmPTE:\t{tables} kB\n"),
            )
            .unwrap();
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
            (
                13,
                10,
                "/usr/lib/postgresql/15/bin/postgres\0-D\0/data\0",
                8,
            ),
            (14, 12, "/usr/bin/archive\0", 100),
            (20, 1, "postgres\0", 16),
            (
                21,
                1,
                "/usr/lib/postgresql/15/bin/postgres\0--single\0db\0",
                100,
            ),
            (
                22,
                1,
                "/usr/lib/postgresql/15/bin/postgres\0-D\0/x\0-C\0port\0",
                100,
            ),
            (23, 1, "vi\0postgres\0", 100),
            (30, 1, "ora_pmon_A_1\0", 1),
            (31, 1, "oracleA_1\0(LOCAL=NO)\0", 2),
            (32, 1, "ora_dbw0_A_1", 4),
            (33, 1, "ora_dbw0_A", 100),
            (40, 1, "asm_pmon_+ASM1\0", 8),
        ]);
        let mut notes = Notes::default();
        let (found, strangers) = discovered(&tree, &mut notes);
        let tables = |found: &DiscoveredServer| -> u64 {
            found
                .processes
                .iter()
                .map(|status| status.page_tables.unwrap().0 >> 10)
                .sum()
        };
        let shown: Vec<_> = found
            .iter()
            .map(|found| (found.pid, found.processes.len(), tables(found)))
            .collect();
        assert_eq!(shown, [(10, 4, 15), (20, 1, 16), (30, 3, 7), (40, 1, 8)]);
        assert_eq!(
            found[0].who,
            DiscoveredKind::PostgreSql(vec!["-D".to_owned(), "/data".to_owned()])
        );
        assert!(notes.into_vec().is_empty() && strangers.first.is_empty());
    }

    /// Nix, and images that call the program as they like; the parent of a backend has another name where it is its init.
    #[test]
    fn servers_under_any_name() {
        let tree = host(&[]);
        let write = |path: &str, text: &str| {
            let path = tree.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("etc/passwd", "root:x:0:0:::\npostgres:x:26:26:::\n");
        for (pid, parent, name, uid, cgroup, cmdline) in [
            (9, 1, "dumb-init", 101, "docker-77aa.scope", "dumb-init\0"),
            (
                10,
                9,
                ".postgres-wrapp",
                101,
                "docker-77aa.scope",
                "/nix/store/x/bin/.postgres-wrapped\0-D\0/a\0",
            ),
            (
                11,
                10,
                ".postgres-wrapp",
                101,
                "docker-77aa.scope",
                "postgres: checkpointer \0",
            ),
            (
                12,
                9,
                ".postgres-wrapp",
                101,
                "docker-77aa.scope",
                "postgres: orphan \0",
            ),
            (
                20,
                1,
                "database",
                102,
                "docker-88bb.scope",
                "/opt/app/database\0-D\0/b\0",
            ),
            (
                21,
                20,
                "database",
                102,
                "docker-88bb.scope",
                "postgres: main: checkpointer \0",
            ),
            (22, 1, "cache", 102, "docker-88bb.scope", "/opt/app/cache\0"),
            (
                30,
                1,
                "database",
                26,
                "own.service",
                "/opt/app/database\0-D\0/c\0",
            ),
            (
                31,
                30,
                "database",
                26,
                "own.service",
                "postgres: checkpointer \0",
            ),
            (
                40,
                1,
                ".postgres-wrapp",
                1000,
                "x.service",
                "postgres\0-D\0/d\0",
            ),
            (50, 1, "database", 1000, "x.service", "database\0"),
            (
                51,
                50,
                "database",
                1000,
                "x.service",
                "postgres: checkpointer \0",
            ),
        ] {
            let status = format!(
                "Name:\t{name}\nPPid:\t{parent}\nUid:\t{uid} {uid} {uid} {uid}\nGid:\t1 1 1 1\nRssShmem:\t8 kB\nHugetlbPages:\t8 kB\n"
            );
            write(&format!("proc/{pid}/status"), &status);
            write(
                &format!("proc/{pid}/cgroup"),
                &format!("0::/system.slice/{cgroup}\n"),
            );
            write(&format!("proc/{pid}/cmdline"), cmdline);
        }
        let mut notes = Notes::default();
        let root = Root::at(tree.path());
        let (found, glances) = looked(&root, &mut notes);
        let arguments = |server: &DiscoveredServer| match &server.who {
            DiscoveredKind::PostgreSql(arguments) => arguments.join(" "),
            DiscoveredKind::Oracle(_) => String::new(),
        };
        let shown: Vec<_> = found
            .servers
            .iter()
            .map(|one| (one.pid, one.processes.len(), arguments(one)))
            .collect();
        let expected = [(10, 2, "-D /a"), (20, 2, "-D /b"), (30, 2, "-D /c")];
        assert_eq!(
            shown,
            expected.map(|(pid, count, words)| (pid, count, words.to_owned()))
        );
        assert_eq!(
            glances
                .strangers
                .first
                .iter()
                .map(|one| one.pid)
                .collect::<Vec<_>>(),
            [40]
        );
        // What is of no server holds its pages.
        let holders: BTreeMap<_, _> = glances
            .holders
            .iter()
            .map(|(one, counts)| (one.pid, *counts))
            .collect();
        assert_eq!(holders.into_keys().collect::<Vec<_>>(), [9, 22, 40, 50, 51]);
    }

    /// The kernel tells the memory of a thief whose first thread has ended by its other threads alone.
    #[test]
    fn a_first_thread_that_has_ended_hides_nothing() {
        let tree = host(&[]);
        for (path, text) in [
            (
                "7/status",
                "Name:\tthief\nState:\tZ (zombie)\nPPid:\t1\nUid:\t9 9 9 9\nGid:\t9 9 9 9\nThreads:\t2\n",
            ),
            ("7/task/7/x", ""),
            ("7/task/8/x", ""),
            (
                "8/status",
                "Name:\tthief\nPPid:\t1\nUid:\t9 9 9 9\nGid:\t9 9 9 9\nRssAnon:\t4 kB\nHugetlbPages:\t2048 kB\nThreads:\t2\n",
            ),
        ] {
            let path = tree.path().join("proc").join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let root = Root::at(tree.path());
        let seen = ProcessGlance::read(&root, 7).unwrap();
        assert_eq!(
            (&*seen.name, seen.status.hugetlb_pages),
            ("thief", Some(Bytes(2 << 20)))
        );
    }

    fn looked(root: &Root, notes: &mut Notes) -> (FoundServers, Glances) {
        let accounts = ServiceAccounts::read(root, &[]);
        let mut glances = Glances::look(&accounts, notes);
        let candidates = std::mem::take(&mut glances.candidates);
        let found = FoundServers::among(&accounts, &candidates);
        glances.add_found(&accounts, candidates, &found.others);
        (found, glances)
    }

    fn discovered(
        tree: &tempfile::TempDir,
        notes: &mut Notes,
    ) -> (Vec<DiscoveredServer>, Strangers) {
        let (found, glances) = looked(&Root::at(tree.path()), notes);
        (found.servers, glances.strangers)
    }

    #[test]
    fn servers_that_do_not_count_are_bounded() {
        let status = |name: &str, parent: i32, uid: u32| {
            format!(
                "Name:\t{name}\nPPid:\t{parent}\nUid:\t{uid}\t{uid}\t{uid}\t{uid}\nGid:\t1\t1\t1\t1\nRssShmem:\t4 kB\n"
            )
        };
        let tree = host(&[
            (400, 1, "postgres\0-D\0/real\0", 1),
            (401, 1, "ora_pmon_REAL\0", 1),
            (402, 1, "oracleREAL\0(LOCAL=NO)\0", 1),
        ]);
        let write = |path: &str, text: &str| {
            let path = tree.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write(
            "etc/passwd",
            "root:x:0:0:::\npostgres:x:26:26:::\noracle:x:54321:1:::\nalice:x:1000:1000:::\n",
        );
        // Their command lines are not read: there are none.
        for pid in 10..310 {
            write(
                &format!("proc/{pid}/status"),
                &status(
                    if pid % 2 == 0 {
                        "postgres"
                    } else {
                        "ora_pmon_A"
                    },
                    1,
                    1000,
                ),
            );
        }
        write("proc/311/status", &status("postgres", 10, 1000));
        write("proc/312/status", &status("bash", 10, 1000));
        for (pid, name, uids) in [
            (400, "postgres", "26 26 26 26"),
            (401, "oracle", "54321 54321 54321 54321"),
            (402, "oracle", "1000 54321 54321 54321"),
        ] {
            write(
                &format!("proc/{pid}/status"),
                &format!("Name:\t{name}\nPPid:\t1\nUid:\t{uids}\nGid:\t1 1 1 1\n"),
            );
        }
        write(
            "proc/403/status",
            "Name:\toracle\nUid:\t1000 54321 54321 54321\nGid:\t1 1 1 1\n",
        );
        write("proc/403/cmdline", "ora_pmon_GHOST\0");
        let mut notes = Notes::default();
        let (found, strangers) = discovered(&tree, &mut notes);
        assert!(notes.into_vec().is_empty());
        let shown: Vec<_> = found
            .iter()
            .map(|found| (found.pid, found.processes.len()))
            .collect();
        assert_eq!(
            shown,
            [(400, 1), (401, 1)],
            "a session that alice has started is none of REAL's"
        );
        assert_eq!(
            (strangers.first.len(), strangers.more),
            (2, 0),
            "one of alice's, and what she has started of oracle's"
        );
        let first = &strangers.first[0];
        assert_eq!(
            (first.pid, first.uid, &*first.name, first.resident.0),
            (10, Some(1000), "postgres", 4096)
        );
        assert_eq!(
            first.to_string(),
            "process 10 (postgres, 4 kB) runs as alice"
        );
    }
}
