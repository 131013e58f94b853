//! /proc/buddyinfo: the contiguous free memory, by blocks (proc(5)).

use crate::{PageSize, Pages, ReadError, Root};

/// The free blocks of one zone, by order: `free[k]` blocks of 2^k base pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Zone {
    /// NUMA node.
    pub node: u32,
    /// `DMA`, `DMA32`, `Normal`, `Movable`.
    pub name: String,
    /// Free blocks by order.
    pub free: Vec<u64>,
}

/// Reads the zones of all nodes.
pub fn read(root: &Root) -> Result<Vec<Zone>, ReadError> {
    const PATH: &str = "/proc/buddyinfo";
    root.read(PATH)?.lines().map(|line| parse(line).ok_or_else(|| root.content(PATH, line))).collect()
}

/// Parses `Node 0, zone   Normal   5423   3819 ...`.
fn parse(line: &str) -> Option<Zone> {
    let (node, rest) = line.strip_prefix("Node ")?.split_once(',')?;
    let mut words = rest.trim_start().strip_prefix("zone")?.split_ascii_whitespace();
    let name = words.next()?.to_owned();
    let free = words.map(str::parse).collect::<Result<_, _>>().ok()?;
    Some(Zone { node: node.trim().parse().ok()?, name, free })
}

/// How many pages of `size` the free blocks of `node` (`None`: of all nodes) give without compaction.
///
/// The small DMA zone is left out, because the kernel does not use it for ordinary requests. On POWER it can be the only zone and have
/// all memory. `None` for a size above the largest block of the buddy allocator (1 GB pages), which this file does not cover.
pub fn ready(zones: &[Zone], node: Option<u32>, size: PageSize, base: PageSize) -> Option<Pages> {
    let pages_each = base.pages_within(size.bytes()).0;
    let order = usize::try_from(pages_each.checked_ilog2()?).ok()?;
    if zones.iter().all(|zone| zone.free.len() <= order) {
        return None;
    }
    let all_is_dma = zones.iter().all(|zone| zone.name == "DMA");
    let zones =
        zones.iter().filter(|zone| (all_is_dma || zone.name != "DMA") && node.is_none_or(|node| node == zone.node));
    Some(zones.fold(Pages(0), |sum, zone| sum.saturating_add(blocks_of(&zone.free, order))))
}

/// The blocks of `order` in the free blocks of that order and above. A block of each order holds two of the order below.
fn blocks_of(free: &[u64], order: usize) -> Pages {
    let mut each = 1u64;
    free.iter().skip(order).fold(Pages(0), |sum, count| {
        let blocks = Pages(count.saturating_mul(each));
        each = each.saturating_mul(2);
        sum.saturating_add(blocks)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "Node 0, zone      DMA      0      0      0      0      0      0      0      0      1      1      3\n\
         Node 0, zone   Normal   5423   3819   2720   1859   1257    733    444    294    215    158    307\n\
         Node 1, zone   Normal      1      0      0      0      0      0      0      0      0      2      0\n";

    #[test]
    fn larger_blocks_hold_several_pages() {
        let zones: Vec<_> = TEXT.lines().map(|line| parse(line).unwrap()).collect();
        let (base, huge, giant) =
            (PageSize::from_kib(4).unwrap(), PageSize::from_kib(2048).unwrap(), PageSize::from_kib(1 << 20).unwrap());
        assert_eq!(ready(&zones, Some(0), huge, base), Some(Pages(158 + 2 * 307)));
        assert_eq!(ready(&zones, Some(1), huge, base), Some(Pages(2)));
        assert_eq!(ready(&zones, None, huge, base), Some(Pages(158 + 2 * 307 + 2)));
        assert_eq!(ready(&zones, None, giant, base), None);
        assert_eq!(parse("Node 0, zone Normal x"), None);
    }
}
