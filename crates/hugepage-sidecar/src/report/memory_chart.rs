//! The use of the host's memory: parts that add up to all of it.

use hugepage_host::Survey;
use hugepage_kernel::{Bytes, Pages};

use super::scale::{percent, percentage};
use crate::output::host_rows::HostOutput;
use crate::output::rows::PoolOutput;

/// All parts of the memory.
#[derive(Debug)]
pub struct MemoryChart {
    /// `MemTotal`.
    pub total: u64,
    /// `PageTables`.
    pub page_tables: u64,
    /// The pools of all page sizes.
    pub huge_pages: u64,
    pub parts: Vec<MemoryPart>,
}

/// A part of the memory.
#[derive(Debug)]
pub struct MemoryPart {
    /// The CSS class.
    pub class: &'static str,
    pub label: String,
    /// A note next to the size of the part.
    pub remark: Option<String>,
    pub bytes: u64,
    /// The size of the parts before it.
    pub from: u64,
}

impl MemoryPart {
    fn new(class: &'static str, label: impl Into<String>, remark: Option<String>, bytes: u64) -> Self {
        Self { class, label: label.into(), remark, bytes, from: 0 }
    }
}

impl MemoryChart {
    /// `None` if /proc/meminfo lacks a required line.
    pub fn new(survey: &Survey, output: &HostOutput) -> Option<Self> {
        let meminfo = survey.host.meminfo.as_ref()?;
        let (total, free) = (meminfo.mem_total?.0, meminfo.mem_free?.0);
        let (tables, pools) = (meminfo.page_tables?.0, meminfo.hugetlb?.0);
        let in_base = output.instances.iter().filter_map(|row| row.status.base_page_bytes);
        let in_base = in_base.fold(Bytes(0), Bytes::saturating_add);
        let of_base =
            (in_base > Bytes(0)).then(|| format!("includes the used part of {in_base} of shared memory in base pages"));
        let bytes = total.saturating_sub(free).saturating_sub(pools).saturating_sub(tables);
        let of_free = meminfo.mem_available.map(|available| format!("{available} are available without swapping"));
        let mut parts = huge_pages(output);
        parts.extend(of_page_tables(output, tables));
        parts.retain(|part| part.bytes > 0);
        parts.push(MemoryPart::new("base", "Base pages in use", of_base, bytes));
        parts.push(MemoryPart::new("free", "Free", of_free, free));
        let mut from = 0;
        for part in &mut parts {
            part.from = from;
            from = from.saturating_add(part.bytes);
        }
        Some(Self { total, page_tables: tables, huge_pages: pools, parts })
    }

    /// The place in the chart after so many bytes, and the width of a part of that size.
    pub fn x(&self, bytes: &u64) -> String {
        percent(*bytes, self.whole())
    }

    /// The middle of a part that is wide enough for its number.
    pub fn middle(&self, part: &MemoryPart) -> Option<String> {
        (part.bytes >= self.whole() / 16).then(|| self.x(&part.from.saturating_add(part.bytes / 2)))
    }

    /// The share of memory as text.
    pub fn share(&self, bytes: &u64) -> String {
        percentage(*bytes, self.total)
    }

    /// The counters are read one after the other, so that their sum may differ from the total.
    fn whole(&self) -> u64 {
        self.total.max(self.parts.last().map_or(0, |part| part.from.saturating_add(part.bytes)))
    }
}

/// The pools: pages of each instance, pages of other processes, unused pages.
fn huge_pages(output: &HostOutput) -> Vec<MemoryPart> {
    let of_instances = output.instances.iter().filter_map(|row| {
        let bytes = row.status.pages_held?.0.saturating_mul(row.status.huge_page_size?.0);
        Some(MemoryPart::new("huge", format!("Huge pages of {} {}", row.kind, row.name), None, bytes))
    });
    let of_pools = |pages: fn(&PoolOutput) -> Option<Pages>| {
        let pools = output.pools.iter().filter(|row| row.pool.node.is_none());
        let memory = pools.filter_map(|row| Some(row.pool.page_size.0.saturating_mul(pages(row)?.0)));
        memory.fold(0u64, u64::saturating_add)
    };
    let remark = |text: &str| Some(text.to_owned());
    let others = MemoryPart::new(
        "others",
        "Huge pages of other processes",
        remark("used or reserved by processes of no instance above"),
        of_pools(|row| row.held_by_others),
    );
    let unused = MemoryPart::new(
        "idle",
        "Huge pages, unused",
        remark("in a pool; cannot be used for anything else"),
        of_pools(|row| row.pool.available_hugepages.or(Some(row.pool.free_hugepages))),
    );
    of_instances.chain([others, unused]).collect()
}

/// Page tables of each instance, and of the other processes.
fn of_page_tables(output: &HostOutput, tables: u64) -> Vec<MemoryPart> {
    let of_instances = output.instances.iter().filter_map(|row| {
        let (label, remark) =
            (format!("Page tables of {} {}", row.kind, row.name), format!("{} processes", row.processes));
        Some(MemoryPart::new("tables", label, Some(remark), row.page_tables_total?.0))
    });
    let mut parts: Vec<_> = of_instances.collect();
    // Since Linux 4.15 VmPTE counts page tables of all levels, PageTables only those of the lowest level.
    let by_instances = parts.iter().map(|part| part.bytes).fold(0, u64::saturating_add);
    parts.push(MemoryPart::new("tables", "Page tables of other processes", None, tables.saturating_sub(by_instances)));
    parts
}
