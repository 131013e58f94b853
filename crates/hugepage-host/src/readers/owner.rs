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
    /// The processes that it looks at: of no other one its door opens a file.
    #[serde(skip)]
    pub processes: Vec<i32>,
}

impl Owner {
    /// The user of this program, with the groups that it has.
    pub fn own() -> Self {
        Self {
            uid: geteuid().as_raw(),
            ..Self::default()
        }
    }

    /// The user whose files are nobody's; for a tree this program's own.
    pub fn nobody(root: &Root) -> Self {
        if is_alone(root) {
            Self::own()
        } else {
            Self {
                uid: NOBODY,
                groups: vec![NOBODY],
                ..Self::default()
            }
        }
    }

    /// The user `uid` with the groups of /etc/passwd and /etc/group.
    pub fn of_account(root: &Root, uid: u32) -> Self {
        if is_alone(root) {
            Self::own()
        } else {
            Self {
                uid,
                groups: accounts::groups(root, uid).unwrap_or_default(),
                ..Self::default()
            }
        }
    }

    /// The same user, who looks at these processes.
    pub(crate) fn of(&self, processes: impl IntoIterator<Item = i32>) -> Self {
        Self {
            processes: processes.into_iter().collect(),
            ..self.clone()
        }
    }

    /// The effective users of processes, each with its processes, apart for each container. Nobody stands for root and for unknown users;
    /// this program's own user for all where it can't become another one, and for those of a tree. The groups are those of its account,
    /// or of processes that are its alone: a setuid or setgid program has what its user has not. Containers come last, and first one
    /// user of each, because of containers and of users in one there may be any number.
    pub(crate) fn of_processes(
        root: &Root,
        processes: Vec<ProcessGlance>,
    ) -> Vec<(Self, Vec<ProcessGlance>)> {
        let is_alone = is_alone(root);
        let mut users: BTreeMap<(String, u32), (Vec<u32>, Vec<ProcessGlance>)> = BTreeMap::new();
        for process in processes {
            let found = process.users.as_ref();
            let found = found.filter(|found| !is_alone && found.effective != 0);
            let another = if is_alone { geteuid().as_raw() } else { NOBODY };
            let uid = found.map_or(another, |found| found.effective);
            let place = (!is_alone).then(|| container(root, process.pid)).flatten();
            let place = place.map(|(_, name)| name).unwrap_or_default();
            let (groups, all) = users.entry((place, uid)).or_default();
            let is_its_alone = found.filter(|found| found.users() == [uid; 3]);
            for gid in is_its_alone.iter().flat_map(|found| &found.groups) {
                groups.extend((!groups.contains(gid)).then_some(*gid));
            }
            all.push(process);
        }
        let owner = |((place, uid), (groups, all)): ((String, u32), (_, Vec<ProcessGlance>))| {
            let is_of_host = place.is_empty() && !is_alone;
            let of_account = is_of_host.then(|| Self::of_account(root, uid).groups);
            let owner = Self {
                uid,
                groups: of_account
                    .filter(|groups| !groups.is_empty())
                    .unwrap_or(groups),
                place,
                processes: all.iter().map(|process| process.pid).collect(),
            };
            (owner, all)
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

    /// Whether it is the user whose files are nobody's.
    pub(super) fn is_nobody(&self) -> bool {
        [NOBODY, USUAL_NOBODY].contains(&self.uid)
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
        || !geteuid().is_root()
            && !capabilities(None).is_ok_and(|sets| sets.permitted.contains(needed))
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
    pub(crate) fn new(owner: &Owner, pid: Option<Pid>, why: impl Into<String>) -> Self {
        Self {
            uid: owner.uid,
            place: owner.place.clone(),
            pid: pid.map(Pid::as_raw_pid),
            why: why.into(),
        }
    }

    /// Of what `owner`'s reader did read, and could not all.
    pub(crate) fn of_some(owner: &Owner) -> Self {
        Self::new(owner, None, "access to some was denied or failed")
    }

    /// Adds it, unless the same user's files were not read before, or some of the same place: it may have any number of users.
    pub fn add_to(self, all: &mut Vec<Self>) {
        let is_same = |other: &Self| {
            other.place == self.place && (other.uid == self.uid || !self.place.is_empty())
        };
        if !all.iter().any(is_same) {
            all.push(self);
        }
    }
}

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            uid,
            place,
            pid,
            why,
        } = self;
        let place = if place.is_empty() {
            String::new()
        } else {
            format!(" in {}", escape::line(place))
        };
        write!(f, "the files of uid {uid}{place} were not read: ")?;
        if let Some(pid) = pid {
            write!(f, "process {pid} ")?;
        }
        f.write_str(why)
    }
}
