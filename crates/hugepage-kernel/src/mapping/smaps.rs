//! /proc/PID/smaps: the resident memory of a mapping. It walks page tables under the mmap lock, so it is read of this process, and of
//! a postmaster, which has touched little itself, where the host has shared memory in transparent huge pages (proc(5)).

use std::io::{BufRead, BufReader};

use crate::mapping::maps::{self, Mapping};
use crate::{Bytes, PageSize, ReadError, Root};

/// The resident memory of one mapping of a process.
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
        let Some((name, value)) = line.split_once(':') else {
            return;
        };
        let Some(kib) = value
            .split_ascii_whitespace()
            .next()
            .and_then(|word| word.parse().ok())
        else {
            return;
        };
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

/// The usage of one mapping of this process; `None` if it does not exist (any more).
pub fn usage_of(root: &Root, mapping: &Mapping) -> Result<Option<Usage>, ReadError> {
    usage_in(root, "self", mapping)
}

/// The usage of one mapping of `process`, by its name below /proc.
pub fn usage_in(root: &Root, process: &str, mapping: &Mapping) -> Result<Option<Usage>, ReadError> {
    Ok(of_process(root, process, std::slice::from_ref(mapping), &mut || {})?.remove(0))
}

/// The usage of several mappings of `process`, in their order. `pulse` is called between mappings, so that a caller
/// can check for a cancel request. Reads only up to the last of them.
pub fn of_process(
    root: &Root,
    process: &str,
    mappings: &[Mapping],
    pulse: &mut dyn FnMut(),
) -> Result<Vec<Option<Usage>>, ReadError> {
    let path = format!("/proc/{process}/smaps");
    let mut usages = vec![None; mappings.len()];
    let last = mappings
        .iter()
        .map(|mapping| mapping.end)
        .max()
        .unwrap_or(0);
    let mut current = None;
    // A buffer of one page: the kernel walks as many mappings as fit, and few are wanted.
    for line in BufReader::with_capacity(4096, root.open(&path)?).split(b'\n') {
        let line = line.map_err(|source| root.error("read", &path, source))?;
        let line = String::from_utf8_lossy(&line);
        match maps::parse(&line) {
            Some(head) if head.start >= last => break,
            Some(head) => {
                pulse();
                current = mappings
                    .iter()
                    .position(|mapping| mapping.holds(head.start));
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
