//! Which servers are trusted and count: any user may start a program that calls itself `postgres` on a directory of its own.
//!
//! This is decided first, by what no stranger can make: all users of the process are service accounts; the file of the program is at
//! its path for root, too, and belongs to root or to the account; root made its user namespaces. Or it is in a container that a
//! container runtime of root made, where uids mean nothing to the host.

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet};

use hugepage_kernel::host::accounts::{self, Account};
use hugepage_kernel::notes::Notes;
use hugepage_kernel::proc::{namespace, process, program};
use hugepage_kernel::source::root::if_there;
use hugepage_kernel::{ReadError, Root};
use hugepage_oracle::readers::oratab;
use hugepage_oracle::readers::process::home_of;

use super::container::{Container, container};
use crate::processes::credentials::{self, Credentials};
use crate::processes::user_namespace;
use crate::readers::Owner;

/// Names and uids of more service accounts, one a line; `#` begins a comment.
pub const FILE: &str = "/etc/hugepage-sidecar/service-accounts";
/// Accounts of packages and manuals.
const USUAL: [&str; 4] = ["enterprisedb", "grid", "oracle", "postgres"];

/// Whether an account of this name is, or with others may be, a service account on every host.
pub fn is_usual(name: &str) -> bool {
    USUAL.contains(&name) || (name.len() == 6 && (name.starts_with("ora") || name.ends_with("adm")))
}

/// The host's service accounts.
pub(super) struct ServiceAccounts {
    /// Names and uids.
    listed: Vec<String>,
    accounts: OnceCell<Vec<Account>>,
    /// The uids that were asked for.
    known: RefCell<BTreeMap<u32, bool>>,
}

impl ServiceAccounts {
    /// Those of the host, and `more`, which are names and uids. What can't be read is a note.
    pub(super) fn read(root: &Root, more: &[String], notes: &mut Notes) -> Self {
        let file = notes.keep(listed(root)).unwrap_or_default();
        let usual = USUAL.iter().map(|&name| name.to_owned());
        Self {
            listed: usual.chain(file).chain(more.iter().cloned()).collect(),
            accounts: OnceCell::new(),
            known: RefCell::default(),
        }
    }

    /// Why the server with the process `pid` does not count; `None` if it does. `users`: its own, which a tree may not tell.
    pub(super) fn why_not(&self, root: &Root, pid: i32, users: Option<&Credentials>) -> Option<String> {
        let Some(users) = users else {
            return (!root.is_tree()).then(|| "its user could not be determined".to_owned());
        };
        if !user_namespace::is_roots(root, pid) {
            return Some("another user than root made its user namespace".to_owned());
        }
        let container = container(root, pid).map(|(container, _)| container);
        let is_service = |uid| match container {
            Some(Container::System) => self.is_service_inside(root, pid, uid),
            _ => self.is_service(root, uid),
        };
        if container == Some(Container::Application) {
            return None;
        }
        if let Some(uid) = users.users().into_iter().find(|uid| !is_service(*uid)) {
            return (!is_registered(root, pid)).then(|| format!("runs as {}", self.name(root, uid)));
        }
        // Without privilege the program of another user's process is not seen.
        let program = if container.is_none() { program::file(root, pid)? } else { return None };
        if program.owner != 0 && program.owner != users.effective {
            return Some(format!("runs a program of {}", self.name(root, program.owner)));
        }
        (!program.is_at_its_path(root, pid)).then(|| "its program is another file than the one at its path".to_owned())
    }

    /// Whether the user `uid` is root or a service account.
    pub(super) fn is_service(&self, root: &Root, uid: u32) -> bool {
        let known = self.known.borrow().get(&uid).copied();
        known.unwrap_or_else(|| {
            // A tree without accounts says nothing of them.
            let is_untold = || root.is_tree() && !root.exists("/etc/passwd");
            let is_service = uid == 0
                || self.is_listed(&uid.to_string())
                || self.names(root, uid).any(|name| self.is_name_of_service(self.accounts(root), name))
                || is_untold();
            self.known.borrow_mut().insert(uid, is_service);
            is_service
        })
    }

