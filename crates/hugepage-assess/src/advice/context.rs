//! The input of the recommendations: the status of one server, its settings, and its host.

use std::borrow::Cow;

use hugepage_kernel::Bytes;

use crate::assessment::Status;
use crate::assessment::page_tables::PageTables;
use crate::pools::PoolRow;

/// One server on its host.
#[derive(Clone, Debug)]
pub struct AdviceContext {
    /// The assessment.
    pub status: Status,
    /// The size that the server gave its main segment, before rounding up to whole pages; `None` if unknown.
    pub shared_memory: Option<Bytes>,
    /// The page tables of its processes.
    pub page_tables: PageTables,
    /// All pools of the host.
    pub pools: Vec<PoolRow>,
    /// Whether the server is in a container.
    pub is_in_container: bool,
    /// `transparent_hugepage/enabled`.
    pub thp_enabled: Option<String>,
}

impl AdviceContext {
    /// The context as if the server asked for the page size that its hint tells to set, if it tells one.
    pub(super) fn with_planned_page_size(&self) -> Cow<'_, Self> {
        match self.status.with_planned_page_size() {
            Some(status) => Cow::Owned(Self { status, ..self.clone() }),
            None => Cow::Borrowed(self),
        }
    }
}
