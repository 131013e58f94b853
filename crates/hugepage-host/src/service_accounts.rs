//! Which servers are trusted and count: any user may start a program that calls itself `postgres` on a directory of its own.
//!
//! This is decided first, by what no stranger can make: all users of the process are service accounts; the file of the program is at
//! its path for root, too, and belongs to root or to the account; it is in the host's user namespace. Or it is in a container that a
//! container runtime of root made, where uids mean nothing to the host. In one of a whole system only uids count that root lists.

use std::collections::BTreeSet;

use hugepage_facts::Owner;
use hugepage_kernel::host::accounts::{self, Account};
use hugepage_kernel::proc::{namespace, program};
use hugepage_kernel::{Root, RootFiles};

use super::control_group::{Container, container};
use super::processes::{Credentials, ProcessGlance};
use crate::readers::owner;

/// Names and uids of more service accounts, one a line; `#` begins a comment.
pub const SERVICE_ACCOUNTS: &str = "/etc/hugepage-sidecar/service-accounts";
/// Accounts of packages and manuals.
const USUAL: [&str; 4] = ["enterprisedb", "grid", "oracle", "postgres"];

/// Whether an account of this name is, or with others may be, a service account on every host.
pub fn is_usual_service_account(name: &str) -> bool {
    USUAL.contains(&name) || (name.len() == 6 && (name.starts_with("ora") || name.ends_with("adm")))
}

/// The host's service accounts.
pub(super) struct ServiceAccounts<'a> {
    pub(super) root: &'a Root,
    /// Names and uids.
    listed: Vec<String>,
    accounts: Vec<Account>,
}

impl<'a> ServiceAccounts<'a> {
    /// Those of the host, and `more`, which are names and uids.
    pub(super) fn read(root: &'a Root, more: &[String]) -> Self {
        let file = listed_service_accounts(root).unwrap_or_default();
        let usual = USUAL.iter().map(|&name| name.to_owned());
        Self {
            root,
            listed: usual.chain(file).chain(more.iter().cloned()).collect(),
            accounts: accounts::accounts(root).unwrap_or_default(),
        }
    }

    /// Why the server with the process `pid` does not count; `None` if it does. `users`: its own, which a tree may not tell.
    pub(super) fn why_not(&self, pid: i32, users: Option<&Credentials>) -> Option<String> {
        let root = self.root;
        let Some(users) = users else {
            return (!root.is_tree()).then(|| "its user could not be determined".to_owned());
        };
        let first =
            |counts: &dyn Fn(u32) -> bool| users.users().into_iter().find(|uid| !counts(*uid));
        match container(root, pid) {
            Some((Container::Application, _)) => return None,
            Some((Container::System, _)) => {
                let uid = first(&|uid| self.is_listed(&uid.to_string()))?;
                return Some(format!(
                    "is in a system container, whose users are not the host's, as uid {uid}"
                ));
            }
            None => {}
        }
        if let Some(uid) = first(&|uid| self.is_service(uid)) {
            return Some(format!("runs as {}", self.name(uid)));
        }
        if !namespace::is_own(root, pid, "user") {
            return Some("is in a user namespace of its own".to_owned());
        }
        // Without privilege the program of another user's process is not seen.
        let program = program::file(root, pid)?;
        if program.owner != 0 && program.owner != users.effective {
            return Some(format!("runs a program of {}", self.name(program.owner)));
        }
        (!program.is_at_its_path(root, pid))
            .then(|| "its program is another file than the one at its path".to_owned())
    }

    /// Whether the user `uid` is root or a service account.
    pub(super) fn is_service(&self, uid: u32) -> bool {
        // A tree without accounts says nothing of them.
        let is_untold = || self.root.is_tree() && !self.root.exists("/etc/passwd");
        let is_named = || self.names(uid).any(|name| self.is_name_of_service(name));
        uid == 0 || self.is_listed(&uid.to_string()) || is_named() || is_untold()
    }

    /// Whether its effective user is one of these; also where a tree does not tell it.
    pub(super) fn is_of_service(&self, process: &ProcessGlance) -> bool {
        process
            .users
            .as_ref()
            .is_none_or(|users| self.is_service(users.effective))
    }

    /// As whom the files are read of what does not run: the service accounts of /etc/passwd and those listed by uid, else nobody.
    pub(super) fn owners(&self) -> Vec<Owner> {
        let nobody = owner::nobody(self.root);
        let listed = self.listed.iter().filter_map(|listed| listed.parse().ok());
        let uids: BTreeSet<_> = self
            .accounts
            .iter()
            .map(|account| account.uid)
            .chain(listed)
            .collect();
        let is_one = |uid: &u32| {
            owner::is_another(&nobody) && ![0, nobody.uid].contains(uid) && self.is_service(*uid)
        };
        uids.into_iter()
            .filter(is_one)
            .map(|uid| owner::of_account(self.root, uid))
            .chain([nobody.clone()])
            .collect()
    }

    fn is_listed(&self, name: &str) -> bool {
        self.listed.iter().any(|listed| listed == name)
    }

    /// Also `ora<sid>`, where SAP's own user of that system, `<sid>adm`, is among the accounts.
    fn is_name_of_service(&self, name: &str) -> bool {
        let administrator = |sid: &str| {
            self.accounts
                .iter()
                .any(|account| account.name == format!("{sid}adm"))
        };
        self.is_listed(name)
            || name
                .strip_prefix("ora")
                .is_some_and(|sid| sid.len() == 3 && administrator(sid))
    }