    /// The same by the accounts of the container that `pid` is in.
    fn is_service_inside(&self, root: &Root, pid: i32, uid: u32) -> bool {
        let Some(inside) = credentials::unmapped(root, pid, uid) else { return false };
        let accounts = namespace::container(root, pid).and_then(|root| accounts::accounts(&root).ok());
        let accounts = accounts.unwrap_or_default();
        let is_service = |account: &Account| account.uid == inside && self.is_name_of_service(&accounts, &account.name);
        inside == 0 || accounts.iter().any(is_service)
    }

    /// As whom the files are read of what does not run: the service accounts of /etc/passwd and those listed by uid, else nobody.
    pub(super) fn owners(&self, root: &Root) -> Vec<Owner> {
        let nobody = Owner::nobody(root);
        let listed = self.listed.iter().filter_map(|listed| listed.parse().ok());
        let uids: BTreeSet<_> = self.accounts(root).iter().map(|account| account.uid).chain(listed).collect();
        let is_one = |uid: &u32| nobody.is_another() && ![0, nobody.uid].contains(uid) && self.is_service(root, *uid);
        uids.into_iter().filter(is_one).map(|uid| Owner::of_account(root, uid)).chain([nobody.clone()]).collect()
    }

    fn is_listed(&self, name: &str) -> bool {
        self.listed.iter().any(|listed| listed == name)
    }

    /// Also `ora<sid>`, where SAP's own user of that system, `<sid>adm`, is among the accounts.
    fn is_name_of_service(&self, accounts: &[Account], name: &str) -> bool {
        let administrator = |sid: &str| accounts.iter().any(|account| account.name == format!("{sid}adm"));
        self.is_listed(name) || name.strip_prefix("ora").is_some_and(|sid| sid.len() == 3 && administrator(sid))
    }

    /// The name of the user `uid`, or `uid 1000` where /etc/passwd has none.
    pub(super) fn name(&self, root: &Root, uid: u32) -> String {
        self.account_name(root, uid).map_or_else(|| format!("uid {uid}"), str::to_owned)
    }

    /// The first name of the user `uid` in /etc/passwd.
    pub(super) fn account_name(&self, root: &Root, uid: u32) -> Option<&str> {
        self.names(root, uid).next()
    }

    fn names<'a>(&'a self, root: &Root, uid: u32) -> impl Iterator<Item = &'a str> + use<'a> {
        self.accounts(root).iter().filter(move |account| account.uid == uid).map(|account| account.name.as_str())
    }

    fn accounts(&self, root: &Root) -> &[Account] {
        self.accounts.get_or_init(|| accounts::accounts(root).unwrap_or_default())
    }
}

/// The lines of [`FILE`] without comments; none if there is no such file.
pub fn listed(root: &Root) -> Result<Vec<String>, ReadError> {
    let text = if_there(root.read(FILE))?.unwrap_or_default();
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
    Ok(lines.filter(|line| !line.is_empty()).map(str::to_owned).collect())
}

