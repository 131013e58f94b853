//! Processes that call themselves servers and are not trusted: a line for each user, and no more than somebody wants to read.

use std::collections::BTreeSet;
use std::fmt;

use hugepage_kernel::{Bytes, Root};
use serde::{Deserialize, Serialize};

use super::service_accounts::ServiceAccounts;
use crate::processes::glance::ProcessGlance;

/// As many are shown.
const MAX_SHOWN: usize = 10;

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
        write!(f, "process {} ({}, {}) {}", self.pid, self.name, self.resident, self.reason)
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
        root: &Root,
        accounts: &ServiceAccounts,
        pid: i32,
        glance: &ProcessGlance,
        reason: Option<String>,
    ) {
        let uid = glance.credentials.as_ref().map(|users| users.effective);
        let of_user = || uid.map(|uid| format!("runs as {}", accounts.name(root, uid)));
        let reason = reason.or_else(of_user).unwrap_or_default();
        if !self.seen.insert((uid, reason.clone())) {
            return;
        }
        if self.first.len() >= MAX_SHOWN {
            self.more += 1;
            return;
        }
        self.first.push(Stranger { pid, uid, name: glance.name.clone(), resident: glance.resident(), reason });
    }
}
