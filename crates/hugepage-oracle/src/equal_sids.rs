//! To which instance a process belongs, if several have the same SID: in containers, or in several Oracle homes.

use std::collections::BTreeMap;

use hugepage_kernel::Root;
use hugepage_kernel::proc::process;

use crate::readers::OracleInstance;

/// The PMONs of a host.
pub struct Pmons<'a> {
    root: &'a Root,
    /// The number of each one's server, and what its processes have in common.
    by_instance: BTreeMap<OracleInstance, Vec<(usize, Links)>>,
}

impl<'a> Pmons<'a> {
    /// Sorts PMONs by their instances. `pmons`: the number of its server, its process id and its instance, of each.
    pub fn new(root: &'a Root, pmons: impl Iterator<Item = (usize, i32, OracleInstance)>) -> Self {
        let mut by_instance: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for (server, pid, instance) in pmons {
            by_instance.entry(instance).or_default().push((server, links(root, pid)));
        }
        Self { root, by_instance }
    }

    /// The servers whose the process `pid` of `instance` may be: the one instance with its SID. Where several have it, the only one
    /// that shares its namespaces (namespaces(7)) and its program, or else all of them.
    pub fn owners(&self, instance: &OracleInstance, pid: i32) -> Vec<usize> {
        let with_sid = self.by_instance.get(instance).map_or(&[][..], Vec::as_slice);
        let servers = |of: &[&(usize, Links)]| of.iter().map(|(server, _)| *server).collect();
        let all: Vec<_> = with_sid.iter().collect();
        if all.len() < 2 {
            return servers(&all);
        }
        let its = links(self.root, pid);
        let alike: Vec<_> = all.iter().copied().filter(|(_, links)| may_be_of_one_instance(links, &its)).collect();
        servers(if alike.len() == 1 { &alike } else { &all })
    }
}

/// Links to the namespaces of processes, System V segments and mounts, then to the file that it runs. `None`: not visible.
type Links = [Option<String>; 4];

fn links(root: &Root, pid: i32) -> Links {
    let links = ["ns/pid", "ns/ipc", "ns/mnt", "exe"].map(|name| process::link(root, pid, name).ok().flatten());
    // A program that was replaced by a patch is in the same home.
    links.map(|link| Some(link?.trim_end_matches(" (deleted)").to_owned()))
}

fn may_be_of_one_instance(one: &Links, other: &Links) -> bool {
    let pairs = one.iter().zip(other);
    pairs.filter_map(|(one, other)| one.as_ref().zip(other.as_ref())).all(|(one, other)| one == other)
}
