//! The shared memory of one server as a segment: how large it is, and in which pages it landed.

use hugepage_facts::{HostFacts, Landing, ServerFacts};

use hugepage_assess::model::{Requested, Segment, landing_seen};
use hugepage_kernel::{Bytes, Mapping, Notes, PageSize};

/// The segment of a server that asked for `requested`; `None` if it is not visible.
pub(super) fn segment_of(
    host: &HostFacts,
    server: &ServerFacts,
    requested: &Requested,
    notes: &mut Notes,
) -> Option<Segment> {
    // Where the kernel lacks the size, nothing is rounded up to it.
    let has_pool = |size: &PageSize| host.pool(*size).is_some();
    let wanted = requested
        .huge_page_size
        .filter(has_pool)
        .or(host.default_page_size());
    let memory = &server.memory;
    let mut segment = segment(memory.shared.as_ref()?, host.base_page_size?, wanted)?;
    let meminfo = host.meminfo.as_ref();
    let in_thp = meminfo.and_then(|meminfo| meminfo.shmem_pmd_mapped);
    let in_thp = in_thp.unwrap_or_default();
    if segment.landing != Landing::Base {
        return Some(segment);
    }
    if let Some(seen) = &memory.transparent {
        segment.landing = landing_seen(seen, segment.size);
    } else if in_thp > Bytes(0) && in_thp >= memory.resident.percent(1) {
        // Less than a hundredth counts as none.
        segment.landing = Landing::Unknown;
        notes.add(format!(
            "some shared memory of this host is in transparent huge pages; only a walk of its page tables could tell \
             whether that of process {} is",
            server.id.pid
        ));
    }
    Some(segment)
}

/// All of it as one segment, on a host with base pages of `base` and huge pages of `huge`. `None` if there is no mapping.
///
/// A mapping in base pages that is smaller than a huge page counts as intended: Oracle puts a few base pages beside
/// the huge ones (EXPECTED_PAGES of 4K in the alert log since 12.1).
fn segment(mappings: &[Mapping], base: PageSize, huge: Option<PageSize>) -> Option<Segment> {
    let largest = mappings.iter().max_by_key(|mapping| mapping.size())?;
    let is_huge = |mapping: &&Mapping| mapping.page_size.is_some_and(|size| size > base);
    let in_huge = mappings.iter().filter(is_huge);
    // Of several sizes, the one with the most memory.
    let page_size = in_huge
        .clone()
        .max_by_key(|mapping| mapping.size())
        .and_then(|mapping| mapping.page_size);
    let small = |mapping: &Mapping| {
        let huge = huge.or(page_size).map_or(Bytes(0), PageSize::bytes);
        mapping.size() < huge.min(largest.size())
    };
    let in_base = |mapping: &&Mapping| mapping.page_size == Some(base) && !small(mapping);

    let huge = page_size.or(huge);
    let rounded = |mapping: &Mapping| {
        huge.map_or(mapping.memory(), |huge| {
            huge.times(huge.pages_to_hold(mapping.memory()))
        })
    };
    let landing = match (page_size, mappings.iter().any(|mapping| in_base(&mapping))) {
        _ if mappings.iter().any(|mapping| mapping.page_size.is_none()) => Landing::Unknown,
        (Some(_), false) => Landing::Hugetlb,
        (Some(_), true) => Landing::Mixed,
        (None, _) => Landing::Base,
    };
    let counted =
        |mapping: &&Mapping| is_huge(mapping) || in_base(mapping) || mapping.page_size.is_none();
    Some(Segment {
        name: largest.name().to_owned(),
        size: mappings.iter().map(Mapping::memory).sum(),
        to_reserve: mappings.iter().filter(counted).map(rounded).sum(),
        in_huge_pages: in_huge.map(Mapping::memory).sum(),
        page_size: page_size.or((landing == Landing::Base).then_some(base)),
        landing,
    })
}
