//! The transparent huge pages of a server, read of its postmaster. Its page tables are walked for that, so only where the host has
//! shared memory in such pages.

use hugepage_facts::TransparentPages;
use hugepage_kernel::mapping::smaps;
use hugepage_kernel::memory::meminfo::Meminfo;
use hugepage_kernel::memory::thp;
use hugepage_kernel::{Bytes, Mapping, ReadError, Root};

/// Whether this host maps any shared memory by transparent huge pages, so that page tables are worth walking.
pub fn has_transparent_pages(meminfo: &Meminfo) -> bool {
    meminfo
        .shmem_pmd_mapped
        .is_some_and(|mapped| mapped > Bytes(0))
}

/// Those of `mapping`, by the `postmaster`, a name below /proc. `most_resident`: the most shared memory that a process of the server has.
/// `None` if it has no such mapping, or is a tree without the file.
pub fn transparent_pages(
    root: &Root,
    postmaster: &str,
    mapping: &Mapping,
    most_resident: Bytes,
    meminfo: &Meminfo,
) -> Result<Option<TransparentPages>, ReadError> {
    let usage = smaps::usage_in(root, postmaster, mapping)?;
    let size = thp::pmd_size(root)?;
    Ok(usage.map(|usage| TransparentPages {
        resident: usage.resident,
        pmd_mapped: usage.pmd_mapped,
        most_resident,
        of_host: meminfo.shmem_huge_pages,
        size,
    }))
}
