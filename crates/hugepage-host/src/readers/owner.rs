//! The user that a reader becomes, and what was not read as one.

use std::collections::BTreeMap;
use std::fmt;

use hugepage_kernel::Root;
use hugepage_kernel::host::accounts;
use rustix::process::{Pid, geteuid};
use rustix::thread::{CapabilitySet, capabilities};
use serde::{Deserialize, Serialize};

use crate::control_group::container;
use crate::escape;
use crate::processes::ProcessGlance;

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
    /// The container or the directory in which it reads; empty for the rest of the host.
    pub place: String,
}

impl Owner {
    /// The user of this program, with the groups that it has.
    pub fn own() -> Self {
        Self { uid: geteuid().as_raw(), ..Self::default() }
    }

    /// The user whose files are nobody's; for a tree this program's own.
    pub fn nobody(root: &Root) -> Self {
        if is_alone(root) { Self::own() } else { Self { uid: NOBODY, groups: vec![NOBODY], place: String::new() } }
    }

    /// The user `uid` with the groups of /etc/passwd and /etc/group.
    pub fn of_account(root: &Root, uid: u32) -> Self {
        match is_alone(root) {
            true => Self::own(),
            false => Self { uid, groups: accounts::groups(root, uid).unwrap_or_default(), place: String::new() },
        }
    }

    /// The effective users of processes, each with its processes, apart for each container. Nobody stands for root and for unknown users;
    /// this program's own user for all where it can't become another one, and for those of a tree. The groups are those of its account,
    /// or of processes that are its alone: a setuid or setgid program has what its user has not. Containers come last, and first one
    /// user of each, because of containers and of users in one there may be any number.
    pub(crate) fn of_processes(root: &Root, processes: Vec<ProcessGlance>) -> Vec<(Self, Vec<ProcessGlance>)> {
        let is_alone = is_alone(root);
        let mut users: BTreeMap<(String, u32), (Vec<u32>, Vec<ProcessGlance>)> = BTreeMap::new();
        for process in processes {
            let found = process.users.as_ref().filter(|found| !is_alone && found.effective != 0);
            let uid = match found {
                Some(found) => found.effective,
                None if is_alone => geteuid().as_raw(),
                None => NOBODY,
            };
            let place = Some(process.pid).filter(|_| !is_alone).and_then(|pid| container(root, pid));
            let (groups, all) = users.entry((place.map(|(_, name)| name).unwrap_or_default(), uid)).or_default();
            for gid in found.filter(|found| found.users() == [uid; 3]).iter().flat_map(|found| &found.groups) {
                groups.extend((!groups.contains(gid)).then_some(*gid));
            }
            all.push(process);
        }
        let owner = |((place, uid), (groups, all)): ((String, u32), _)| {
            let is_of_host = place.is_empty() && !is_alone;
            let of_account = if is_of_host { Self::of_account(root, uid).groups } else { Vec::new() };
            (Self { uid, groups: if of_account.is_empty() { groups } else { of_account }, place }, all)
        };
        let mut owners: Vec<(Self, _)> = users.into_iter().map(owner).collect();
        let mut turns = BTreeMap::<String, usize>::new();
        owners.sort_by_cached_key(|(owner, _)| {
            let turn = turns.entry(owner.place.clone()).or_default();
            *turn += usize::from(!owner.place.is_empty());
            *turn
        });
        owners
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

/// The files of one user that were not read, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unread {
    /// The user.
    pub uid: u32,
    /// [`Owner::place`].
    pub place: String,
    /// The process that was to read them; `None` if none was started.
    pub pid: Option<i32>,
    /// Why there is no answer: the end of a sentence on that process, or one of its own.
    pub why: String,
}

impl Unread {
    /// What was not read for `owner`, by the process `pid` if one was started.
    pub(super) fn new(owner: &Owner, pid: Option<Pid>, why: impl Into<String>) -> Self {
        Self { uid: owner.uid, place: owner.place.clone(), pid: pid.map(Pid::as_raw_pid), why: why.into() }
    }

    /// Adds it, unless the same user's files were not read before, or some of the same place: it may have any number of users.
    pub fn add_to(self, all: &mut Vec<Self>) {
        let is_same = |other: &Self| other.place == self.place && (other.uid == self.uid || !self.place.is_empty());
        if !all.iter().any(is_same) {
            all.push(self);
        }
    }
}

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { uid, place, pid, why } = self;
        let place = if place.is_empty() { String::new() } else { format!(" in {}", escape::line(place)) };
        write!(f, "the files of uid {uid}{place} were not read: ")?;
        if let Some(pid) = pid {
            write!(f, "process {pid} ")?;
        }
        f.write_str(why)
    }
}
