//! The processes of a host that are of no server that counts.

use std::collections::BTreeSet;
use std::fmt;

use hugepage_kernel::{Bytes, Pages};
use serde::{Deserialize, Serialize};

/// Of the processes of one user that do not count for one reason the first: any user can start as many as it may have processes.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Strangers {
    /// The first ones.
    pub first: Vec<Stranger>,
    /// The number of the others.
    pub more: usize,
    /// The users and reasons of all.
    pub seen: BTreeSet<(Option<u32>, String)>,
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
}

/// The processes of one name and user that have huge pages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolHolder {
    /// The name that the kernel shows of them: at most 15 characters.
    pub name: String,
    /// Their user.
    pub user: String,
    /// How many.
    pub processes: u64,
    /// What they have mapped of pools of all sizes.
    pub memory: Bytes,
    /// In pages; `None` if pools of several sizes are in use.
    pub pages: Option<Pages>,
    /// Whether `memory` is a bound: what each has may be shared with others.
    pub is_bound: bool,
    /// Whether it is root or a service account, outside of containers.
    pub counts: bool,
}

impl PoolHolder {
    /// A clause behind a sentence on the `others` pages that others hold; empty if it is unknown how many of them these are.
    pub fn clause(&self, others: Pages) -> String {
        let known = self
            .pages
            .filter(|pages| *pages > Pages(0) && *pages <= others);
        known.map_or(String::new(), |pages| {
            format!("; {self} {} {pages} pages", self.verb())
        })
    }

    /// Before the number of pages.
    pub const fn verb(&self) -> &'static str {
        if self.is_bound {
            "holds up to"
        } else {
            "holds"
        }
    }
}

impl fmt::Display for PoolHolder {
    /// `qemu-system-x86 (libvirt-qemu)`. Without the quotes that a command has in a hint.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name.replace('"', "'"), self.user)
    }
}
