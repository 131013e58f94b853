//! /proc/PID/smaps: the resident memory of a mapping. It walks page tables under the mmap lock: of this process only (proc(5)).

use std::io::{BufRead, BufReader};

use crate::mapping::maps::{self, Mapping};
use crate::source::root::if_there;
use crate::{Bytes, PageSize, ReadError, Root};

const SELF: &str = "/proc/self/smaps";

/// The resident memory of one mapping of this process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// `KernelPageSize`: the huge page size for hugetlb, else the base page size, also under THP.
    pub kernel_page_size: Option<PageSize>,
    /// `Rss`: resident in base or transparent huge pages; hugetlb pages are not counted.
    pub resident: Bytes,
    /// `ShmemPmdMapped`: the part that is mapped by whole transparent huge pages.
    pub pmd_mapped: Bytes,
    /// `Shared_Hugetlb` and `Private_Hugetlb`: resident in hugetlb pages.
    pub hugetlb: Bytes,
}

impl Usage {
    fn add(&mut self, line: &str) {
        let Some((name, value)) = line.split_once(':') else { return };
        let Some(kib) = value.split_ascii_whitespace().next().and_then(|word| word.parse().ok()) else { return };
        let into = match name {
            "KernelPageSize" => {
                self.kernel_page_size = PageSize::from_kib(kib);
                return;
            }
            "Rss" => &mut self.resident,
            "ShmemPmdMapped" => &mut self.pmd_mapped,
            "Shared_Hugetlb" | "Private_Hugetlb" => &mut self.hugetlb,
            _ => return,
        };
        *into = into.saturating_add(Bytes::from_kib(kib));
    }
}

/// The page sizes of the mappings of `pid` that begin at these addresses, in their order, from the smaps file of a
/// tree; `None` if there is none. Never for a live process: see above.
pub fn page_sizes(root: &Root, pid: i32, starts: &[u64]) -> Result<Option<Vec<Option<PageSize>>>, ReadError> {
    let path = format!("/proc/{pid}/smaps");
    if !root.is_tree() {
        return Ok(None);
    }
    let Some(text) = if_there(root.read(&path))? else { return Ok(None) };
    let mut sizes = vec![None; starts.len()];
    let mut current = None;
    for line in text.lines() {
        if let Some(head) = maps::parse(line) {
            current = starts.iter().position(|&start| start == head.start);
        } else if let Some(index) = current {
            let mut usage = Usage::default();
            usage.add(line);
            sizes[index] = usage.kernel_page_size.or(sizes[index]);
        }
    }
    Ok(Some(sizes))
}

/// The usage of one mapping of this process; `None` if it does not exist (any more).
pub fn usage_of(root: &Root, mapping: &Mapping) -> Result<Option<Usage>, ReadError> {
    Ok(of_all(root, std::slice::from_ref(mapping), &mut || {})?.remove(0))
}

/// The usage of several mappings of this process, in their order. `pulse` is called between mappings, so that a caller
/// can check for a cancel request. Reads only up to the last of them.
pub fn of_all(root: &Root, mappings: &[Mapping], pulse: &mut dyn FnMut()) -> Result<Vec<Option<Usage>>, ReadError> {
    let mut usages = vec![None; mappings.len()];
    let last = mappings.iter().map(|mapping| mapping.end).max().unwrap_or(0);
    let mut current = None;
    // A buffer of one page: the kernel walks as many mappings as fit, and few are wanted.
    for line in BufReader::with_capacity(4096, root.open(SELF)?).split(b'\n') {
        let line = line.map_err(|source| root.error("read", SELF, source))?;
        let line = String::from_utf8_lossy(&line);
        match maps::parse(&line) {
            Some(head) if head.start >= last => break,
            Some(head) => {
                pulse();
                current = mappings.iter().position(|mapping| mapping.holds(head.start));
            }
            None => {
                if let Some(index) = current {
                    usages[index].get_or_insert_with(Usage::default).add(&line);
                }
            }
        }
    }
    Ok(usages)
}
