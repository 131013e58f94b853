//! /proc/PID/numa_maps: the policy and the nodes of one mapping (numa(7)). Reading it walks the page tables of the process.

use std::io::{BufRead, BufReader};

use crate::{ReadError, Root};

/// What numa_maps says of one mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NumaMapping {
    /// The memory policy, such as `default` or `interleave:0-1`.
    pub policy: String,
    /// The nodes of the pages that the process has mapped, ascending.
    pub nodes: Vec<u32>,
}

impl NumaMapping {
    /// Parses what follows the address.
    fn parse(text: &str) -> Option<Self> {
        let mut words = text.split_ascii_whitespace();
        let policy = words.next()?.to_owned();
        let node = |word: &str| word.strip_prefix('N')?.split_once('=')?.0.parse().ok();
        let mut nodes: Vec<u32> = words.filter_map(node).collect();
        nodes.sort_unstable();
        Some(Self { policy, nodes })
    }
}

/// The mapping of `pid` that begins at `start`; `None` if there is none, or the kernel is one without NUMA.
pub fn of_mapping(root: &Root, pid: i32, start: u64) -> Result<Option<NumaMapping>, ReadError> {
    let path = format!("/proc/{pid}/numa_maps");
    let Some(file) = crate::if_there(root.open(&path))? else {
        return Ok(None);
    };
    let address = format!("{start:08x} ");
    for line in BufReader::new(file).split(b'\n') {
        let line = line.map_err(|source| root.error("read", &path, source))?;
        if let Some(rest) = String::from_utf8_lossy(&line).strip_prefix(&address) {
            return Ok(NumaMapping::parse(rest));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policy_and_nodes() {
        let tree = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(tree.path().join("proc/7")).unwrap();
        let text = "7f00 default anon=3 N0=3 kernelpagesize_kB=4\n\
                    7fa0c0000000 interleave:0-1 file=/dev/zero\\040(deleted) dirty=9 active=0 N1=4 N0=5 kernelpagesize_kB=4\n";
        std::fs::write(tree.path().join("proc/7/numa_maps"), text).unwrap();
        let root = Root::at(tree.path());
        let found = of_mapping(&root, 7, 0x7fa0_c000_0000).unwrap().unwrap();
        assert_eq!(
            (&*found.policy, &*found.nodes),
            ("interleave:0-1", &[0, 1][..])
        );
        assert_eq!(of_mapping(&root, 7, 0x7fa0).unwrap(), None);
        assert_eq!(of_mapping(&root, 8, 0x7fa0).unwrap(), None);
    }
}
