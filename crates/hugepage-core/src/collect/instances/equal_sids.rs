//! Whose the processes of a SID are, where several instances of a host have it: in containers, or in several Oracle homes.
//! A SID is unique only within one ORACLE_HOME.

use std::collections::BTreeSet;

use super::discover::{DiscoveredKind, DiscoveredServer, Member};
use super::oracle::SHM_FILES;
use crate::read::{Root, maps, process};

/// Gives each process to the instance with its SID. Where several have it, to the only one that shares its namespaces
/// (namespaces(7)) and its program, or else memory of the SGA; otherwise to none, and each counts it as undecided.
pub(super) fn assign(root: &Root, found: &mut [DiscoveredServer], members: Vec<Member>) {
    let with_sid = |found: &[DiscoveredServer], member: &Member| -> Vec<usize> {
        let has =
            |one: &DiscoveredServer| matches!(&one.who, DiscoveredKind::Oracle(whose) if *whose == member.instance);
        (0..found.len()).filter(|&at| has(&found[at])).collect()
    };
    let mut traits: Vec<Option<Traits>> = found.iter().map(|_| None).collect();
    for member in members {
        let mut candidates = with_sid(found, &member);
        if candidates.len() > 1 {
            let its = Traits::of(root, member.pid);
            for &at in &candidates {
                let of_pmon = || Traits::of(root, found[at].pid);
                traits[at].get_or_insert_with(of_pmon);
            }
            let of = |at: usize| traits[at].as_ref();
            candidates.retain(|&at| of(at).is_some_and(|pmon| pmon.may_be_of_one_instance(&its)));
            if candidates.len() > 1 {
                let segments = segments(root, member.pid);
                candidates.retain(|&at| of(at).is_some_and(|pmon| !pmon.segments(root).is_disjoint(&segments)));
            }
            if candidates.len() != 1 {
                with_sid(found, &member).into_iter().for_each(|at| found[at].undecided += 1);
                continue;
            }
        }
        if let [at] = candidates[..] {
            found[at].processes.push(member.status);
        }
    }
}

/// What the processes of one instance have in common. `None`: not visible, as to other users.
struct Traits {
    pid: i32,
    /// Its namespaces of processes, System V segments and mounts, then the file that it runs.
    links: [Option<String>; 4],
    segments: std::cell::OnceCell<BTreeSet<Segment>>,
}

/// Device and inode of a mapping: the shmid of a System V segment.
type Segment = ((u32, u32), u64);

impl Traits {
    fn of(root: &Root, pid: i32) -> Self {
        let links = ["ns/pid", "ns/ipc", "ns/mnt", "exe"].map(|name| process::link(root, pid, name).ok().flatten());
        // A program that was replaced by a patch is in the same home.
        let links = links.map(|link| Some(link?.trim_end_matches(" (deleted)").to_owned()));
        Self { pid, links, segments: std::cell::OnceCell::new() }
    }

    fn may_be_of_one_instance(&self, other: &Self) -> bool {
        let pairs = self.links.iter().zip(&other.links);
        pairs.filter_map(|(one, other)| one.as_ref().zip(other.as_ref())).all(|(one, other)| one == other)
    }

    fn segments(&self, root: &Root) -> &BTreeSet<Segment> {
        self.segments.get_or_init(|| segments(root, self.pid))
    }
}

/// The shared memory that a process attaches as parts of an SGA; empty if it is not visible.
fn segments(root: &Root, pid: i32) -> BTreeSet<Segment> {
    let is_sga = |mapping: &maps::Mapping| {
        let named = mapping.path.starts_with("/SYSV") || mapping.path.starts_with(SHM_FILES);
        mapping.shared && (named || super::memory::is_numbered(mapping))
    };
    let mappings = maps::read(root, &maps::path(pid), is_sga).unwrap_or_default();
    mappings.iter().map(|mapping| (mapping.device, mapping.inode)).collect()
}
