//! The user that a reader becomes.

use std::collections::BTreeMap;

use hugepage_kernel::Root;
use hugepage_kernel::host::accounts;
use hugepage_kernel::proc::credentials::Credentials;
use rustix::process::geteuid;
use rustix::thread::{CapabilitySet, capabilities};
use serde::{Deserialize, Serialize};

/// A user that has no files, no account and no process. Whoever runs as `nobody` could end a reader that did.
pub(super) const NOBODY: u32 = 0x7fff_fffd;
/// The number of `nobody` on every Linux.
pub(super) const USUAL_NOBODY: u32 = 65534;

/// A user as whom files are read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// The user, as this program's user namespace has it.
    pub uid: u32,
    /// All groups; the first one becomes the group of the reader.
    pub groups: Vec<u32>,
    /// Whether it is the user of that number in containers.
    pub is_in_container: bool,
}

impl Owner {
    /// The user of this program, with the groups that it has.
    pub fn own() -> Self {
        Self { uid: geteuid().as_raw(), ..Self::default() }
    }

    /// The user whose files are nobody's; for a tree this program's own.
    pub fn nobody(root: &Root) -> Self {
        if is_alone(root) { Self::own() } else { Self { uid: NOBODY, groups: vec![NOBODY], is_in_container: false } }
    }

    /// The user `uid` with the groups of /etc/passwd and /etc/group.
    pub fn of_account(root: &Root, uid: u32) -> Self {
        match is_alone(root) {
            true => Self::own(),
            false => Self { uid, groups: accounts::groups(root, uid).unwrap_or_default(), is_in_container: false },
        }
    }

    /// The effective users of processes, and what is kept of those, apart for each user's in a container. Nobody stands for root and
    /// for unknown users; this program's own user for all where it can't become another one, and for those of a tree. The groups are
    /// those of its account, or of processes that are its alone: a setuid or setgid program has what its user has not. Those in
    /// containers come last, because there may be any number of them.
    pub fn of_processes<T>(root: &Root, processes: Vec<(Option<Credentials>, bool, T)>) -> Vec<(Self, Vec<T>)> {
        let is_alone = is_alone(root);
        let mut users: BTreeMap<(bool, u32), (Vec<u32>, Vec<T>)> = BTreeMap::new();
        for (credentials, is_in_container, kept) in processes {
            let found = credentials.filter(|found| !is_alone && found.effective != 0);
            let uid = match &found {
                Some(found) => found.effective,
                None if is_alone => geteuid().as_raw(),
                None => NOBODY,
            };
            let (groups, all) = users.entry((is_in_container && !is_alone, uid)).or_default();
            let own = found.filter(|found| found.users() == [uid; 3]).into_iter().flat_map(|found| found.groups);
            let new: Vec<_> = own.filter(|gid| !groups.contains(gid)).collect();
            groups.extend(new);
            all.push(kept);
        }
        let owner = |((is_in_container, uid), (groups, all)): ((bool, u32), _)| {
            let of_account = if is_in_container || is_alone { Vec::new() } else { Self::of_account(root, uid).groups };
            (Self { uid, groups: if of_account.is_empty() { groups } else { of_account }, is_in_container }, all)
        };
        users.into_iter().map(owner).collect()
    }

    /// Whether this process reads as nobody.
    pub fn is_nobody() -> bool {
        [NOBODY, USUAL_NOBODY].contains(&geteuid().as_raw())
    }

    /// Whether it is another user than this program runs as.
    pub fn is_another(&self) -> bool {
        self.uid != geteuid().as_raw()
    }
}

/// Whether this program reads all as its own user: a tree, and where it is not root and can't become another one.
fn is_alone(root: &Root) -> bool {
    let needed = CapabilitySet::SETUID | CapabilitySet::SETGID;
    !root.shows_processes()
        || !geteuid().is_root() && !capabilities(None).is_ok_and(|sets| sets.permitted.contains(needed))
}
