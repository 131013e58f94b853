//! /sys/devices/system/node/nodeN/meminfo: the memory of one NUMA node.

use crate::fields::first_number;
use crate::{Bytes, ReadError, Root};

/// The memory of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeMemory {
    /// `MemTotal`.
    pub total: Bytes,
    /// `MemFree`.
    pub free: Bytes,
    /// `Active(file)` and `Inactive(file)`: file pages, which the kernel can free.
    pub file: Bytes,
}

impl NodeMemory {
    /// Free memory with half of the file pages, as the kernel counts them for `MemAvailable`.
    pub const fn available(self) -> Bytes {
        self.free.saturating_add(Bytes(self.file.0 / 2))
    }

    /// Parses lines such as `Node 0 MemFree: 512 kB`; `None` without the total or what is free.
    fn parse(text: &str) -> Option<Self> {
        let number = |name: &str| {
            let value = text.lines().find_map(|line| line.split_once(name))?.1;
            first_number(value.as_bytes()).map(Bytes::from_kib)
        };
        let file = |name| number(name).unwrap_or_default();
        Some(Self {
            total: number(" MemTotal:")?,
            free: number(" MemFree:")?,
            file: file(" Active(file):").saturating_add(file(" Inactive(file):")),
        })
    }
}

/// The memory of the node `node`.
pub fn memory(root: &Root, node: u32) -> Result<NodeMemory, ReadError> {
    let path = format!("/sys/devices/system/node/node{node}/meminfo");
    let parsed = root.read_short(&path, NodeMemory::parse)?;
    parsed.ok_or_else(|| root.content(&path, "it has no lines MemTotal and MemFree"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_node_has() {
        let text = "Node 1 MemTotal:  1000 kB\nNode 1 MemFree:  100 kB\nNode 1 Active(file): 20 kB\nNode 1 Inactive(file): 40 kB\n";
        let found = NodeMemory::parse(text).unwrap();
        assert_eq!(
            (found.total, found.available()),
            (Bytes(1000 << 10), Bytes(130 << 10))
        );
        assert_eq!(NodeMemory::parse("Node 1 MemTotal: 1000 kB\n"), None);
    }
}