/// Whether it runs the program of an ORACLE_HOME that oratab has, in a tree, which does not tell who owns the home.
fn is_registered(root: &Root, pid: i32) -> bool {
    let program = process::link(root, pid, "exe").ok().flatten().filter(|_| root.is_tree());
    let home = program.as_deref().and_then(home_of);
    home.is_some_and(|home| oratab::read(root, &mut Notes::default()).iter().any(|entry| entry.home == home))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::process::Command;

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
            "root:x:0:0:::\npostgres:x:26:26:::\nwww-data:x:33:33:::\nalice:x:1000:1000:::\noracle:x:54321:54321:::\n\
             orac11:x:1200:1200:::\nc11adm:x:1201:1201:::\noranna:x:1202:1202:::\nnobody:x:65534:65534:::\n",
        );
        write("etc/hugepage-sidecar/service-accounts", "# ours\n20001 # of the directory service\n\n  dbuser\n");
        write("etc/oratab", "REG:/u01/home:N\n");
        write("proc/7/root/etc/passwd", "root:x:0:0:::\npostgres:x:70:70:::\nbob:x:1000:1000:::\n");
        for (pid, number) in [("self", 1), ("7", 2)] {
            fs::create_dir_all(tree.path().join(format!("proc/{pid}/ns"))).unwrap();
            symlink(format!("mnt:[{number}]"), tree.path().join(format!("proc/{pid}/ns/mnt"))).unwrap();
        }
        let root = Root::at(tree.path());
        (tree, root)
    }

    fn why_not(root: &Root, more: &[&str]) -> Option<String> {
        let more: Vec<_> = more.iter().map(|&name| name.to_owned()).collect();
        let mut notes = Notes::default();
        let accounts = ServiceAccounts::read(root, &more, &mut notes);
        assert!(notes.into_vec().is_empty());
        accounts.why_not(root, 7, Credentials::read(root, 7).unwrap().as_ref())
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
            (54321, 54321, None),
            (1200, 1200, None),
            (20001, 20001, None),
            // System accounts are not servers' accounts.
            (33, 33, Some("runs as www-data")),
            (999, 999, Some("runs as uid 999")),
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
        let (tree, root) = host("Name:\tx\n", ON_HOST, IDENTITY);
        assert_eq!(why_not(&root, &[]), None, "a tree that does not tell");
        fs::write(tree.path().join("proc/7/status"), of_uids(999, 999)).unwrap();
        fs::remove_file(tree.path().join("etc/passwd")).unwrap();
        assert_eq!(why_not(&root, &[]), None, "a tree without accounts tells nothing of them");
    }

    /// Of a home of oratab a tree does not tell the owner.
    #[test]
    fn a_home_of_oratab_in_a_tree() {
        for (exe, uid, counts) in [
            ("/u01/home/bin/oracle", 20002, true),
            ("/home/alice/bin/oracle", 1000, false),
            ("/u01/home/bin/sqlplus", 1000, false),
        ] {
            let (tree, root) = host(&of_uids(uid, uid), ON_HOST, IDENTITY);
            symlink(exe, tree.path().join("proc/7/exe")).unwrap();
            assert_eq!(why_not(&root, &[]).is_none(), counts, "{exe}");
        }
    }

    /// What alice mounts over a directory has the path of the program there, and is another file.
    #[test]
    fn a_program_at_its_path() {
        let root = Root::live();
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        let runs_sleep = || fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name == "sleep\n");
        while !runs_sleep() {}
        let program = program::file(&root, pid).unwrap();
        assert!(program.is_at_its_path(&root, pid) && !program.is_at_its_path(&root, i32::MAX));
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn containers_that_count() {
        for (cgroup, uid, uid_map, counts) in [
            ("0::/system.slice/docker-0123abcd.scope\n", 54322, IDENTITY, true),
            ("0::/kubepods.slice/kubepods-pod1.slice/cri-containerd-77.scope\n", 100_026, "0 100000 65536\n", true),
            ("12:hugetlb:/docker/0123abcd\n1:name=systemd:/docker/0123abcd\n", 1001, IDENTITY, true),
            // A whole system has accounts of its own.
            ("0::/lxc.payload.db/system.slice/postgresql.service\n", 100_070, "0 100000 65536\n", true),
            ("0::/lxc.payload.db/system.slice/postgresql.service\n", 100_026, "0 100000 65536\n", false),
            ("0::/lxc.payload.db/user.slice\n", 101_000, "0 100000 65536\n", false),
            ("0::/machine.slice/machine-db.scope/payload\n", 1000, IDENTITY, false),
            ("0::/user.slice/user-1000.slice/user@1000.service/docker/x\n", 1000, IDENTITY, false),
            ("0::/\n", 100_026, "0 1000 1\n1 100000 65536\n", false),
        ] {
            let (_tree, root) = host(&of_uids(uid, uid), cgroup, uid_map);
            assert_eq!(why_not(&root, &[]).is_none(), counts, "{cgroup} {uid}");
        }
    }
}
