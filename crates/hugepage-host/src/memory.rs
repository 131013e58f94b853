//! The memory of one server, seen from another process: what its processes share, the kind of its pages, and their page tables.

use std::collections::BTreeMap;

use hugepage_assess::assessment::page_tables;
use hugepage_assess::model::RESIZABLE;
use hugepage_facts::{ObservedMemory, PageTables};
use hugepage_kernel::mapping::{procmap_query, smaps};
use hugepage_kernel::proc::namespace;
use hugepage_kernel::proc::rlimit;
use hugepage_kernel::{Bytes, Mapping, Notes, PageSize, ReadError, if_there};
use hugepage_oracle::sga;
use hugepage_server::segments::may_be_main;
use hugepage_server::transparent::{has_transparent_pages, transparent_pages};

use super::context::InspectContext;
use super::discover::{DiscoveredKind, DiscoveredServer};

/// The memory, and whether the SGA of an Oracle instance is files of /dev/shm, where that may be seen. `None` for a postgres
/// program without shared memory, such as one that initialises or only answers a question.
pub(super) fn observe(
    host: &InspectContext<'_>,
    found: &DiscoveredServer,
    notes: &mut Notes,
) -> Option<(ObservedMemory, Option<bool>)> {
    let memlock = notes
        .keep(rlimit::locked_memory(host.root, found.pid))
        .flatten();
    let base = host.base.unwrap_or_else(PageSize::base);
    let page_tables = match found.undecided {
        0 => page_tables::sum(found.processes.iter(), base),
        undecided => {
            notes.add(format!(
                    "{undecided} processes are of this instance or of another one with its SID: run this as root to count them"
                ));
            PageTables::default()
        }
    };
    let mut mappings = mappings(host, found, notes);
    let is_in_shm = match found.who {
        DiscoveredKind::Oracle(_) => mappings.as_mut().map(sga::keep_sga),
        DiscoveredKind::PostgreSql(_) if mappings.as_ref().is_some_and(Vec::is_empty) => {
            return None;
        }
        DiscoveredKind::PostgreSql(_) => None,
    };
    let shared = mappings.filter(|mappings| !mappings.is_empty());
    let resident = found
        .processes
        .iter()
        .filter_map(|process| process.rss_shmem)
        .max()
        .unwrap_or_default();
    let in_use = host
        .meminfo
        .as_ref()
        .filter(|meminfo| has_transparent_pages(meminfo));
    let segment = shared.iter().flatten().next();
    let is_asked = |segment: &&Mapping| {
        segment.page_size == host.base && matches!(found.who, DiscoveredKind::PostgreSql(_))
    };
    let transparent = in_use
        .zip(segment.filter(is_asked))
        .and_then(|(meminfo, segment)| {
            let pid = found.pid.to_string();
            notes.keep(transparent_pages(
                host.root, &pid, segment, resident, meminfo,
            ))?
        });
    Some((
        ObservedMemory {
            shared,
            page_tables,
            memlock,
            resident,
            transparent,
        },
        is_in_shm,
    ))
}

/// The mappings of one process stand for the whole server, because each of its processes attaches all of it.
fn mappings(
    host: &InspectContext<'_>,
    found: &DiscoveredServer,
    notes: &mut Notes,
) -> Option<Vec<Mapping>> {
    let is_postgresql = matches!(found.who, DiscoveredKind::PostgreSql(_));
    let mappings = match sized_mappings(host, found.pid, is_postgresql, notes) {
        Ok(mappings) => mappings,
        Err(error) => {
            notes.add(match error {
                ReadError::Io { source, path, .. }
                    if source.kind() == std::io::ErrorKind::PermissionDenied =>
                {
                    format!(
                        "\"{}\" may not be read: run this on the host as root",
                        path.display()
                    )
                }
                error => error.to_string(),
            });
            return None;
        }
    };
    match mappings
        .iter()
        .max_by_key(|mapping| mapping.size())
        .filter(|_| is_postgresql)
    {
        Some(main) if main.inaccessible > Bytes(0) => {
            notes.add(RESIZABLE);
            None
        }
        Some(main) => Some(vec![main.clone()]),
        None => Some(mappings),
    }
}

/// What `pid` has mapped that may be its server's memory, with page sizes. No page table is walked.
fn sized_mappings(
    host: &InspectContext<'_>,
    pid: i32,
    is_postgresql: bool,
    notes: &mut Notes,
) -> Result<Vec<Mapping>, ReadError> {
    let of_container = (!is_postgresql && namespace::container(host.root, pid).is_some())
        .then(|| notes.keep(host.devices.with_mounts_of(host.root, pid)))
        .flatten();
    let devices = of_container.as_ref().unwrap_or(&host.devices);
    let wanted = |mapping: &Mapping| {
        if is_postgresql {
            may_be_main(mapping)
        } else {
            sga::may_be_sga(mapping, devices, host.base)
        }
    };
    let (mut mappings, is_sized) = procmap_query::with_page_sizes(host.root, pid, wanted)?;
    if is_sized {
        return Ok(mappings);
    }
    // On a live host the kernel would walk all page tables of the process for this file.
    let name = pid.to_string();
    if host.root.is_tree()
        && let Some(usages) = if_there(smaps::of_process(host.root, &name, &mappings, &mut || {}))?
    {
        for (mapping, usage) in mappings.iter_mut().zip(usages) {
            mapping.page_size = usage.and_then(|usage| usage.kernel_page_size);
        }
        return Ok(mappings);
    }
    let is_of_base_pages =
        |path: &str| path.starts_with("/dev/zero") || path.starts_with("/dev/shm/");
    for mapping in &mut mappings {
        let base = host.base.filter(|_| is_of_base_pages(&mapping.path));
        mapping.page_size = devices.page_size(mapping.device).or(base);
    }
    Ok(mappings)
}

/// The bytes in pages of each size, ascending; pages of unknown size last, as `None`.
pub fn by_page_size(mappings: &[Mapping]) -> Vec<(Option<PageSize>, Bytes)> {
    let mut sums: BTreeMap<(bool, Option<PageSize>), Bytes> = BTreeMap::new();
    for mapping in mappings {
        let sum = sums
            .entry((mapping.page_size.is_none(), mapping.page_size))
            .or_default();
        *sum = sum.saturating_add(mapping.memory());
    }
    sums.into_iter()
        .map(|((_, size), sum)| (size, sum))
        .collect()
}
