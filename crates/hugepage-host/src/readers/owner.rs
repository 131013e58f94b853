//! Whom a reader becomes.

use std::collections::BTreeMap;

use hugepage_kernel::Root;
use hugepage_kernel::host::accounts;
use hugepage_kernel::proc::credentials::Credentials;
use rustix::process::geteuid;
use rustix::thread::{CapabilitySet, capabilities};
use serde::{Deserialize, Serialize};

/// The user that has no files (`nobody`, on every Linux).
const NOBODY: u32 = 65534;

/// A user as whom files are read.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Owner {
    /// The user, as this program's user namespace has it.
    pub uid: u32,
    /// All groups; the first one becomes the group of the reader.
    pub groups: Vec<u32>,
}

impl Owner {
    /// The user of this program, with the groups that it has.
    pub fn own() -> Self {
        Self { uid: geteuid().as_raw(), groups: Vec::new() }
    }

    /// The user whose files are nobody's; for a tree this program's own.
    pub fn nobody(root: &Root) -> Self {
        if is_alone(root) { Self::own() } else { Self { uid: NOBODY, groups: vec![NOBODY] } }
    }

    /// The user `uid` with the groups of /etc/passwd and /etc/group.
    pub fn of_account(root: &Root, uid: u32) -> Self {
        match is_alone(root) {
            true => Self::own(),
            false => Self { uid, groups: accounts::groups(root, uid).unwrap_or_default() },
        }
    }

    /// The effective users of processes, each with the groups that any of its processes has, and what is kept of those. Nobody stands
    /// for root, and this program's own user for all where it can't become another one, and for those of a tree.
    pub fn of_processes<T>(root: &Root, processes: Vec<(Option<Credentials>, T)>) -> Vec<(Self, Vec<T>)> {
        let is_alone = is_alone(root);
        let mut users: BTreeMap<u32, (Vec<u32>, Vec<T>)> = BTreeMap::new();
        for (credentials, kept) in processes {
            let found = credentials.filter(|_| !is_alone);
            let uid = match &found {
                Some(found) if found.effective == 0 => NOBODY,
                Some(found) => found.effective,
                None => geteuid().as_raw(),
            };
            let (groups, all) = users.entry(uid).or_default();
            let new = found.filter(|found| found.effective != 0).into_iter().flat_map(|found| found.groups);
            new.for_each(|gid| {
                if !groups.contains(&gid) {
                    groups.push(gid)
                }
            });
            all.push(kept);
        }
        users.into_iter().map(|(uid, (groups, all))| (Self { uid, groups }, all)).collect()
    }

    /// Whether it is another user than this program runs as.
    pub fn is_another(&self) -> bool {
        self.uid != geteuid().as_raw()
    }
}

/// Whether this program reads all as its own user: a tree, and where it can't become another one and is not root, who reads nothing
/// of others.
fn is_alone(root: &Root) -> bool {
    let needed = CapabilitySet::SETUID | CapabilitySet::SETGID;
    !root.shows_processes()
        || !geteuid().is_root() && !capabilities(None).is_ok_and(|sets| sets.permitted.contains(needed))
}
