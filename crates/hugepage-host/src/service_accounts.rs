//! Who counts: whether a server is one that the host is there for. Any user may start a program that calls itself
//! `postgres` on a directory of its own, and nothing of it may move the host's pools.
//!
//! A server counts if all users whose powers it has are service accounts, and its program is root's or the account's
//! own. Two more ways lead to the same: an Oracle program of a home in /etc/oratab, which is root.sh's to write, with the
//! rights of the program's owner; and a container that root's container runtime made, where uids mean nothing to the
//! host. That is told by the control group, which only root can put a process into, and never by a user namespace,
//! which every user can make.

use std::cell::OnceCell;

use hugepage_kernel::host::accounts::{self, Account};
use hugepage_kernel::notes::Notes;
use hugepage_kernel::proc::credentials::{self, Credentials};
use hugepage_kernel::proc::process;
use hugepage_kernel::source::root::if_there;
use hugepage_kernel::{ReadError, Root};
use hugepage_oracle::readers::oratab;
use hugepage_oracle::readers::process::home_of;

/// Names and uids of more service accounts, one a line; `#` begins a comment.
pub const FILE: &str = "/etc/hugepage-sidecar/service-accounts";
/// Accounts of packages and manuals whose uid may be one of people's: Oracle's preinstallation makes `oracle` 54321.
const USUAL: [&str; 4] = ["enterprisedb", "grid", "oracle", "postgres"];

/// Whether an account of this name is, or with others may be, a service account on every host.
pub fn is_usual(name: &str) -> bool {
    USUAL.contains(&name) || (name.len() == 6 && (name.starts_with("ora") || name.ends_with("adm")))
}

/// The host's service accounts.
pub(super) struct ServiceAccounts {
    first_uid_of_people: u32,
    /// Names and uids.
    listed: Vec<String>,
    /// Read when a uid of people's has to have a name, which on most hosts no server has.
    accounts: OnceCell<Vec<Account>>,
}

impl ServiceAccounts {
    /// Those of the host, and `more`, which are names and uids. What can't be read is a note.
    pub(super) fn read(root: &Root, more: &[String], notes: &mut Notes) -> Self {
        let file = notes.keep(listed(root)).unwrap_or_default();
        let usual = USUAL.iter().map(|&name| name.to_owned());
        Self {
            first_uid_of_people: notes.keep(accounts::first_uid_of_people(root)).unwrap_or(1),
            listed: usual.chain(file).chain(more.iter().cloned()).collect(),
            accounts: OnceCell::new(),
        }
    }

    /// Why the server with the process `pid` does not count; `None` if it does.
    pub(super) fn why_not(&self, root: &Root, pid: i32) -> Option<String> {
        let Some(of_process) = Credentials::read(root, pid).ok().flatten() else {
            // Captures of old versions do not tell, and nothing is set by them.
            return (!root.is_tree()).then(|| "its user could not be determined".to_owned());
        };
        let container = container(root, pid);
        if container == Some(Container::Application) {
            return None;
        }
        let inside = |uid| match container {
            Some(Container::System) => credentials::unmapped(root, pid, uid).is_some_and(|uid| self.is_of_system(uid)),
            _ => false,
        };
        let program = process::owner_of_program(root, pid);
        let stranger = of_process.users().into_iter().find(|uid| !self.is_service(root, *uid) && !inside(*uid));
        match (stranger, program) {
            (Some(_), program) if is_registered(root, pid) && program.is_none_or(|uid| uid == of_process.effective) => {
                None
            }
            (Some(uid), _) => Some(format!("runs as {}", self.name(root, uid))),
            (None, Some(owner)) if container.is_none() && owner != 0 && owner != of_process.effective => {
                Some(format!("runs a program of {}", self.name(root, owner)))
            }
            // Without privilege the program of another user's process is not seen.
            (None, _) => None,
        }
    }

    const fn is_of_system(&self, uid: u32) -> bool {
        uid < self.first_uid_of_people
    }

    fn is_service(&self, root: &Root, uid: u32) -> bool {
        let is_listed = |name: &str| self.listed.iter().any(|listed| listed == name);
        self.is_of_system(uid)
            || is_listed(&uid.to_string())
            || self.names(root, uid).any(|name| is_listed(name) || self.is_of_sap(root, name))
    }

