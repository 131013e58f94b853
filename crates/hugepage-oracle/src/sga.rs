//! Which memory of an Oracle instance is the SGA, by the mappings of its processes.

use hugepage_kernel::PageSize;
use hugepage_kernel::mapping::maps::Mapping;
use hugepage_kernel::mapping::shm_devices::Devices;

/// Files of the SGA under Automatic Memory Management; the Managed Global Area (18c and later) has some there too.
const SHM_FILES: &str = "/dev/shm/ora_";

/// No SGA is smaller.
const MIN_SGA: u64 = 16 << 20;

/// Whether a mapping of an Oracle process may belong to the SGA: a System V segment, a file of /dev/shm or on hugetlbfs.
pub fn may_be_sga(mapping: &Mapping, devices: &Devices, base: Option<PageSize>) -> bool {
    let on_hugetlbfs = || devices.page_size(mapping.device) > base;
    mapping.shared
        && (mapping.is_sysv() || mapping.path.starts_with(SHM_FILES) || mapping.page_size > base || on_hugetlbfs())
}

/// Keeps the mappings of the SGA, and tells whether it is files of /dev/shm. Under Automatic Memory Management all of the SGA is but a
/// segment of one page; else such files belong to the Managed Global Area, which may be larger than the SGA.
pub fn keep_sga(mappings: &mut Vec<Mapping>) -> bool {
    let in_shm = |mapping: &&Mapping| mapping.path.starts_with(SHM_FILES);
    let sum = |of: &mut dyn Iterator<Item = &Mapping>| of.map(|mapping| mapping.size().0).sum::<u64>();
    let files = sum(&mut mappings.iter().filter(in_shm));
    let segments = sum(&mut mappings.iter().filter(|mapping| !in_shm(mapping)));
    let are_sga = files > segments && segments < MIN_SGA;
    if !are_sga {
        mappings.retain(|mapping| !in_shm(&mapping));
    }
    are_sga
}
