//! The page tables of an instance by number of connections, with base pages and with huge pages.

use hugepage_host::Instance;
use hugepage_kernel::PageSize;

use super::scale::{of_bytes, of_count, percent};
use crate::output::rows::InstanceRow;

/// The height of the chart in pixels.
const CHART_HEIGHT: u64 = 180;

/// The chart of one instance.
#[derive(Debug)]
pub struct PageTableChart<'a> {
    pub row: &'a InstanceRow,
    /// The number of connections at the right edge.
    pub connections: u64,
    pub on_base: Option<PageTableLine>,
    pub on_huge: Option<PageTableLine>,
    /// The sizes at the left edge, from its lower end to its upper one; none if neither line is known.
    pub sizes: Vec<u64>,
}

/// Page tables with one page size; they grow linearly with the connections.
#[derive(Debug)]
pub struct PageTableLine {
    pub page_size: u64,
    /// Bytes at the right edge.
    pub at_most: u64,
}

impl<'a> PageTableChart<'a> {
    pub fn new(instance: &Instance, row: &'a InstanceRow, base: Option<PageSize>, connections: u64) -> Self {
        let connections = connections.max(row.processes);
        let segment = instance.status.facts.segment.as_ref().map(|segment| segment.size);
        let line = |page_size: Option<PageSize>| {
            let at_most = instance.memory.page_tables.at(connections, segment?, page_size?)?;
            Some(PageTableLine { page_size: page_size?.bytes().0, at_most: at_most.0 })
        };
        let (on_base, on_huge) = (line(base), line(instance.status.facts.pool_state.huge_page_size));
        let largest = on_base.iter().chain(&on_huge).map(|line| line.at_most).max();
        let now = row.page_tables_total.unwrap_or_default().0;
        let sizes = largest.map(|largest| of_bytes(largest.max(now))).unwrap_or_default();
        Self { row, connections, on_base, on_huge, sizes }
    }

    /// The numbers of connections at the lower edge.
    pub fn counts(&self) -> Vec<u64> {
        of_count(self.connections)
    }

    /// Where a number of connections is.
    pub fn x(&self, connections: &u64) -> String {
        percent(*connections, self.connections)
    }

    /// The pixels from the upper edge to a size.
    pub fn y(&self, size: &u64) -> u64 {
        let top = self.sizes.last().copied().unwrap_or_default().max(1);
        let part = u128::from(*size) * u128::from(CHART_HEIGHT) / u128::from(top);
        CHART_HEIGHT.saturating_sub(u64::try_from(part).unwrap_or(CHART_HEIGHT))
    }
}
