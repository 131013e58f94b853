//! The page tables of an instance at a number of connections, in base pages and in huge pages.

use hugepage_host::Instance;
use hugepage_kernel::PageSize;

use crate::output::rows::InstanceRow;

/// The page tables of one instance.
#[derive(Debug)]
pub struct PageTablesOf<'a> {
    pub row: &'a InstanceRow,
    pub connections: u64,
    pub on_base: Option<PageTableSize>,
    pub on_huge: Option<PageTableSize>,
}

/// Page tables with one page size.
#[derive(Debug)]
pub struct PageTableSize {
    pub page_size: u64,
    /// Bytes, if each connection has used all shared memory.
    pub at_most: u64,
}

impl<'a> PageTablesOf<'a> {
    pub fn new(instance: &Instance, row: &'a InstanceRow, base: Option<PageSize>, connections: u64) -> Self {
        let connections = connections.max(row.processes);
        let size = |page_size: Option<PageSize>| {
            let segment = instance.status.facts.segment_size()?;
            let at_most = instance.memory.page_tables.at(connections, segment, page_size?)?;
            Some(PageTableSize { page_size: page_size?.bytes().0, at_most: at_most.0 })
        };
        let (on_base, on_huge) = (size(base), size(instance.status.facts.pool_state.huge_page_size));
        Self { row, connections, on_base, on_huge }
    }
}
