//! The memory of one server, seen from another process: what its processes share, the kind of its pages, and their page tables.

use std::collections::BTreeMap;

use hugepage_assess::assessment::page_tables::PageTables;
use hugepage_assess::model::{Landing, RESIZABLE, Requested, Segment};
use hugepage_assess::pools;
use hugepage_kernel::mapping::maps::Mapping;
use hugepage_kernel::mapping::{procmap_query, smaps};
use hugepage_kernel::proc::namespace;
use hugepage_kernel::proc::rlimit::{self, Rlimit};
use hugepage_kernel::{Bytes, Notes, PageSize, ReadError};
use hugepage_oracle::sga;
use hugepage_server::segments::may_be_main;
use hugepage_server::server::thp_in_use;
use serde::{Deserialize, Serialize};

use super::context::InspectContext;
use super::discover::{DiscoveredKind, DiscoveredServer};

/// The memory of a server's processes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ObservedMemory {
    /// What they share; `None` if it may not be read.
    pub shared: Option<Vec<Mapping>>,
    /// The page tables of all processes.
    pub page_tables: PageTables,
    /// The memory that the server may lock.
    pub memlock: Option<Rlimit>,
}

impl InspectContext<'_> {
    /// The memory, and whether the SGA of an Oracle instance is files of /dev/shm, where that may be seen. `None` for a postgres
    /// program without shared memory, such as one that initialises or only answers a question.
    pub(super) fn observe(
        &self,
        found: &DiscoveredServer,
        notes: &mut Notes,
    ) -> Option<(ObservedMemory, Option<bool>)> {
        let memlock = notes.keep(rlimit::locked_memory(self.root, found.pid)).flatten();
        let base = self.base.unwrap_or_else(PageSize::base);
        let page_tables = match found.undecided {
            0 => PageTables::sum(found.processes.iter(), base),
            undecided => {
                notes.add(format!(
                    "{undecided} processes are of this instance or of another one with its SID: run this as root to count them"
                ));
                PageTables::default()
            }
        };
        let mut mappings = self.mappings(found, notes);
        let is_in_shm = match found.who {
            DiscoveredKind::Oracle(_) => mappings.as_mut().map(sga::keep_sga),
            DiscoveredKind::PostgreSql(_) if mappings.as_ref().is_some_and(Vec::is_empty) => return None,
            DiscoveredKind::PostgreSql(_) => None,
        };
        let shared = mappings.filter(|mappings| !mappings.is_empty());
        Some((ObservedMemory { shared, page_tables, memlock }, is_in_shm))
    }

    /// The mappings of one process stand for the whole server, because each of its processes attaches all of it.
    fn mappings(&self, found: &DiscoveredServer, notes: &mut Notes) -> Option<Vec<Mapping>> {
        let is_postgresql = matches!(found.who, DiscoveredKind::PostgreSql(_));
        let mappings = match self.sized_mappings(found.pid, is_postgresql, notes) {
            Ok(mappings) => mappings,
            Err(error) => {
                notes.add(match error {
                    ReadError::Io { source, path, .. } if source.kind() == std::io::ErrorKind::PermissionDenied => {
                        format!("\"{}\" may not be read: run this as root, or with CAP_SYS_PTRACE", path.display())
                    }
                    error => error.to_string(),
                });
                return None;
            }
        };
        match mappings.iter().max_by_key(|mapping| mapping.size()).filter(|_| is_postgresql) {
            Some(main) if main.inaccessible > Bytes(0) => {
                notes.add(RESIZABLE);
                None
            }
            Some(main) => Some(vec![main.clone()]),
            None => Some(mappings),
        }
    }

    /// What `pid` has mapped that may be its server's memory, with page sizes. No page table is walked.
    fn sized_mappings(&self, pid: i32, is_postgresql: bool, notes: &mut Notes) -> Result<Vec<Mapping>, ReadError> {
        let of_container = (!is_postgresql && namespace::container(self.root, pid).is_some())
            .then(|| notes.keep(self.devices.with_mounts_of(self.root, pid)))
            .flatten();
        let devices = of_container.as_ref().unwrap_or(&self.devices);
        let wanted = |mapping: &Mapping| match is_postgresql {
            true => may_be_main(mapping),
            false => sga::may_be_sga(mapping, devices, self.base),
        };
        let (mut mappings, is_sized) = procmap_query::with_page_sizes(self.root, pid, wanted)?;
        if is_sized {
            return Ok(mappings);
        }
        let starts: Vec<u64> = mappings.iter().map(|mapping| mapping.start).collect();
        // On a live host the kernel would walk all page tables of the process for this file.
        if let Some(sizes) = smaps::page_sizes(self.root, pid, &starts)? {
            mappings.iter_mut().zip(sizes).for_each(|(mapping, size)| mapping.page_size = size);
            return Ok(mappings);
        }
        let is_of_base_pages = |path: &str| path.starts_with("/dev/zero") || path.starts_with("/dev/shm/");
        for mapping in &mut mappings {
            let base = self.base.filter(|_| is_of_base_pages(&mapping.path));
            mapping.page_size = devices.page_size(mapping.device).or(base);
        }
        Ok(mappings)
    }

    /// The segment of the server `pid`, which asked for `requested`.
    pub(super) fn segment(
        &self,
        pid: i32,
        requested: &Requested,
        memory: &ObservedMemory,
        notes: &mut Notes,
    ) -> Option<Segment> {
        // Where the kernel lacks the size, nothing is rounded up to it.
        let has_pool = |size: &PageSize| pools::of_size(&self.pools, *size).is_some();
        let wanted = requested.huge_page_size.filter(has_pool).or(self.default);
        let mut segment = segment(memory.shared.as_ref()?, self.base?, wanted)?;
        // The server itself may walk its page tables for that; no other process should.
        if segment.landing == Landing::Base && thp_in_use(self.meminfo.as_ref()) {
            segment.landing = Landing::Unknown;
            notes.add(format!(
                "some shared memory of this host is in transparent huge pages; only a walk of its page tables could tell \
                 whether that of process {pid} is"
            ));
        }
        Some(segment)
    }
}

