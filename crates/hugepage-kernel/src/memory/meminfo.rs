//! /proc/meminfo: the host's memory, its page tables, and the default huge page size (proc(5)).

use crate::fields::{fields, first_number};
use crate::host::mounts;
use crate::{Bytes, PageSize, Pages, ReadError, Root};
use serde::{Deserialize, Serialize};

/// The lines of /proc/meminfo that are used; `None` if this kernel has no such line.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Meminfo {
    /// `MemTotal`: usable RAM, huge pages included.
    pub mem_total: Option<Bytes>,
    /// `MemFree`: RAM that nothing uses.
    pub mem_free: Option<Bytes>,
    /// `MemAvailable` (since 3.14): the memory that is available without swapping.
    pub mem_available: Option<Bytes>,
    /// `Shmem` (since 2.6.32): resident shared memory and tmpfs in base and transparent huge pages.
    pub shmem: Option<Bytes>,
    /// `PageTables`: the lowest level of all page tables of the host.
    pub page_tables: Option<Bytes>,
    /// `ShmemPmdMapped`: shared memory that is mapped by whole huge pages.
    pub shmem_pmd_mapped: Option<Bytes>,
    /// `Hugetlb` (since 4.19): the memory of all huge page pools, of every size.
    pub hugetlb: Option<Bytes>,
    /// `Hugepagesize`: the default huge page size.
    pub huge_page_size: Option<PageSize>,
    /// `HugePages_Total` of the default size alone.
    pub huge_pages_total: Option<Pages>,
    /// `HugePages_Free` of the default size alone.
    pub huge_pages_free: Option<Pages>,
    /// `HugePages_Rsvd` (since 2.6.17) of the default size alone.
    pub huge_pages_rsvd: Option<Pages>,
    /// `HugePages_Surp` (since 2.6.24) of the default size alone.
    pub huge_pages_surp: Option<Pages>,
    /// `CommitLimit` less `Committed_AS`: what processes may still be promised, if `vm.overcommit_memory` is 2. A larger pool takes
    /// of it, all of its pages at most (vm_commit_limit in mm/util.c). `None` also if that setting could not be read.
    pub commit_left: Option<Bytes>,
    /// Whether lxcfs shows the file instead of the kernel: its numbers are of the container, or of the host, by line.
    pub is_of_lxcfs: bool,
}

/// The note on [`Meminfo::is_of_lxcfs`].
pub const LXCFS: &str = "lxcfs is mounted on /proc/meminfo: the memory and the page tables of the host are unknown";
const OVERCOMMIT: &str = "/proc/sys/vm/overcommit_memory";
const PATH: &str = "/proc/meminfo";

impl Meminfo {
    /// Reads /proc/meminfo; an error without `MemTotal`, because then it is another file.
    pub fn read(root: &Root) -> Result<Self, ReadError> {
        let mut meminfo = root.read_short(PATH, Self::parse)?;
        if meminfo.mem_total.is_none() {
            return Err(root.content(PATH, "it has no line MemTotal"));
        }
        let is_strict = root.read_short(OVERCOMMIT, |text| text.trim() == "2").unwrap_or(false);
        meminfo.commit_left = meminfo.commit_left.filter(|_| is_strict);
        if is_of_lxcfs(root) {
            meminfo = Self {
                huge_page_size: meminfo.huge_page_size,
                huge_pages_total: meminfo.huge_pages_total,
                huge_pages_free: meminfo.huge_pages_free,
                huge_pages_rsvd: meminfo.huge_pages_rsvd,
                huge_pages_surp: meminfo.huge_pages_surp,
                hugetlb: meminfo.hugetlb,
                commit_left: meminfo.commit_left,
                is_of_lxcfs: true,
                // The rest is of the container, or of the host beside that of the container.
                ..Self::default()
            };
        }
        Ok(meminfo)
    }