    /// `ora<sid>`, where SAP's own user of that system, `<sid>adm`, is there too.
    fn is_of_sap(&self, root: &Root, name: &str) -> bool {
        let administrator = |sid: &str| self.accounts(root).iter().any(|account| account.name == format!("{sid}adm"));
        name.strip_prefix("ora").is_some_and(|sid| sid.len() == 3 && administrator(sid))
    }

    pub(super) fn name(&self, root: &Root, uid: u32) -> String {
        self.names(root, uid).next().map_or_else(|| format!("uid {uid}"), str::to_owned)
    }

    fn names<'a>(&'a self, root: &Root, uid: u32) -> impl Iterator<Item = &'a str> + use<'a> {
        self.accounts(root).iter().filter(move |account| account.uid == uid).map(|account| account.name.as_str())
    }

    fn accounts(&self, root: &Root) -> &[Account] {
        self.accounts.get_or_init(|| accounts::accounts(root).unwrap_or_default())
    }
}

fn listed(root: &Root) -> Result<Vec<String>, ReadError> {
    let text = if_there(root.read(FILE))?.unwrap_or_default();
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
    Ok(lines.filter(|line| !line.is_empty()).map(str::to_owned).collect())
}

/// Whether it runs the program of an ORACLE_HOME that oratab has.
fn is_registered(root: &Root, pid: i32) -> bool {
    let program = process::link(root, pid, "exe").ok().flatten();
    let home = program.as_deref().and_then(home_of);
    home.is_some_and(|home| oratab::read(root, &mut Notes::default()).iter().any(|entry| entry.home == home))
}

/// What a runtime of root's makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Container {
    /// For one application: no people log in there, and its users are whatever its image says.
    Application,
    /// For a whole system, with accounts of its own.
    System,
}

/// The container of `pid`; `None` for the host, and for what users run by themselves.
fn container(root: &Root, pid: i32) -> Option<Container> {
    let paths = |text: &str| text.lines().filter_map(|line| line.splitn(3, ':').nth(2)).find_map(container_of);
    root.read_once(&format!("/proc/{pid}/cgroup"), paths).ok()?
}

