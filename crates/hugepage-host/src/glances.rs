//! What the status of each process says, before anything else of it is read: every user may read that file, and it waits for no lock.

use std::collections::{BTreeMap, BTreeSet};

use hugepage_kernel::notes::Notes;
use hugepage_kernel::proc::process::{self, Processes};
use hugepage_kernel::{Bytes, Root};

use super::container::container;
use super::server_names::is_of_server;
use super::service_accounts::ServiceAccounts;
use super::strangers::Strangers;
use crate::processes::credentials::Credentials;
use crate::processes::glance::{self, ProcessGlance};

/// The most processes beside servers of which it is kept that they have huge pages.
const MAX_HOLDERS: usize = 1000;

/// A process that may be one of a server that counts.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub(super) pid: i32,
    pub(super) glance: ProcessGlance,
    /// Whether its effective user is a service account.
    pub(super) is_of_service: bool,
}

/// What the processes of a host are by their status.
#[derive(Debug, Default)]
pub(super) struct Glances {
    /// Who is looked at by its user's reader.
    pub(super) candidates: Vec<Candidate>,
    /// Who calls itself a server and does not count.
    pub(super) strangers: Strangers,
    /// The memory in huge pages of processes of service accounts that are of no server, outside of containers.
    pub(super) held_by_services: Bytes,
    /// The memory in huge pages of all others, of which each process that has a page of several counts it.
    pub(super) held_by_strangers: Bytes,
    /// Root's processes that are of no server, and what each has touched of huge pages.
    pub(super) of_root: Vec<(i32, Bytes)>,
    /// The first processes that have huge pages and are of no server, and whether each counts.
    pub(super) holders: Vec<(i32, ProcessGlance, bool)>,
}

impl Glances {
    /// Looks at every process.
    pub(super) fn look(root: &Root, accounts: &ServiceAccounts, notes: &mut Notes) -> Self {
        let pids = notes.keep(process::pids(root)).unwrap_or_default();
        let all = Processes::open(root);
        let mut found = Self::default();
        // A process that ends meanwhile, or is hidden, belongs to no server.
        for (pid, glance) in pids.into_iter().filter_map(|pid| Some((pid, glance::glance(&all, pid).ok()??))) {
            found.add(root, accounts, pid, glance);
        }
        found
    }

    fn add(&mut self, root: &Root, accounts: &ServiceAccounts, pid: i32, glance: ProcessGlance) {
        let users = glance.credentials.as_ref();
        let is_of_service = users.is_none_or(|users| accounts.is_service(root, users.effective));
        let is_named = is_of_server(&glance.name);
        // The images of root's container runtimes name programs as they like.
        if is_of_service || (is_named || may_be_in_server(&glance)) && container(root, pid).is_some() {
            return self.candidates.push(Candidate { pid, glance, is_of_service });
        }
        if is_named {
            self.strangers.add(root, accounts, pid, &glance, None);
        }
        self.add_other(root, Candidate { pid, glance, is_of_service });
    }

    /// Adds what was found of candidates: who does not count and why, and who is of no server.
    pub(super) fn add_found(
        &mut self,
        root: &Root,
        accounts: &ServiceAccounts,
        candidates: Vec<Candidate>,
        refused: &BTreeMap<i32, String>,
        others: &BTreeSet<i32>,
    ) {
        for one in candidates {
            if let Some(why) = refused.get(&one.pid) {
                self.strangers.add(root, accounts, one.pid, &one.glance, Some(why.clone()));
            }
            if others.contains(&one.pid) {
                self.add_other(root, one);
            }
        }
    }

    /// Adds a process that is of no server.
    fn add_other(&mut self, root: &Root, process: Candidate) {
        let Candidate { pid, glance, is_of_service } = process;
        let is_of_root = glance.credentials.as_ref().is_some_and(|users| users.users().iter().all(|uid| *uid == 0));
        if is_of_root && glance.status.rss_anon.is_some() {
            self.of_root.push((pid, glance.status.hugetlb_pages.unwrap_or_default()));
        }
        if !glance.holds_huge_pages() {
            return;
        }
        // The root of a container is as good as anybody.
        let counts = is_of_service && container(root, pid).is_none();
        let sum = if counts { &mut self.held_by_services } else { &mut self.held_by_strangers };
        *sum = sum.saturating_add(glance.status.hugetlb_pages.unwrap_or_default());
        if self.holders.len() < MAX_HOLDERS {
            self.holders.push((pid, glance, counts));
        }
    }

    /// The candidates with their users and containers, which are taken.
    pub(super) fn take_candidates(&mut self, root: &Root) -> Vec<(Option<Credentials>, Option<String>, Candidate)> {
        let name = |pid| container(root, pid).map(|(_, name)| name);
        let with_user = |one: Candidate| (one.glance.credentials.clone(), name(one.pid), one);
        std::mem::take(&mut self.candidates).into_iter().map(with_user).collect()
    }
}

/// Whether a process may be one of a server's, all of which share memory.
pub(super) fn may_be_in_server(glance: &ProcessGlance) -> bool {
    glance.holds_huge_pages() || glance.status.rss_shmem.is_none_or(|memory| memory > Bytes(0))
}
