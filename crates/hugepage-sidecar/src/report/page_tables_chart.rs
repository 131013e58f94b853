//! The page tables of an instance by number of connections, with base pages and with huge pages.

use hugepage_host::Instance;
use hugepage_kernel::{Bytes, PageSize};

use super::scale::{of_bytes, of_count, percent};
use crate::output::rows::InstanceRow;

/// The height of the chart in pixels.
pub const CHART_HEIGHT: u64 = 180;

/// The chart of one instance.
#[derive(Debug)]
pub struct PageTableChart {
    pub kind: String,
    pub name: String,
    pub processes: u64,
    pub page_tables: Option<Bytes>,
    pub shared_memory: Option<Bytes>,
    /// The number of connections at the right edge.
    pub connections: u64,
    pub on_base: Option<PageTableLine>,
    pub on_huge: Option<PageTableLine>,
    pub axes: Option<PageTableAxes>,
}

/// Page tables with one page size; they grow linearly with the connections.
#[derive(Debug)]
pub struct PageTableLine {
    pub page_size: u64,
    /// Bytes at the right edge.
    pub at_most: u64,
    /// Pixels from the upper edge at the right edge.
    pub y: u64,
}

/// The axes, and the current value.
#[derive(Debug)]
pub struct PageTableAxes {
    pub heights: Vec<(u64, String)>,
    pub places: Vec<(String, u64)>,
    pub now: Option<(String, u64)>,
}

impl PageTableChart {
    pub fn new(instance: &Instance, row: &InstanceRow, base: Option<PageSize>, connections: u64) -> Self {
        let connections = connections.max(row.processes);
        let segment = instance.status.facts.segment.as_ref().map(|segment| segment.size);
        let line = |page_size: Option<PageSize>| {
            let (page_size, segment) = (page_size?, segment?);
            let at = |many| instance.memory.page_tables.at(many, segment, page_size).map(|bytes| bytes.0);
            Some(PageTableLine { page_size: page_size.bytes().0, at_most: at(connections)?, y: 0 })
        };
        let (mut on_base, mut on_huge) = (line(base), line(instance.status.facts.pool_state.huge_page_size));
        let ends = || on_base.iter().chain(&on_huge).map(|line| line.at_most);
        let axes = ends().max().map(|largest| {
            let marks = of_bytes(largest.max(row.page_tables_total.unwrap_or_default().0));
            let top = marks.last().copied().unwrap_or(1);
            (PageTableAxes::new(&marks, top, connections, row), top)
        });
        if let Some((_, top)) = &axes {
            on_base.iter_mut().chain(&mut on_huge).for_each(|line| line.y = height(line.at_most, *top));
        }
        Self {
            kind: row.kind.clone(),
            name: row.name.clone(),
            processes: row.processes,
            page_tables: row.page_tables_total,
            shared_memory: row.status.shared_memory,
            connections,
            on_base,
            on_huge,
            axes: axes.map(|(axes, _)| axes),
        }
    }
}

impl PageTableAxes {
    fn new(marks: &[u64], top: u64, connections: u64, row: &InstanceRow) -> Self {
        Self {
            heights: marks
                .iter()
                .map(|mark| (height(*mark, top), if *mark == 0 { "0".to_owned() } else { Bytes(*mark).to_string() }))
                .collect(),
            places: of_count(connections).into_iter().map(|mark| (percent(mark, connections), mark)).collect(),
            now: row.page_tables_total.map(|tables| (percent(row.processes, connections), height(tables.0, top))),
        }
    }
}

/// The pixels from the upper edge to `value`, with `top` at that edge.
fn height(value: u64, top: u64) -> u64 {
    let part = u128::from(value) * u128::from(CHART_HEIGHT) / u128::from(top.max(1));
    CHART_HEIGHT.saturating_sub(u64::try_from(part).unwrap_or(CHART_HEIGHT))
}
