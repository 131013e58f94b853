//! /proc/meminfo: the host's memory, its page tables, and the default huge page size (proc(5)).

use crate::fields::{fields, first_number};
use crate::host::mounts;
use crate::memory::sysctl;
use crate::source::failures::noted;
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
    /// `ShmemHugePages`: shared memory in transparent huge pages, mapped or not.
    #[serde(default)]
    pub shmem_huge_pages: Option<Bytes>,
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
    /// `MemTotal` and `SwapTotal` together, also as lxcfs shows them.
    #[serde(default)]
    pub with_swap: Option<Bytes>,
    /// `SwapTotal` less `SwapFree`: what of swap is used.
    #[serde(default)]
    pub swap_used: Option<Bytes>,
    /// `CommitLimit` and `Committed_AS`.
    #[serde(default)]
    pub commit: Option<(Bytes, Bytes)>,
    /// `vm.overcommit_memory`; `None` if it could not be read.
    #[serde(default)]
    pub overcommit: Option<u8>,
    /// Whether lxcfs shows the file instead of the kernel: its numbers are of the container, or of the host, by line.
    pub is_of_lxcfs: bool,
}

/// The note on [`Meminfo::is_of_lxcfs`].
pub const LXCFS: &str =
    "lxcfs is mounted on /proc/meminfo: the memory and the page tables of the host are unknown";
const PATH: &str = "/proc/meminfo";

impl Meminfo {
    /// Reads /proc/meminfo; an error without `MemTotal`, because then it is another file.
    pub fn read(root: &Root) -> Result<Self, ReadError> {
        let mut meminfo = root.read_short(PATH, Self::parse)?;
        if meminfo.mem_total.is_none() {
            return Err(root.content(PATH, "it has no line MemTotal"));
        }
        meminfo.overcommit = match sysctl::running(root, "vm.overcommit_memory") {
            Ok(Some(mode)) => mode.parse().ok(),
            // A tree without the file is of a host with the default.
            Ok(None) => Some(0),
            Err(_) => None,
        };
        let is_strict = meminfo.overcommit == Some(2);
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
                with_swap: meminfo.with_swap,
                overcommit: meminfo.overcommit,
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
        let mut limit = None;
        let mut committed = None;
        let mut swap = None;
        let mut swap_free = None;
        for (name, value) in fields(text.as_bytes()) {
            let number = || first_number(value);
            let bytes = || number().map(Bytes::from_kib);
            let pages = || number().map(Pages);
            match name {
                b"CommitLimit" => limit = bytes(),
                b"Committed_AS" => committed = bytes(),
                b"SwapTotal" => swap = bytes(),
                b"SwapFree" => swap_free = bytes(),
                b"MemTotal" => meminfo.mem_total = bytes(),
                b"MemFree" => meminfo.mem_free = bytes(),
                b"MemAvailable" => meminfo.mem_available = bytes(),
                b"Shmem" => meminfo.shmem = bytes(),
                b"PageTables" => meminfo.page_tables = bytes(),
                b"ShmemPmdMapped" => meminfo.shmem_pmd_mapped = bytes(),
                b"ShmemHugePages" => meminfo.shmem_huge_pages = bytes(),
                b"Hugetlb" => meminfo.hugetlb = bytes(),
                b"Hugepagesize" => meminfo.huge_page_size = number().and_then(PageSize::from_kib),
                b"HugePages_Total" => meminfo.huge_pages_total = pages(),
                b"HugePages_Free" => meminfo.huge_pages_free = pages(),
                b"HugePages_Rsvd" => meminfo.huge_pages_rsvd = pages(),
                b"HugePages_Surp" => meminfo.huge_pages_surp = pages(),
                _ => {}
            }
        }
        let total = meminfo.mem_total;
        meminfo.with_swap = total.map(|total| total.saturating_add(swap.unwrap_or_default()));
        let used = |(swap, free): (Bytes, Bytes)| swap.saturating_sub(free);
        meminfo.swap_used = swap.zip(swap_free).map(used);
        meminfo.commit = limit.zip(committed);
        meminfo.commit_left = meminfo
            .commit
            .map(|(limit, committed)| limit.saturating_sub(committed));
        meminfo
    }
}

impl Meminfo {
    /// Whether `idle` is much memory for this host: a tenth of it.
    pub fn is_much(&self, idle: Bytes) -> bool {
        idle > Bytes(0)
            && self
                .mem_total
                .is_some_and(|total| idle >= total.percent(10))
    }

    /// Whether this host lacks the memory that is `idle` in a pool: less than a tenth of it is available, and less than that.
    pub fn lacks(&self, idle: Bytes) -> bool {
        let available = self.mem_available.zip(self.mem_total);
        available.is_some_and(|(available, total)| available < idle.min(total.percent(10)))
    }

    /// A sentence on what is available beside memory that is idle, with a blank before it; empty for a host that does not lack it.
    pub fn beside(&self, idle: Bytes) -> String {
        if !self.lacks(idle) {
            return String::new();
        }
        let [available, swap] = [self.mem_available, self.swap_used].map(Option::unwrap_or_default);
        format!(" Only {available} of memory is available, and {swap} of swap is used.")
    }
}

/// Whether `line`, such as `MemTotal`, is the host's where lxcfs shows the file: it takes the kernel's text, and replaces
/// what has a number of the container (proc_meminfo_read in proc_fuse.c of lxcfs).
pub fn is_hosts_under_lxcfs(line: &str) -> bool {
    [
        "PageTables",
        "CommitLimit",
        "Committed_AS",
        "Hugetlb",
        "Hugepagesize",
    ]
    .contains(&line)
        || line.starts_with("HugePages_")
}

/// Whether lxcfs shows /proc/meminfo instead of the kernel.
pub fn is_of_lxcfs(root: &Root) -> bool {
    // linux/magic.h
    const FUSE_SUPER_MAGIC: u64 = 0x6573_5546;
    if root.is_live() {
        // mountinfo would cost more than all of this file.
        return rustix::fs::statfs(PATH)
            .map_err(noted)
            .is_ok_and(|found| u64::try_from(found.f_type) == Ok(FUSE_SUPER_MAGIC));
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
            let text =
                format!("MemTotal: 64 kB\nCommitLimit: 32 kB\nCommitted_AS: {committed} kB\n");
            fs::write(tree.path().join("proc/meminfo"), text).unwrap();
            let path = tree.path().join("proc/sys/vm/overcommit_memory");
            overcommit.map_or_else(
                || fs::remove_file(&path).unwrap(),
                |value| fs::write(&path, value).unwrap(),
            );
            Meminfo::read(&Root::at(tree.path())).unwrap().commit_left
        };
        assert_eq!(
            [left(Some("2\n"), 30), left(Some("2\n"), 40)],
            [Some(Bytes(2048)), Some(Bytes(0))]
        );
        assert_eq!(
            [left(Some("0\n"), 30), left(Some("1\n"), 30), left(None, 30)],
            [None; 3]
        );
    }

    #[test]
    fn a_line_with_nonsense_costs_only_itself() {
        let meminfo = Meminfo::parse(
            "MemTotal: 20549012 kB\nPageTables: x kB\nno colon\nHugepagesize: 0 kB\nSwapFree:\n",
        );
        assert_eq!(meminfo.mem_total, Some(Bytes(20_549_012 * 1024)));
        assert_eq!(
            (
                meminfo.page_tables,
                meminfo.huge_page_size,
                meminfo.mem_free
            ),
            (None, None, None)
        );
    }
}
