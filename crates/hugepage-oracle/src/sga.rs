//! Which memory of an Oracle instance is the SGA, by the mappings of its processes or by its alert log.

use hugepage_assess::model::{Landing, Segment};
use hugepage_kernel::mapping::maps::Mapping;
use hugepage_kernel::mapping::shm_devices::Devices;
use hugepage_kernel::{Bytes, PageSize};

use crate::readers::LastStart;

/// Files of the SGA under Automatic Memory Management; the Managed Global Area (18c and later) has some there too.
pub const SHM_FILES: &str = "/dev/shm/ora_";

/// No SGA is smaller.
const MIN_SGA: u64 = 16 << 20;

/// Whether a mapping of an Oracle process may belong to the SGA: a System V segment by any of the kernel's names, a
/// file of /dev/shm, or a file on hugetlbfs.
pub fn may_be_sga(mapping: &Mapping, devices: &Devices, base: Option<PageSize>) -> bool {
    let on_hugetlbfs = || devices.page_size(mapping.device) > base;
    mapping.shared
        && (mapping.is_sysv() || mapping.path.starts_with(SHM_FILES) || mapping.page_size > base || on_hugetlbfs())
}

/// What the files of /dev/shm are that an instance has mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShmFiles {
    /// Whether the SGA is such files.
    pub are_sga: bool,
    /// The size of the Managed Global Area.
    pub managed_global_area: Bytes,
}

/// Keeps the mappings of the SGA. Under Automatic Memory Management all of the SGA is files of /dev/shm but a segment of
/// one page; else such files belong to the Managed Global Area, which may be larger than the SGA.
pub fn keep_sga(mappings: &mut Vec<Mapping>) -> ShmFiles {
    let in_shm = |mapping: &&Mapping| mapping.path.starts_with(SHM_FILES);
    let sum = |of: &mut dyn Iterator<Item = &Mapping>| of.map(|mapping| mapping.size().0).sum::<u64>();
    let files = sum(&mut mappings.iter().filter(in_shm));
    let segments = sum(&mut mappings.iter().filter(|mapping| !in_shm(mapping)));
    let are_sga = files > segments && segments < MIN_SGA;
    if !are_sga {
        mappings.retain(|mapping| !in_shm(&mapping));
    }
    ShmFiles { are_sga, managed_global_area: Bytes(if are_sga { 0 } else { files }) }
}

/// The SGA as the alert log shows it, if the mappings may not be read; `None` if the log does not show all of it.
pub fn logged_segment(start: &LastStart) -> Option<Segment> {
    let (mut in_base, mut huge) = (Bytes(0), Vec::new());
    for row in &start.page_sizes {
        let size = row.page_size.times(row.allocated?);
        match row.is_base {
            true => in_base = in_base.saturating_add(size),
            false => huge.push((row.page_size, size)),
        }
    }
    if let (Some(pages), true) = (&start.large_pages, start.page_sizes.is_empty()) {
        let (page_size, size) = (pages.page_size?, pages.page_size?.times(pages.used?));
        huge.push((page_size, size));
        if pages.percent? < 100 {
            in_base = start.sga?.saturating_sub(size);
        }
    }
    let in_huge_pages = huge.iter().fold(Bytes(0), |sum, (_, size)| sum.saturating_add(*size));
    let Some((page_size, _)) = huge.into_iter().max_by_key(|(_, size)| *size) else {
        // A table with base pages only, where the pool was empty.
        let base = start.page_sizes.iter().find(|row| row.is_base).map(|row| row.page_size);
        return (in_base > Bytes(0)).then(|| Segment {
            name: String::new(),
            size: in_base,
            reserved: in_base,
            to_reserve: in_base,
            in_huge_pages: Bytes(0),
            page_size: base,
            landing: Landing::Base,
        });
    };
    let size = in_base.saturating_add(in_huge_pages);
    let landing = match (in_huge_pages, in_base) {
        (Bytes(0), Bytes(0)) => return None,
        (Bytes(0), _) => Landing::Base,
        (_, rest) if rest < page_size.bytes() => Landing::Hugetlb,
        _ => Landing::Mixed,
    };
    let to_reserve = if landing == Landing::Hugetlb { in_huge_pages } else { size };
    Some(Segment {
        name: String::new(),
        size,
        reserved: size,
        to_reserve,
        in_huge_pages,
        page_size: (landing != Landing::Base).then_some(page_size),
        landing,
    })
}