    /// Parses the text of /proc/meminfo and skips unknown lines.
    pub fn parse(text: &str) -> Self {
        let mut meminfo = Self::default();
        let (mut limit, mut committed) = (None, None);
        let wanted =
            |start: &[u8; 4]| matches!(start, b"Comm" | b"MemT" | b"MemF" | b"MemA" | b"Shme" | b"Page" | b"Huge");
        for (name, value) in fields(text.as_bytes(), wanted) {
            let number = || first_number(value);
            let bytes = || number().map(Bytes::from_kib);
            let pages = || number().map(Pages);
            match name {
                b"CommitLimit" => limit = bytes(),
                b"Committed_AS" => committed = bytes(),
                b"MemTotal" => meminfo.mem_total = bytes(),
                b"MemFree" => meminfo.mem_free = bytes(),
                b"MemAvailable" => meminfo.mem_available = bytes(),
                b"Shmem" => meminfo.shmem = bytes(),
                b"PageTables" => meminfo.page_tables = bytes(),
                b"ShmemPmdMapped" => meminfo.shmem_pmd_mapped = bytes(),
                b"Hugetlb" => meminfo.hugetlb = bytes(),
                b"Hugepagesize" => meminfo.huge_page_size = number().and_then(PageSize::from_kib),
                b"HugePages_Total" => meminfo.huge_pages_total = pages(),
                b"HugePages_Free" => meminfo.huge_pages_free = pages(),
                b"HugePages_Rsvd" => meminfo.huge_pages_rsvd = pages(),
                b"HugePages_Surp" => meminfo.huge_pages_surp = pages(),
                _ => {}
            }
        }
        meminfo.commit_left = limit.zip(committed).map(|(limit, committed)| limit.saturating_sub(committed));
        meminfo
    }
}

/// Whether `line`, such as `MemTotal`, is the host's where lxcfs shows the file: it takes the kernel's text, and replaces
/// what has a number of the container (proc_meminfo_read in proc_fuse.c of lxcfs).
pub fn is_hosts_under_lxcfs(line: &str) -> bool {
    ["PageTables", "CommitLimit", "Committed_AS", "Hugetlb", "Hugepagesize"].contains(&line)
        || line.starts_with("HugePages_")
}

/// Whether lxcfs shows /proc/meminfo instead of the kernel.
pub fn is_of_lxcfs(root: &Root) -> bool {
    // linux/magic.h
    const FUSE_SUPER_MAGIC: u64 = 0x6573_5546;
    if root.is_live() {
        // mountinfo would cost more than all of this file.
        return rustix::fs::statfs(PATH).is_ok_and(|found| u64::try_from(found.f_type) == Ok(FUSE_SUPER_MAGIC));
    }
    mounts::seen_at(root, PATH).is_some_and(|mount| mount.kind == "fuse.lxcfs")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_can_be_promised_has_a_bound_with_strict_overcommit_alone() {
        let tree = tempfile::tempdir().unwrap();
        let left = |overcommit: Option<&str>, committed: u64| {
            fs::create_dir_all(tree.path().join("proc/sys/vm")).unwrap();
            let text = format!("MemTotal: 64 kB\nCommitLimit: 32 kB\nCommitted_AS: {committed} kB\n");
            fs::write(tree.path().join("proc/meminfo"), text).unwrap();
            let path = tree.path().join("proc/sys/vm/overcommit_memory");
            overcommit.map_or_else(|| fs::remove_file(&path).unwrap(), |value| fs::write(&path, value).unwrap());
            Meminfo::read(&Root::at(tree.path())).unwrap().commit_left
        };
        assert_eq!([left(Some("2\n"), 30), left(Some("2\n"), 40)], [Some(Bytes(2048)), Some(Bytes(0))]);
        assert_eq!([left(Some("0\n"), 30), left(Some("1\n"), 30), left(None, 30)], [None; 3]);
    }

    #[test]
    fn a_line_with_nonsense_costs_only_itself() {
        let meminfo =
            Meminfo::parse("MemTotal: 20549012 kB\nPageTables: x kB\nno colon\nHugepagesize: 0 kB\nSwapFree:\n");
        assert_eq!(meminfo.mem_total, Some(Bytes(20_549_012 * 1024)));
        assert_eq!((meminfo.page_tables, meminfo.huge_page_size, meminfo.mem_free), (None, None, None));
    }
}
