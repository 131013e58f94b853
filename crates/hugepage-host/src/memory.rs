//! The shared memory of one process of a server, seen from another process, and the kind of its pages.

use hugepage_assess::model::{Landing, Segment};
use hugepage_kernel::mapping::maps::Mapping;
use hugepage_kernel::mapping::shm_devices::Devices;
use hugepage_kernel::mapping::{procmap_query, smaps};
use hugepage_kernel::{Bytes, PageSize, ReadError, Root};
use serde::{Deserialize, Serialize};

/// The shared memory of a process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstanceMemory {
    /// The mappings, in the order of addresses.
    pub mappings: Vec<Mapping>,
}

/// The mappings of `pid` for which `wanted` holds, with their page sizes. No page table is walked.
pub fn mapped(
    root: &Root,
    pid: i32,
    devices: &Devices,
    wanted: impl Fn(&Mapping) -> bool,
) -> Result<InstanceMemory, ReadError> {
    let (mut mappings, is_sized) = procmap_query::with_page_sizes(root, pid, wanted)?;
    if is_sized {
        return Ok(InstanceMemory { mappings });
    }
    let starts: Vec<u64> = mappings.iter().map(|mapping| mapping.start).collect();
    // On a live host the kernel would walk all page tables of the process for this file.
    if let Some(sizes) = smaps::page_sizes(root, pid, &starts)? {
        mappings.iter_mut().zip(sizes).for_each(|(mapping, size)| mapping.page_size = size);
        return Ok(InstanceMemory { mappings });
    }
    let base = root.base_page_size().ok();
    for mapping in &mut mappings {
        mapping.page_size = devices.page_size(mapping.device).or(base.filter(|_| is_of_base_pages(mapping)));
    }
    Ok(InstanceMemory { mappings })
}

fn is_of_base_pages(mapping: &Mapping) -> bool {
    mapping.path.starts_with("/dev/zero") || mapping.path.starts_with("/dev/shm/")
}

impl InstanceMemory {
    /// The bytes in pages of each size, ascending; pages of unknown size last, as `None`.
    pub fn by_page_size(&self) -> Vec<(Option<PageSize>, Bytes)> {
        let mut sums: Vec<(Option<PageSize>, Bytes)> = Vec::new();
        for mapping in &self.mappings {
            match sums.iter_mut().find(|(size, _)| *size == mapping.page_size) {
                Some((_, sum)) => *sum = sum.saturating_add(mapping.memory()),
                None => sums.push((mapping.page_size, mapping.memory())),
            }
        }
        sums.sort_by_key(|(size, _)| (size.is_none(), *size));
        sums
    }

    /// All of it as one segment, on a host with base pages of `base` and huge pages of `huge`. `None` if there is no mapping.
    ///
    /// A mapping in base pages that is smaller than a huge page counts as intended: Oracle puts a few base pages beside
    /// the huge ones (EXPECTED_PAGES of 4K in the alert log since 12.1).
    pub fn segment(&self, base: PageSize, huge: Option<PageSize>) -> Option<Segment> {
        let largest = self.mappings.iter().max_by_key(|mapping| mapping.size())?;
        let is_huge = |mapping: &&Mapping| mapping.page_size.is_some_and(|size| size > base);
        let in_huge = self.mappings.iter().filter(is_huge);
        // Of several sizes, the one with the most memory.
        let page_size = in_huge.clone().max_by_key(|mapping| mapping.size()).and_then(|mapping| mapping.page_size);
        let small = |mapping: &Mapping| huge.or(page_size).is_some_and(|huge| mapping.size() < huge.bytes());
        let in_base = |mapping: &&Mapping| mapping.page_size == Some(base) && !(small(mapping) && page_size.is_some());
        let sum = |sizes: &mut dyn Iterator<Item = Bytes>| sizes.fold(Bytes(0), Bytes::saturating_add);
        let huge = page_size.or(huge);
        let rounded =
            |mapping: &Mapping| huge.map_or(mapping.memory(), |huge| huge.times(huge.pages_to_hold(mapping.memory())));
        let landing = match (page_size, self.mappings.iter().any(|mapping| in_base(&mapping))) {
            _ if self.mappings.iter().any(|mapping| mapping.page_size.is_none()) => Landing::Unknown,
            (Some(_), false) => Landing::Hugetlb,
            (Some(_), true) => Landing::Mixed,
            (None, _) => Landing::Base,
        };
        let counted = |mapping: &&Mapping| is_huge(mapping) || in_base(mapping) || mapping.page_size.is_none();
        Some(Segment {
            name: largest.name().to_owned(),
            size: sum(&mut self.mappings.iter().map(Mapping::memory)),
            to_reserve: sum(&mut self.mappings.iter().filter(counted).map(rounded)),
            in_huge_pages: sum(&mut in_huge.map(Mapping::memory)),
            page_size: page_size.or((landing == Landing::Base).then_some(base)),
            landing,
        })
    }
}
