//! Processes that call themselves servers and are not trusted: a line each, and no more than somebody wants to read.

use std::collections::BTreeSet;
use std::fmt;

use hugepage_kernel::{Bytes, Root};
use serde::{Deserialize, Serialize};

use super::service_accounts::ServiceAccounts;
use crate::processes::glance::ProcessGlance;

/// As many are shown; any user can start as many as it may have processes.
const MAX_SHOWN: usize = 10;

/// All of them.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Strangers {
    /// The first ones.
    pub first: Vec<Stranger>,
    /// The number of the others.
    pub more: usize,
    pids: BTreeSet<i32>,
    uids: BTreeSet<Option<u32>>,
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
        write!(f, "process {} ({}, {}) {}", self.pid, self.name, self.resident, self.reason)
    }
}

impl Strangers {
    /// How many there are.
    pub fn count(&self) -> usize {
        self.first.len() + self.more
    }

    /// Adds a process unless it is a child of one of them. `reason`: something else than its user. `once`: only the first of its user.
    pub(super) fn add(
        &mut self,
        root: &Root,
        accounts: &ServiceAccounts,
        pid: i32,
        glance: &ProcessGlance,
        reason: Option<String>,
        once: bool,
    ) {
        let uid = glance.credentials.as_ref().map(|users| users.effective);
        let is_child = glance.status.parent.is_some_and(|parent| self.pids.contains(&parent));
        self.pids.insert(pid);
        let is_first = self.uids.insert(uid);
        if is_child || once && !is_first {
            return;
        }
        if self.first.len() >= MAX_SHOWN {
            self.more += 1;
            return;
        }
        let of_user = || uid.map(|uid| format!("runs as {}", accounts.name(root, uid)));
        let reason = reason.or_else(of_user).unwrap_or_default();
        self.first.push(Stranger { pid, uid, name: glance.name.clone(), resident: glance.resident(), reason });
    }
}
