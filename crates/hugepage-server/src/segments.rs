//! The shared memory that a PostgreSQL process maps.

use hugepage_assess::model::landing_of;
use hugepage_facts::{Landing, TransparentPages};
use hugepage_kernel::mapping::maps::{self, Mapping};
use hugepage_kernel::mapping::{own_mapping, smaps};
use hugepage_kernel::{Meminfo, Notes, Root};

use crate::transparent::has_transparent_pages;

hugepage_facts::words! {
    /// The purpose of a mapping.
    pub enum SegmentRole {
        /// The segment with the buffer pool.
        Main,
        /// The few bytes of System V memory that prevent two postmasters in one data directory (sysv_shmem.c).
        Interlock,
        /// Dynamic shared memory, as for parallel query (dsm_impl.c).
        Dynamic,
        /// Shared memory that other code in the process mapped.
        Other,
    }
}

/// One piece of shared memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MappedSegment {
    /// The purpose of the segment.
    pub role: SegmentRole,
    /// The place and the page size of the segment.
    pub mapping: Mapping,
    /// What kind of pages it has.
    pub landing: Landing,
}

/// All shared memory that this process maps. `main` and `interlock` are addresses inside those segments; `transparent`: what is known
/// of the transparent huge pages of the main segment.
pub fn rows(
    root: &Root,
    main: u64,
    interlock: u64,
    transparent: Option<&TransparentPages>,
    notes: &mut Notes,
) -> Vec<MappedSegment> {
    let in_use = notes
        .keep(Meminfo::read(root))
        .is_some_and(|meminfo| has_transparent_pages(&meminfo));
    let base = notes.keep(root.base_page_size());
    let mappings = notes
        .keep(maps::read(root, maps::SELF, is_shared_memory))
        .unwrap_or_default();
    let mut rows = Vec::with_capacity(mappings.len());
    for mapping in mappings {
        let role = role(&mapping, main, interlock);
        // A segment that was removed meanwhile is absent.
        if let Some(mapping) = notes.keep(own_mapping::at(root, mapping.start)).flatten() {
            let seen = transparent.filter(|_| role == SegmentRole::Main);
            let landing = base.map_or(Landing::Unknown, |base| {
                landing_of(&mapping, base, in_use, seen)
            });
            rows.push(MappedSegment {
                role,
                mapping,
                landing,
            });
        }
    }
    rows
}

/// The resident memory of each of these, in their order. `pulse` is called often enough to check for a cancel request.
pub fn usage(
    root: &Root,
    rows: &[MappedSegment],
    pulse: &mut dyn FnMut(),
    notes: &mut Notes,
) -> Vec<Option<smaps::Usage>> {
    let mappings: Vec<_> = rows.iter().map(|row| row.mapping.clone()).collect();
    let usage = notes.keep(smaps::of_process(root, "self", &mappings, pulse));
    usage.unwrap_or_else(|| vec![None; rows.len()])
}

/// Whether a mapping of a PostgreSQL process may be the main segment. If there are several, the largest one is (sysv_shmem.c).
pub fn may_be_main(mapping: &Mapping) -> bool {
    const NAMES: [&str; 3] = ["/anon_hugepage", "/dev/zero", "/SYSV"];
    mapping.shared && NAMES.iter().any(|name| mapping.path.starts_with(name))
}

/// Shared mappings of ordinary files, such as a library's cache, are not shared memory.
fn is_shared_memory(mapping: &Mapping) -> bool {
    const PLACES: [&str; 5] = [
        "/dev/zero",
        "/anon_hugepage",
        "/SYSV",
        "/dev/shm/",
        "/memfd:",
    ];
    mapping.shared
        && (PLACES.iter().any(|place| mapping.path.starts_with(place)) || is_dsm_file(mapping))
}

/// dynamic_shared_memory_type = mmap: files below the data directory.
fn is_dsm_file(mapping: &Mapping) -> bool {
    mapping.path.contains("/pg_dynshmem/mmap.")
}

fn role(mapping: &Mapping, main: u64, interlock: u64) -> SegmentRole {
    let is_in = |place: &str| mapping.path.starts_with(place);
    if mapping.holds(main) {
        SegmentRole::Main
    } else if mapping.holds(interlock) {
        SegmentRole::Interlock
    } else if is_in("/dev/shm/PostgreSQL.") || is_in("/SYSV") || is_dsm_file(mapping) {
        SegmentRole::Dynamic
    } else {
        SegmentRole::Other
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_and_what_is_shared_memory() {
        for (line, role_expected) in [
            (
                "1000-2000 rw-s 00000000 00:01 1 /dev/zero (deleted)",
                Some(SegmentRole::Main),
            ),
            (
                "3000-4000 rw-s 00000000 00:01 2 /SYSV009b2220 (deleted)",
                Some(SegmentRole::Interlock),
            ),
            (
                "5000-6000 rw-s 00000000 00:01 3 /SYSV00000001 (deleted)",
                Some(SegmentRole::Dynamic),
            ),
            (
                "5000-6000 rw-s 00000000 00:19 3 /dev/shm/PostgreSQL.1234",
                Some(SegmentRole::Dynamic),
            ),
            (
                "5000-6000 rw-s 00000000 08:01 3 /srv/data/pg_dynshmem/mmap.77",
                Some(SegmentRole::Dynamic),
            ),
            (
                "5000-6000 rw-s 00000000 00:10 3 /anon_hugepage (deleted)",
                Some(SegmentRole::Other),
            ),
            ("5000-6000 rw-p 00000000 00:01 3 /dev/zero (deleted)", None),
            (
                "5000-6000 r--s 00000000 08:01 3 /usr/lib/gconv/gconv-modules.cache",
                None,
            ),
        ] {
            let mapping = maps::parse(line).unwrap();
            let found = is_shared_memory(&mapping).then(|| role(&mapping, 0x1800, 0x3000));
            assert_eq!(found, role_expected, "{line}");
        }
    }
}
