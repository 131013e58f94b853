//! What the processes of a host are by their status, before anything else of them is read: every user may read that file, and it
//! waits for no lock.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use hugepage_kernel::proc::process;
use hugepage_kernel::{Bytes, Notes};
use serde::{Deserialize, Serialize};

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
    /// The memory in huge pages of processes of service accounts that are of no server, outside of containers.
    pub(super) held_by_services: Bytes,
    /// The memory in huge pages of all others, of which each process that has a page of several counts it.
    pub(super) held_by_strangers: Bytes,
    /// Root's processes that are of no server, and what each has touched of huge pages.
    pub(super) of_root: Vec<(i32, Bytes)>,
    /// The users of processes with names of Oracle's, also of an instance that starts.
    pub(super) users_of_oracle: BTreeSet<u32>,
    /// Whether one has the name of a program that runs guests.
    pub(super) runs_guests: bool,
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
            found.runs_guests |= RUNS_GUESTS
                .iter()
                .any(|name| process.name.starts_with(name));
            let is_named = is_of_server(&process.name);
            if is_named || process.name.starts_with("ora") {
                let users = process.users.iter().flat_map(Credentials::users);
                found.users_of_oracle.extend(users);
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
                found.strangers.add(accounts, &process, None);
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
                self.strangers.add(accounts, &one, why.clone());
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
            &mut self.held_by_services
        } else {
            &mut self.held_by_strangers
        };
        *sum = sum.saturating_add(touched);
        if self.holders.len() < MAX_HOLDERS {
            self.holders.push((process, counts));
        }
    }
}

/// Of the processes of one user that do not count for one reason the first: any user can start as many as it may have processes.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Strangers {
    /// The first ones.
    pub first: Vec<Stranger>,
    /// The number of the others.
    pub more: usize,
    seen: BTreeSet<(Option<u32>, String)>,
}

/// One of them. What it says of itself is not longer than the kernel lets a name be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stranger {
    /// The process.
    pub pid: i32,
    /// Its effective user; `None` if unknown.
    pub uid: Option<u32>,
    /// The name of its program, which it can choose.
    pub name: String,
    /// Its resident memory.
    pub resident: Bytes,
    /// Why it does not count, as `runs as alice`.
    pub reason: String,
}

impl fmt::Display for Stranger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "process {} ({}, {}) {}",
            self.pid, self.name, self.resident, self.reason
        )
    }
}

impl Strangers {
    /// How many there are.
    pub fn count(&self) -> usize {
        self.first.len() + self.more
    }

    /// Adds a process unless one of its user is there for the same reason. `reason`: something else than its user.
    pub(super) fn add(
        &mut self,
        accounts: &ServiceAccounts<'_>,
        process: &ProcessGlance,
        reason: Option<String>,
    ) {
        let uid = process.users.as_ref().map(|users| users.effective);
        let of_user = || uid.map(|uid| format!("runs as {}", accounts.name(uid)));
        let reason = reason.or_else(of_user).unwrap_or_default();
        if !self.seen.insert((uid, reason.clone())) {
            return;
        }
        // Of uids without a name one user can have any number (subuid(5)).
        let is_named = |uid: Option<u32>| uid.is_none_or(|uid| accounts.is_named(uid));
        let is_one_of_many = || !is_named(uid) && self.first.iter().any(|one| !is_named(one.uid));
        if self.first.len() >= MAX_SHOWN || is_one_of_many() {
            self.more += 1;
            return;
        }
        self.first.push(Stranger {
            pid: process.pid,
            uid,
            name: process.name.clone(),
            resident: process.resident(),
            reason,
        });
    }
}
