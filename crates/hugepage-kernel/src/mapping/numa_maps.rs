//! /proc/PID/numa_maps: how many pages of each NUMA node a process has mapped (numa(7)). Reading it walks page tables
//! under the process's mmap lock, so only that of this process is read, and only up to the wanted mapping.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};

use crate::mapping::maps::Mapping;
use crate::{Pages, ReadError, Root};

const SELF: &str = "/proc/self/numa_maps";

/// The pages of `mapping` that this process has mapped, by node, in pages of the mapping's own size.
pub fn pages_by_node(root: &Root, mapping: &Mapping) -> Result<BTreeMap<u32, Pages>, ReadError> {
    let mut nodes = BTreeMap::new();
    // A buffer of one page: the kernel walks as many mappings as fit, and one is wanted.
    for line in BufReader::with_capacity(4096, root.open(SELF)?).split(b'\n') {
        let line = line.map_err(|source| root.error("read", SELF, source))?;
        let line = String::from_utf8_lossy(&line);
        let Some((start, counts)) = parse(&line) else {
            return Err(root.content(SELF, format!("the line \"{line}\"")));
        };
        if start >= mapping.end {
            break;
        }
        if mapping.holds(start) {
            for (node, pages) in counts {
                let sum: &mut Pages = nodes.entry(node).or_default();
                *sum = sum.saturating_add(pages);
            }
        }
    }
    Ok(nodes)
}

/// One line: `7f6b40000000 default file=/anon_hugepage\040(deleted) huge dirty=44 N0=40 N1=4 kernelpagesize_kB=2048`.
fn parse(line: &str) -> Option<(u64, Vec<(u32, Pages)>)> {
    let mut words = line.split_ascii_whitespace();
    let start = u64::from_str_radix(words.next()?, 16).ok()?;
    let count = |word: &str| {
        let (node, pages) = word.strip_prefix('N')?.split_once('=')?;
        Some((node.parse().ok()?, Pages(pages.parse().ok()?)))
    };
    Some((start, words.filter_map(count).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines() {
        let huge = "7f6b40000000 interleave:0-1 file=/anon_hugepage\\040(deleted) huge dirty=44 N0=40 N1=4 kernelpagesize_kB=2048";
        assert_eq!(parse(huge), Some((0x7f6b_4000_0000, vec![(0, Pages(40)), (1, Pages(4))])));
        assert_eq!(parse("7f00 default file=/N1=7/x"), Some((0x7f00, vec![])));
        for line in ["", "x default"] {
            assert_eq!(parse(line), None, "{line}");
        }
    }
}