/// The bytes in pages of each size, ascending; pages of unknown size last, as `None`.
pub fn by_page_size(mappings: &[Mapping]) -> Vec<(Option<PageSize>, Bytes)> {
    let mut sums: BTreeMap<(bool, Option<PageSize>), Bytes> = BTreeMap::new();
    for mapping in mappings {
        let sum = sums.entry((mapping.page_size.is_none(), mapping.page_size)).or_default();
        *sum = sum.saturating_add(mapping.memory());
    }
    sums.into_iter().map(|((_, size), sum)| (size, sum)).collect()
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
    let page_size = in_huge.clone().max_by_key(|mapping| mapping.size()).and_then(|mapping| mapping.page_size);
    let small = |mapping: &Mapping| huge.or(page_size).is_some_and(|huge| mapping.size() < huge.bytes());
    let in_base = |mapping: &&Mapping| mapping.page_size == Some(base) && !(small(mapping) && page_size.is_some());
    let sum = |sizes: &mut dyn Iterator<Item = Bytes>| sizes.fold(Bytes(0), Bytes::saturating_add);
    let huge = page_size.or(huge);
    let rounded =
        |mapping: &Mapping| huge.map_or(mapping.memory(), |huge| huge.times(huge.pages_to_hold(mapping.memory())));
    let landing = match (page_size, mappings.iter().any(|mapping| in_base(&mapping))) {
        _ if mappings.iter().any(|mapping| mapping.page_size.is_none()) => Landing::Unknown,
        (Some(_), false) => Landing::Hugetlb,
        (Some(_), true) => Landing::Mixed,
        (None, _) => Landing::Base,
    };
    let counted = |mapping: &&Mapping| is_huge(mapping) || in_base(mapping) || mapping.page_size.is_none();
    Some(Segment {
        name: largest.name().to_owned(),
        size: sum(&mut mappings.iter().map(Mapping::memory)),
        to_reserve: sum(&mut mappings.iter().filter(counted).map(rounded)),
        in_huge_pages: sum(&mut in_huge.map(Mapping::memory)),
        page_size: page_size.or((landing == Landing::Base).then_some(base)),
        landing,
    })
}
