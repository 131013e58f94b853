//! The NUMA nodes that a process may allocate from: `Mems_allowed_list` (cpuset(7)), and the policy of this one (set_mempolicy(2)).

use serde::{Deserialize, Serialize};

use crate::proc::process::unless_gone;
use crate::{KernelRelease, Notes, ReadError, Root, fields};

/// More nodes than any kernel has (`CONFIG_NODES_SHIFT` is 10 at most).
const MAX_NODES: usize = 1 << 10;
const WORD_BITS: usize = libc::c_ulong::BITS as usize;

/// The nodes from which huge pages may come, of those that the cpuset allows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum MemoryPolicy {
    /// All nodes. A preferred or interleaving policy falls back to all as well.
    Any,
    /// The listed nodes alone (`MPOL_BIND`).
    Bind(Vec<u32>),
    /// The policy could not be determined; that of another process is in its numa_maps, which walk page tables.
    Unknown,
}

/// `Mems_allowed_list` of the process `pid`, or of `self`, ascending; `Ok(None)` if there is no such process or line.
pub fn allowed_nodes(root: &Root, pid: &str) -> Result<Option<Vec<u32>>, ReadError> {
    let path = format!("/proc/{pid}/status");
    let line = |text: &str| {
        let list = fields::value(text, "Mems_allowed_list")?.trim();
        Some(
            node_list(list).ok_or_else(|| root.content(&path, format!("\"{list}\" is not a list"))),
        )
    };
    unless_gone(root.read_short(&path, line))?
        .flatten()
        .transpose()
}

/// A list such as `0-1,3`, ascending; `None` if it is something else.
pub fn node_list(text: &str) -> Option<Vec<u32>> {
    let mut nodes = Vec::new();
    for range in text.split(',').filter(|range| !range.is_empty()) {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        if last as usize >= MAX_NODES {
            return None;
        }
        nodes.extend(first..=last);
    }
    nodes.sort_unstable();
    nodes.dedup();
    Some(nodes)
}

/// The policy of this process, which its children inherit. `Unknown` for a root that is only files, where a filter
/// refuses the system call, and for a policy that a kernel before 5.9 does not count when it reserves huge pages.
pub fn own(root: &Root, notes: &mut Notes) -> MemoryPolicy {
    if !root.is_live() {
        return MemoryPolicy::Unknown;
    }
    match get_mempolicy() {
        Ok(MemoryPolicy::Bind(_))
            if KernelRelease::running(root).is_none_or(|release| release.is_before(5, 9, 0)) =>
        {
            notes.add(
                "this kernel does not check the NUMA memory policy when it reserves huge pages",
            );
            MemoryPolicy::Unknown
        }
        Ok(policy) => policy,
        // A kernel without NUMA.
        Err(error) if error.raw_os_error() == Some(libc::ENOSYS) => MemoryPolicy::Any,
        Err(error) => {
            notes.add(format!(
                "could not determine the NUMA memory policy: {error}"
            ));
            MemoryPolicy::Unknown
        }
    }
}

fn get_mempolicy() -> std::io::Result<MemoryPolicy> {
    let mut mode: libc::c_int = 0;
    let mut mask = [0 as libc::c_ulong; MAX_NODES / WORD_BITS + 1];
    // SAFETY: the kernel writes the mode and at most MAX_NODES bits of the mask.
    #[allow(unsafe_code)]
    let result = unsafe {
        libc::syscall(
            libc::SYS_get_mempolicy,
            &raw mut mode,
            mask.as_mut_ptr(),
            MAX_NODES,
            0usize,
            0usize,
        )
    };
    if result != 0 {
        return Err(std::io::Error::last_os_error());
    }
    // The upper bits are flags (linux/mempolicy.h, MPOL_MODE_FLAGS).
    if mode & 0xff != libc::MPOL_BIND {
        return Ok(MemoryPolicy::Any);
    }
    let is_set = |node: &usize| mask[node / WORD_BITS] >> (node % WORD_BITS) & 1 == 1;
    Ok(MemoryPolicy::Bind(
        (0..MAX_NODES)
            .filter(is_set)
            .filter_map(|node| u32::try_from(node).ok())
            .collect(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_nodes() {
        assert_eq!(node_list("0"), Some(vec![0]));
        assert_eq!(node_list("0-1,3,2-3"), Some(vec![0, 1, 2, 3]));
        assert_eq!(node_list(""), Some(vec![]));
        for text in ["x", "1-", "0-4294967295", "-1", "99999999999"] {
            assert_eq!(node_list(text), None, "{text}");
        }
    }

    #[test]
    fn this_process_may_use_its_nodes() {
        let root = Root::live();
        assert!(!allowed_nodes(&root, "self").unwrap().unwrap().is_empty());
        assert_eq!(allowed_nodes(&root, "2147483647").unwrap(), None);
        assert_eq!(
            own(&Root::at("/nowhere"), &mut Notes::default()),
            MemoryPolicy::Unknown
        );
        if let MemoryPolicy::Bind(nodes) = get_mempolicy().unwrap_or(MemoryPolicy::Any) {
            assert!(!nodes.is_empty());
        }
    }
}
