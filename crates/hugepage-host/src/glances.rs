//! What the processes of a host are by their status, before anything else of them is read: every user may read that file, and it
//! waits for no lock.

use std::collections::BTreeMap;

use hugepage_facts::{OtherProcesses, Stranger, Strangers};
use hugepage_kernel::proc::process;
use hugepage_kernel::{Bytes, Notes};

use super::control_group::container;
use super::processes::{Credentials, ProcessGlance, is_of_server};
use super::service_accounts::ServiceAccounts;

/// The most processes beside servers of which it is kept that they have huge pages.
const MAX_HOLDERS: usize = 1000;
/// So many of those that call themselves servers and do not count are shown.
const MAX_SHOWN: usize = 10;
/// The programs that run guests, as the kernel cuts their names.
const RUNS_GUESTS: [&str; 4] = ["qemu-", "kvm", "firecracker", "cloud-hyperviso"];

/// What the processes of a host are by their status.
#[derive(Debug, Default)]
pub(super) struct Glances {
    /// Who may be of a server that counts, and is looked at by its user's reader.
    pub(super) candidates: Vec<ProcessGlance>,
    /// Who calls itself a server and does not count.
    pub(super) strangers: Strangers,
    /// What those have that are of no server, without what is read later.
    pub(super) others: OtherProcesses,
    /// Root's processes that are of no server, and what each has touched of huge pages.
    pub(super) of_root: Vec<(i32, Bytes)>,
    /// The first processes that have huge pages and are of no server, and whether each counts.
    pub(super) holders: Vec<(ProcessGlance, bool)>,
}

impl Glances {
    /// Looks at every process.
    pub(super) fn look(accounts: &ServiceAccounts<'_>, notes: &mut Notes) -> Self {
        let root = accounts.root;
        let pids = notes.keep(process::pids(root)).unwrap_or_default();
        let mut found = Self::default();
        for process in pids
            .into_iter()
            .filter_map(|pid| ProcessGlance::read(root, pid))
        {
            found.others.runs_guests |= RUNS_GUESTS
                .iter()
                .any(|name| process.name.starts_with(name));
            let is_named = is_of_server(&process.name);
            if is_named || process.name.starts_with("ora") {
                let users = process.users.iter().flat_map(Credentials::users);
                found.others.users_of_oracle.extend(users);
            }
            // The images of root's container runtimes name programs as they like.
            let may_be_in_container = || {
                (is_named || process.may_be_in_server()) && container(root, process.pid).is_some()
            };
            if accounts.is_of_service(&process) || may_be_in_container() {
                found.candidates.push(process);
                continue;
            }
            if is_named {
                add_stranger(&mut found.strangers, accounts, &process, None);
            }
            found.add_other(accounts, process);
        }
        found
    }

    /// Adds the candidates that are of no server, and why one that calls itself one does not count.
    pub(super) fn add_found(
        &mut self,
        accounts: &ServiceAccounts<'_>,
        candidates: Vec<ProcessGlance>,
        others: &BTreeMap<i32, Option<String>>,
    ) {
        for one in candidates {
            let Some(why) = others.get(&one.pid) else {
                continue;
            };
            if why.is_some() {
                add_stranger(&mut self.strangers, accounts, &one, why.clone());
            }
            self.add_other(accounts, one);
        }
    }

    /// Adds a process that is of no server.
    fn add_other(&mut self, accounts: &ServiceAccounts<'_>, process: ProcessGlance) {
        let ProcessGlance {
            pid, users, status, ..
        } = &process;
        let touched = status.hugetlb_pages.unwrap_or_default();
        if users.as_ref().is_some_and(|users| users.users() == [0; 3]) && status.rss_anon.is_some()
        {
            self.of_root.push((*pid, touched));
        }
        if touched == Bytes(0) {
            return;
        }
        // The root of a container is as good as anybody.
        let counts = accounts.is_of_service(&process) && container(accounts.root, *pid).is_none();
        let sum = if counts {
            &mut self.others.held_by_services
        } else {
            &mut self.others.held_by_strangers
        };
        *sum = sum.saturating_add(touched);
        if self.holders.len() < MAX_HOLDERS {
            self.holders.push((process, counts));
        }
    }
}

/// Adds a process unless one of its user is there for the same reason. `reason`: something else than its user.
fn add_stranger(
    all: &mut Strangers,
    accounts: &ServiceAccounts<'_>,
    process: &ProcessGlance,
    reason: Option<String>,
) {
    let uid = process.users.as_ref().map(|users| users.effective);
    let of_user = || uid.map(|uid| format!("runs as {}", accounts.name(uid)));
    let reason = reason.or_else(of_user).unwrap_or_default();
    if !all.seen.insert((uid, reason.clone())) {
        return;
    }
    // Of uids without a name one user can have any number (subuid(5)).
    let is_named = |uid: Option<u32>| uid.is_none_or(|uid| accounts.is_named(uid));
    let is_one_of_many = || !is_named(uid) && all.first.iter().any(|one| !is_named(one.uid));
    if all.first.len() >= MAX_SHOWN || is_one_of_many() {
        all.more += 1;
        return;
    }
    all.first.push(Stranger {
        pid: process.pid,
        uid,
        name: process.name.clone(),
        resident: process.resident(),
        reason,
    });
}