/// From a path in /proc/PID/cgroup (cgroups(7)). Users may be let make groups of any name below their own, so the name
/// counts only at the top, or in a slice of the system's. `..` leads out of the control group namespace that this is in.
fn container_of(path: &str) -> Option<Container> {
    let mut parts = path.split('/').filter(|part| !part.is_empty()).skip_while(|part| *part == "..");
    let first = parts.next()?;
    let name = match first {
        "system.slice" | "machine.slice" => parts.next()?,
        first => first,
    };
    const APPLICATION: [&str; 5] = ["cri-containerd-", "crio-", "docker-", "libpod-", "nerdctl-"];
    const SYSTEM: [&str; 3] = ["lxc.payload.", "machine-", "systemd-nspawn@"];
    let begins_with = |known: &[&str]| known.iter().any(|prefix| name.starts_with(prefix));
    match name {
        "docker" | "kubepods" | "kubepods.slice" | "libpod_parent" => Some(Container::Application),
        "lxc" => Some(Container::System),
        _ if begins_with(&APPLICATION) => Some(Container::Application),
        _ if begins_with(&SYSTEM) => Some(Container::System),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A host with one process, pid 7.
    fn host(status: &str, cgroup: &str, uid_map: &str) -> (tempfile::TempDir, Root) {
        let tree = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = tree.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("proc/7/status", status);
        write("proc/7/cgroup", cgroup);
        write("proc/7/uid_map", uid_map);
        write(
            "etc/passwd",
            "root:x:0:0:::\npostgres:x:26:26:::\nalice:x:1000:1000:::\noracle:x:54321:54321:::\n\
             orac11:x:1200:1200:::\nc11adm:x:1201:1201:::\noranna:x:1202:1202:::\nnobody:x:65534:65534:::\n",
        );
        write("etc/login.defs", "UID_MIN 1000\n");
        write("etc/hugepage-sidecar/service-accounts", "# ours\n20001 # of the directory service\n\n  dbuser\n");
        write("etc/oratab", "REG:/u01/home:N\n");
        let root = Root::at(tree.path());
        (tree, root)
    }

    fn why_not(root: &Root, more: &[&str]) -> Option<String> {
        let more: Vec<_> = more.iter().map(|&name| name.to_owned()).collect();
        let mut notes = Notes::default();
        let accounts = ServiceAccounts::read(root, &more, &mut notes);
        assert!(notes.into_vec().is_empty());
        accounts.why_not(root, 7)
    }

    fn of_uids(real: u32, effective: u32) -> String {
        format!("Name:\tx\nUid:\t{real}\t{effective}\t{effective}\t{effective}\nGid:\t1\t1\t1\t1\n")
    }

    const ON_HOST: &str = "0::/system.slice/postgresql.service\n";
    const IDENTITY: &str = "0 0 4294967295\n";

    #[test]
    fn users_that_count() {
        for (real, effective, why) in [
            (26, 26, None),
            (0, 0, None),
            (999, 999, None),
            (54321, 54321, None),
            (1200, 1200, None),
            (20001, 20001, None),
            (1000, 1000, Some("runs as alice")),
            (1202, 1202, Some("runs as oranna")),
            (65534, 65534, Some("runs as nobody")),
            (20002, 20002, Some("runs as uid 20002")),
            // A setuid program that alice has started.
            (1000, 0, Some("runs as alice")),
            (1000, 54321, Some("runs as alice")),
            (0, 1000, Some("runs as alice")),
        ] {
            let (_tree, root) = host(&of_uids(real, effective), ON_HOST, IDENTITY);
            assert_eq!(why_not(&root, &[]).as_deref(), why, "{real} {effective}");
        }
        let (_tree, root) = host(&of_uids(1000, 1000), ON_HOST, IDENTITY);
        assert_eq!((why_not(&root, &["alice"]), why_not(&root, &["1000"])), (None, None));
        let (_tree, root) = host("Name:\tx\n", ON_HOST, IDENTITY);
        assert_eq!(why_not(&root, &[]), None, "an old capture does not tell");
    }

    /// PMON of an installation in the directory service, and of a session that another user of dba has started it from.
    #[test]
    fn a_home_of_oratab_counts() {
        for (exe, uids, counts) in [
            ("/u01/home/bin/oracle", (20002, 20002), true),
            ("/u01/home/bin/oracle (deleted)", (1000, 20002), true),
            ("/home/alice/bin/oracle", (1000, 1000), false),
            ("/u01/home/bin/sqlplus", (1000, 1000), false),
        ] {
            let (tree, root) = host(&of_uids(uids.0, uids.1), ON_HOST, IDENTITY);
            std::os::unix::fs::symlink(exe, tree.path().join("proc/7/exe")).unwrap();
            assert_eq!(why_not(&root, &[]).is_none(), counts, "{exe}");
        }
    }

    #[test]
    fn containers_that_count() {
        for (cgroup, uid, uid_map, counts) in [
            ("0::/system.slice/docker-0123abcd.scope\n", 54322, IDENTITY, true),
            ("0::/system.slice/docker-0123abcd.scope\n", 1000, IDENTITY, true),
            ("0::/kubepods.slice/kubepods-pod1.slice/cri-containerd-77.scope\n", 100_026, "0 100000 65536\n", true),
            ("12:hugetlb:/docker/0123abcd\n1:name=systemd:/docker/0123abcd\n", 1001, IDENTITY, true),
            ("0::/machine.slice/libpod-0123.scope/container\n", 1001, IDENTITY, true),
            ("0::/../../kubepods/pod1/77\n", 1001, IDENTITY, true),
            // A whole system: its own users of people do not count.
            ("0::/lxc.payload.db/system.slice/postgresql.service\n", 100_026, "0 100000 65536\n", true),
            ("0::/lxc.payload.db/user.slice\n", 101_000, "0 100000 65536\n", false),
            ("0::/machine.slice/machine-db.scope/payload\n", 1000, IDENTITY, false),
            // What a user runs by itself, under whatever name.
            (
                "0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-0123.scope\n",
                100_998,
                "0 1000 1\n1 100000 65536\n",
                false,
            ),
            ("0::/user.slice/user-1000.slice/user@1000.service/docker/x\n", 1000, IDENTITY, false),
            ("0::/system.slice/alice.service/docker-0123.scope\n", 1000, IDENTITY, false),
            ("0::/\n", 100_026, "0 1000 1\n1 100000 65536\n", false),
            ("0::/system.slice/docker.service\n", 1000, IDENTITY, false),
        ] {
            let (_tree, root) = host(&of_uids(uid, uid), cgroup, uid_map);
            assert_eq!(why_not(&root, &[]).is_none(), counts, "{cgroup} {uid}");
        }
    }
}
