//! For whom a file of a server is read, and what that user could read without this program.

use std::os::unix::fs::MetadataExt;

use crate::stranger::beneath::{BeneathFile, Place};

/// The user whose permissions count when a file is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reader {
    /// This program's permissions, which the kernel holds it to: it runs as the server's user.
    This,
    /// The permissions of a tree's owner, which [`Root`] holds it to.
    Tree,
    /// The permissions of the server's user, which this program has to hold itself to.
    User(ServerUser),
}

/// The server's user, as far as it may lend this program its eyes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ServerUser {
    /// The user; `None` if unknown: then no file counts as its own.
    pub uid: Option<u32>,
    /// All groups of the process.
    pub groups: Vec<u32>,
    /// The numbers of root: the host's and that of the server's container.
    pub roots: Vec<u32>,
}

impl ServerUser {
    /// Why the file is not read for this user; `None` if it is.
    pub fn refusal(&self, found: &BeneathFile) -> Option<String> {
        let owner = found.metadata.uid();
        let is_ours = |uid: &u32| self.uid == Some(*uid) || self.roots.contains(uid);
        if let Some(other) = found.link_owners.iter().find(|uid| !is_ours(uid)) {
            return Some(format!("a link of uid {other} leads to it"));
        }
        match owner {
            _ if self.uid == Some(owner) && found.metadata.nlink() > 1 && owner != 0 => {
                Some("it is a file of several names".to_owned())
            }
            _ if self.uid == Some(owner) && !self.may_search(found) => {
                Some("the server's user may not search the directories that lead to it".to_owned())
            }
            _ if self.uid == Some(owner) => None,
            _ if !self.roots.contains(&owner) => Some(format!("its owner is uid {owner}, not the server's user")),
            _ if !self.may_read(found) => Some("it is root's, and the server's user may not read it".to_owned()),
            _ => None,
        }
    }

    /// Whether the modes and access control lists on the way and of the thing itself let the user read it (path_resolution(7)).
    pub fn may_read(&self, found: &BeneathFile) -> bool {
        const READ: u32 = 4;
        self.may(found.place(), READ) && self.may_search(found)
    }

    fn may_search(&self, found: &BeneathFile) -> bool {
        const SEARCH: u32 = 1;
        found.searched().all(|directory| self.may(directory, SEARCH))
    }

    fn may(&self, place: &Place, what: u32) -> bool {
        let of = place.metadata();
        if self.uid == Some(0) {
            return true;
        }
        if self.uid == Some(of.uid()) {
            return of.mode() >> 6 & what != 0;
        }
        let by_mode = || of.mode() >> if self.groups.contains(&of.gid()) { 3 } else { 0 };
        let permissions = place.acl().permissions(self.uid, &self.groups, of.gid());
        permissions.unwrap_or_else(by_mode) & what != 0
    }
}
