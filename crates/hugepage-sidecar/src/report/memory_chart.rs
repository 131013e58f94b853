//! The use of the host's memory: parts that add up to all of it.

use hugepage_host::Survey;
use hugepage_kernel::{Bytes, Pages};

use super::scale::{percent, percentage};
use crate::output::host_rows::HostOutput;
use crate::output::rows::PoolOutput;

/// A part of the memory.
#[derive(Debug)]
pub struct MemoryPart {
    /// The number that identifies the part in the chart.
    pub number: usize,
    pub memory: MemoryShare,
    pub share: String,
    pub from: String,
    pub width: String,
    pub middle: String,
    /// Whether the number of the part fits into the chart.
    pub is_wide: bool,
}

/// All parts of the memory.
#[derive(Debug)]
pub struct MemoryChart {
    /// `MemTotal`.
    pub total: u64,
    /// `PageTables`.
    pub page_tables: u64,
    pub page_tables_share: String,
    /// The pools of all page sizes.
    pub huge_pages: u64,
    pub huge_pages_share: String,
    pub parts: Vec<MemoryPart>,
}

/// What a part of the memory is.
#[derive(Debug)]
pub struct MemoryShare {
    /// The CSS class.
    pub class: &'static str,
    pub label: String,
    /// A note next to the size of the part.
    pub remark: Option<String>,
    pub bytes: u64,
}

impl MemoryChart {
    /// `None` if /proc/meminfo lacks a required line.
    pub fn new(survey: &Survey, output: &HostOutput) -> Option<Self> {
        let meminfo = survey.host.meminfo.as_ref()?;
        let (total, free) = (meminfo.mem_total?.0, meminfo.mem_free?.0);
        let (tables, pools) = (meminfo.page_tables?.0, meminfo.hugetlb?.0);
        let mut shares = huge_pages(output);
        shares.extend(page_tables(output, tables));
        let in_base = output.instances.iter().filter_map(|row| row.status.base_page_bytes);
        let in_base: u64 = in_base.map(|size| size.0).fold(0, u64::saturating_add);
        let remark = (in_base > 0)
            .then(|| format!("includes the used part of {} of shared memory in base pages", Bytes(in_base)));
        let bytes = total.saturating_sub(free).saturating_sub(pools).saturating_sub(tables);
        shares.push(MemoryShare { class: "base", label: "Base pages in use".to_owned(), remark, bytes });
        let remark = meminfo.mem_available.map(|available| format!("{available} are available without swapping"));
        shares.push(MemoryShare { class: "free", label: "Free".to_owned(), remark, bytes: free });
        Some(Self {
            total,
            page_tables: tables,
            page_tables_share: percentage(tables, total),
            huge_pages: pools,
            huge_pages_share: percentage(pools, total),
            parts: placed(shares, total),
        })
    }
}

/// The pools: pages of each instance, pages of other processes, unused pages.
fn huge_pages(output: &HostOutput) -> Vec<MemoryShare> {
    let of_instances = output.instances.iter().filter_map(|row| {
        let bytes = row.status.pages_held?.0.saturating_mul(row.status.huge_page_size?.0);
        Some(MemoryShare {
            class: "huge",
            label: format!("Huge pages of {} {}", row.kind, row.name),
            remark: None,
            bytes,
        })
    });
    let of_pools = |pages: fn(&PoolOutput) -> Option<Pages>| {
        let pools = output.pools.iter().filter(|row| row.pool.node.is_none());
        let memory = pools.filter_map(|row| Some(row.pool.page_size.0.saturating_mul(pages(row)?.0)));
        memory.fold(0u64, u64::saturating_add)
    };
    let others = MemoryShare {
        class: "others",
        label: "Huge pages of other processes".to_owned(),
        remark: Some("used or reserved by processes of no instance above".to_owned()),
        bytes: of_pools(|row| row.held_by_others),
    };
    let unused = MemoryShare {
        class: "idle",
        label: "Huge pages, unused".to_owned(),
        remark: Some("in a pool; cannot be used for anything else".to_owned()),
        bytes: of_pools(|row| row.pool.available_hugepages.or(Some(row.pool.free_hugepages))),
    };
    of_instances.chain([others, unused]).filter(|share| share.bytes > 0).collect()
}

/// Page tables of each instance, and of the other processes.
fn page_tables(output: &HostOutput, tables: u64) -> Vec<MemoryShare> {
    let of_instances = output.instances.iter().filter_map(|row| {
        let remark = format!("{} processes", row.processes);
        Some(MemoryShare {
            class: "tables",
            label: format!("Page tables of {} {}", row.kind, row.name),
            remark: Some(remark),
            bytes: row.page_tables_total?.0,
        })
    });
    let mut shares: Vec<_> = of_instances.collect();
    // Since Linux 4.15 VmPTE counts page tables of all levels, PageTables only those of the lowest level.
    let by_instances: u64 = shares.iter().map(|share| share.bytes).fold(0, u64::saturating_add);
    let rest = tables.saturating_sub(by_instances);
    shares.push(MemoryShare {
        class: "tables",
        label: "Page tables of other processes".to_owned(),
        remark: None,
        bytes: rest,
    });
    shares.retain(|share| share.bytes > 0);
    shares
}

fn placed(shares: Vec<MemoryShare>, total: u64) -> Vec<MemoryPart> {
    // The counters are read one after the other, so that their sum may differ from the total.
    let whole = total.max(shares.iter().map(|share| share.bytes).fold(0, u64::saturating_add));
    let mut from = 0;
    let part = |(index, share): (usize, MemoryShare)| {
        let bytes = share.bytes;
        let part = MemoryPart {
            number: index + 1,
            memory: share,
            share: percentage(bytes, total),
            from: percent(from, whole),
            width: percent(bytes, whole),
            middle: percent(from.saturating_add(bytes / 2), whole),
            is_wide: bytes >= whole / 16,
        };
        from = from.saturating_add(bytes);
        part
    };
    shares.into_iter().enumerate().map(part).collect()
}
