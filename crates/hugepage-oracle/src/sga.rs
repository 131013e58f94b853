//! The SGA of an Oracle instance: which memory it is, by the mappings of its processes, and the huge pages that one needs.

use hugepage_kernel::{Bytes, Mapping, PageSize, Pages};

use crate::shm_devices::Devices;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// Pages that an instance needs beyond its SGA: since 12.1 a start expects a few pages more than SGA_MAX_SIZE has.
pub(crate) const EXTRA: Pages = Pages(4);

/// Files of the SGA under Automatic Memory Management; the Managed Global Area (18c and later) has some there too.
const SHM_FILES: &str = "/dev/shm/ora_";

/// No SGA is smaller.
const MIN_SGA: Bytes = Bytes(16 * MIB);

/// Whether a mapping of an Oracle process may belong to the SGA: a System V segment, a file of /dev/shm or on hugetlbfs.
pub fn may_be_sga(mapping: &Mapping, devices: &Devices, base: Option<PageSize>) -> bool {
    mapping.shared
        && (mapping.is_sysv()
            || mapping.path.starts_with(SHM_FILES)
            || mapping.page_size > base
            || devices.page_size(mapping.device) > base)
}

/// Keeps the mappings of the SGA, and tells whether it is files of /dev/shm. Under Automatic Memory Management all of the SGA is but a
/// segment of one page; else such files belong to the Managed Global Area, which may be larger than the SGA.
pub fn keep_sga(mappings: &mut Vec<Mapping>) -> bool {
    let in_shm = |mapping: &&Mapping| mapping.path.starts_with(SHM_FILES);
    let files: Bytes = mappings.iter().filter(in_shm).map(Mapping::size).sum();
    let all: Bytes = mappings.iter().map(Mapping::size).sum();
    let segments = all.saturating_sub(files);
    let are_sga = files > segments && segments < MIN_SGA;
    if !are_sga {
        mappings.retain(|mapping| !in_shm(&mapping));
    }
    are_sga
}

/// The granule of an SGA: the unit in which shared memory grows, since 10.2.
pub fn granule(sga: Bytes) -> Bytes {
    /// The largest SGA in GB for a granule, and that granule in MB.
    const STEPS: [(u64, u64); 6] = [(1, 4), (8, 16), (16, 32), (32, 64), (64, 128), (128, 256)];
    const MAX_GRANULE_MIB: u64 = 512;
    let step = STEPS.into_iter().find(|(upto, _)| sga.0 <= upto * GIB);
    Bytes(step.map_or(MAX_GRANULE_MIB, |(_, granule)| granule) * MIB)
}

/// Whether `pages` are those of an SGA with SGA_MAX_SIZE `sga`, which the instance rounds.
pub(crate) fn are_of(pages: Pages, sga: Bytes, page: PageSize) -> bool {
    let most = page.pages_to_hold(rounded(sga)).saturating_add(EXTRA);
    pages >= page.pages_to_hold(sga) && pages <= most.saturating_add(EXTRA)
}

/// The size of an SGA with SGA_MAX_SIZE `sga`, rounded up as the instance does.
pub fn rounded(sga: Bytes) -> Bytes {
    let granule = granule(sga).0;
    Bytes(sga.0.div_ceil(granule).saturating_mul(granule))
}