    /// The first name of the user `uid`, or `uid 1000` where /etc/passwd has none.
    pub(super) fn name(&self, uid: u32) -> String {
        self.names(uid)
            .next()
            .map_or_else(|| format!("uid {uid}"), str::to_owned)
    }

    /// Whether /etc/passwd has an account with this uid.
    pub(super) fn is_named(&self, uid: u32) -> bool {
        self.names(uid).next().is_some()
    }

    fn names(&self, uid: u32) -> impl Iterator<Item = &str> {
        self.accounts
            .iter()
            .filter(move |account| account.uid == uid)
            .map(|account| account.name.as_str())
    }
}

/// The names and uids in [`SERVICE_ACCOUNTS`]; none if there is no such file. The error is why it is not read.
pub fn listed_service_accounts(root: &Root) -> Result<Vec<String>, String> {
    RootFiles::new(root, 1).told_lines(SERVICE_ACCOUNTS)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::process::Command;

    use super::*;

    /// A host with one process, pid 7.
    fn host(status: &str, cgroup: &str, user_namespace: &str) -> (tempfile::TempDir, Root) {
        let tree = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = tree.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("proc/7/status", status);
        write("proc/7/cgroup", cgroup);
        write(
            "etc/passwd",
            "root:x:0:0:::\npostgres:x:26:26:::\nwww-data:x:33:33:::\nalice:x:1000:1000:::\noracle:x:54321:54321:::\n\
             orac11:x:1200:1200:::\nc11adm:x:1201:1201:::\noranna:x:1202:1202:::\nnobody:x:65534:65534:::\n",
        );
        write(
            "etc/hugepage-sidecar/service-accounts",
            "# ours\n20001 # of the directory service\n\n  dbuser\n",
        );
        for (pid, number) in [("self", "1"), ("7", user_namespace)] {
            fs::create_dir_all(tree.path().join(format!("proc/{pid}/ns"))).unwrap();
            symlink(
                format!("user:[{number}]"),
                tree.path().join(format!("proc/{pid}/ns/user")),
            )
            .unwrap();
        }
        let root = Root::at(tree.path());
        (tree, root)
    }

    fn why_not(root: &Root, more: &[&str]) -> Option<String> {
        let more: Vec<_> = more.iter().map(|&name| name.to_owned()).collect();
        let accounts = ServiceAccounts::read(root, &more);
        accounts.why_not(7, Credentials::read(root, 7).as_ref())
    }

    fn of_uids(real: u32, effective: u32) -> String {
        format!("Name:\tx\nUid:\t{real}\t{effective}\t{effective}\t{effective}\nGid:\t1\t1\t1\t1\n")
    }

    const ON_HOST: &str = "0::/system.slice/postgresql.service\n";

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
            let (_tree, root) = host(&of_uids(real, effective), ON_HOST, "1");
            assert_eq!(why_not(&root, &[]).as_deref(), why, "{real} {effective}");
        }
        let (_tree, root) = host(&of_uids(1000, 1000), ON_HOST, "1");
        assert_eq!(
            (why_not(&root, &["alice"]), why_not(&root, &["1000"])),
            (None, None)
        );
        let (tree, root) = host("Name:\tx\n", ON_HOST, "1");
        assert_eq!(why_not(&root, &[]), None, "a tree that does not tell");
        fs::write(tree.path().join("proc/7/status"), of_uids(999, 999)).unwrap();
        fs::remove_file(tree.path().join("etc/passwd")).unwrap();
        assert_eq!(
            why_not(&root, &[]),
            None,
            "a tree without accounts tells nothing of them"
        );
    }

    /// What alice mounts over a directory has the path of the program there, and is another file.
    #[test]
    fn a_program_at_its_path() {
        let root = Root::live();
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        let runs_sleep =
            || fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name == "sleep\n");
        while !runs_sleep() {}
        let program = program::file(&root, pid).unwrap();
        assert!(program.is_at_its_path(&root, pid) && !program.is_at_its_path(&root, i32::MAX));
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn containers_that_count() {
        let of_system =
            |uid| format!("is in a system container, whose users are not the host's, as uid {uid}");
        for (cgroup, uid, user_namespace, why) in [
            ("0::/system.slice/docker-0123abcd.scope\n", 54322, "1", None),
            (
                "0::/kubepods.slice/kubepods-pod1.slice/cri-containerd-77.scope\n",
                100_026,
                "2",
                None,
            ),
            (
                "12:hugetlb:/docker/0123abcd\n1:name=systemd:/docker/0123abcd\n",
                1001,
                "1",
                None,
            ),
            // A whole system has accounts of its own, and so has whoever makes a namespace there.
            (
                "0::/lxc.payload.db/system.slice/postgresql.service\n",
                20_001,
                "2",
                None,
            ),
            (
                "0::/lxc.payload.db/system.slice/postgresql.service\n",
                100_026,
                "2",
                Some(of_system(100_026)),
            ),
            (
                "0::/machine.slice/machine-db.scope/payload\n",
                26,
                "1",
                Some(of_system(26)),
            ),
            (
                "0::/user.slice/user-1000.slice/user@1000.service/docker/x\n",
                1000,
                "1",
                Some("runs as alice".to_owned()),
            ),
            (
                "0::/\n",
                20_001,
                "2",
                Some("is in a user namespace of its own".to_owned()),
            ),
        ] {
            let (_tree, root) = host(&of_uids(uid, uid), cgroup, user_namespace);
            assert_eq!(why_not(&root, &[]), why, "{cgroup} {uid}");
        }
    }
}
