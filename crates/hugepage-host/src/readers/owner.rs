//! The user that a reader becomes, and what was not read as one.

use std::collections::BTreeMap;

use hugepage_facts::{Owner, Unread};
use hugepage_kernel::Root;
use hugepage_kernel::host::accounts;
use rustix::process::{Pid, geteuid};
use rustix::thread::{CapabilitySet, capabilities};

use crate::control_group::container;
use crate::processes::ProcessGlance;

/// A user that has no files, no account and no process. Whoever runs as `nobody` could end a reader that did.
pub(super) const NOBODY: u32 = 0x7fff_fffd;
/// The number of `nobody` on every Linux.
pub(super) const USUAL_NOBODY: u32 = 65534;

/// Whether this program reads all as its own user: a tree, and where it is not root and can't become another one.
fn is_alone(root: &Root) -> bool {
    let needed = CapabilitySet::SETUID | CapabilitySet::SETGID;
    !root.shows_processes()
        || !geteuid().is_root()
            && !capabilities(None).is_ok_and(|sets| sets.permitted.contains(needed))
}

/// The user of this program, with the groups that it has.
pub fn own() -> Owner {
    Owner {
        uid: geteuid().as_raw(),
        ..Owner::default()
    }
}

/// The user whose files are nobody's; for a tree this program's own.
pub fn nobody(root: &Root) -> Owner {
    if is_alone(root) {
        own()
    } else {
        Owner {
            uid: NOBODY,
            groups: vec![NOBODY],
            ..Owner::default()
        }
    }
}

/// The user `uid` with the groups of /etc/passwd and /etc/group.
pub fn of_account(root: &Root, uid: u32) -> Owner {
    if is_alone(root) {
        own()
    } else {
        Owner {
            uid,
            groups: accounts::groups(root, uid).unwrap_or_default(),
            ..Owner::default()
        }
    }
}

/// The effective users of processes, each with its processes, apart for each container. Nobody stands for root and for unknown users;
/// this program's own user for all where it can't become another one, and for those of a tree. The groups are those of its account,
/// or of processes that are its alone: a setuid or setgid program has what its user has not. Containers come last, and first one
/// user of each, because of containers and of users in one there may be any number.
pub(crate) fn of_processes(
    root: &Root,
    processes: Vec<ProcessGlance>,
) -> Vec<(Owner, Vec<ProcessGlance>)> {
    let is_alone = is_alone(root);
    let nobody = nobody(root).uid;
    let mut users: BTreeMap<(String, u32), (Vec<u32>, Vec<ProcessGlance>)> = BTreeMap::new();
    for process in processes {
        let found = process.users.as_ref();
        let found = found.filter(|found| !is_alone && found.effective != 0);
        let uid = found.map_or(nobody, |found| found.effective);
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
        let its = is_of_host.then(|| of_account(root, uid).groups);
        let owner = Owner {
            uid,
            groups: its.filter(|groups| !groups.is_empty()).unwrap_or(groups),
            place,
            processes: all.iter().map(|process| process.pid).collect(),
        };
        (owner, all)
    };
    let mut owners: Vec<(Owner, _)> = users.into_iter().map(owner).collect();
    let mut turns = BTreeMap::<String, usize>::new();
    owners.sort_by_cached_key(|(owner, _)| {
        let turn = turns.entry(owner.place.clone()).or_default();
        *turn += usize::from(!owner.place.is_empty());
        *turn
    });
    owners
}

/// Whether it is the user whose files are nobody's.
pub(super) fn is_nobody(owner: &Owner) -> bool {
    [NOBODY, USUAL_NOBODY].contains(&owner.uid)
}

/// Whether it is another user than this program runs as.
pub fn is_another(owner: &Owner) -> bool {
    owner.uid != geteuid().as_raw()
}

/// What was not read for `owner`, by the process `pid` if one was started.
pub(crate) fn unread(owner: &Owner, pid: Option<Pid>, why: impl Into<String>) -> Unread {
    Unread {
        uid: owner.uid,
        place: owner.place.clone(),
        pid: pid.map(Pid::as_raw_pid),
        why: why.into(),
    }
}

/// What `owner`'s reader did read, and could not all.
pub(crate) fn unread_in_part(owner: &Owner) -> Unread {
    unread(owner, None, "access to some was denied or failed")
}
