//! Whose the processes of a SID are, where several instances of a host have it: in containers, or in several Oracle homes.
//! A SID is unique only within one ORACLE_HOME.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

use hugepage_kernel::Root;
use hugepage_kernel::mapping::maps;
use hugepage_kernel::proc::process;

use crate::readers::OracleInstance;
use crate::sga::SHM_FILES;

/// Whose a process is.
#[derive(Debug, PartialEq, Eq)]
pub enum Whose {
    /// This server's.
    Server(usize),
    /// One of these.
    Undecided(Vec<usize>),
    /// No running instance has its SID.
    Nobody,
}

/// The PMONs of a host.
pub struct Pmons<'a> {
    root: &'a Root,
    by_instance: BTreeMap<OracleInstance, Vec<Pmon>>,
}

struct Pmon {
    server: usize,
    pid: i32,
    traits: OnceCell<Traits>,
}

impl Pmon {
    fn traits(&self, root: &Root) -> &Traits {
        self.traits.get_or_init(|| Traits::read(root, self.pid))
    }
}

impl<'a> Pmons<'a> {
    /// Sorts PMONs by their instances. `pmons`: the number of its server, its process id and its instance, of each.
    pub fn new(root: &'a Root, pmons: impl Iterator<Item = (usize, i32, OracleInstance)>) -> Self {
        let mut by_instance: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for (server, pid, instance) in pmons {
            by_instance.entry(instance).or_default().push(Pmon { server, pid, traits: OnceCell::new() });
        }
        Self { root, by_instance }
    }

    /// Whose the process `pid` of `instance` is: that of the instance with its SID. Where several have it, that of the only
    /// one that shares its namespaces (namespaces(7)) and its program, or else memory of the SGA.
    pub fn owner(&self, instance: &OracleInstance, pid: i32) -> Whose {
        let with_sid = match self.by_instance.get(instance).map(Vec::as_slice) {
            None | Some([]) => return Whose::Nobody,
            Some([only]) => return Whose::Server(only.server),
            Some(several) => several,
        };
        let its = Traits::read(self.root, pid);
        let mut left: Vec<_> = with_sid.iter().collect();
        left.retain(|pmon| pmon.traits(self.root).may_be_of_one_instance(&its));
        if left.len() > 1 {
            let attached = attached(self.root, pid);
            left.retain(|pmon| !pmon.traits(self.root).attached(self.root, pmon.pid).is_disjoint(&attached));
        }
        match left[..] {
            [only] => Whose::Server(only.server),
            _ => Whose::Undecided(with_sid.iter().map(|pmon| pmon.server).collect()),
        }
    }
}

/// What the processes of one instance have in common. `None`: not visible, as to other users.
struct Traits {
    /// Links to the namespaces of processes, System V segments and mounts, then to the file that it runs.
    links: [Option<String>; 4],
    attached: OnceCell<BTreeSet<Attached>>,
}

/// Device and inode of a mapping: the shmid of a System V segment.
type Attached = ((u32, u32), u64);

impl Traits {
    fn read(root: &Root, pid: i32) -> Self {
        let links = ["ns/pid", "ns/ipc", "ns/mnt", "exe"].map(|name| process::link(root, pid, name).ok().flatten());
        // A program that was replaced by a patch is in the same home.
        let links = links.map(|link| Some(link?.trim_end_matches(" (deleted)").to_owned()));
        Self { links, attached: OnceCell::new() }
    }

    fn may_be_of_one_instance(&self, other: &Self) -> bool {
        let pairs = self.links.iter().zip(&other.links);
        pairs.filter_map(|(one, other)| one.as_ref().zip(other.as_ref())).all(|(one, other)| one == other)
    }

    fn attached(&self, root: &Root, pid: i32) -> &BTreeSet<Attached> {
        self.attached.get_or_init(|| attached(root, pid))
    }
}

/// The shared memory that a process attaches as parts of an SGA; empty if it is not visible.
fn attached(root: &Root, pid: i32) -> BTreeSet<Attached> {
    let is_sga = |mapping: &maps::Mapping| mapping.shared && (mapping.is_sysv() || mapping.path.starts_with(SHM_FILES));
    let mappings = maps::read(root, &maps::path(pid), is_sga).unwrap_or_default();
    mappings.iter().map(|mapping| (mapping.device, mapping.inode)).collect()
}
