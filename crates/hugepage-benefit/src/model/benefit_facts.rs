//! What has to be known of a server to assess what huge pages would save it.

use std::time::Duration;

use hugepage_assess::model::Landing;
use hugepage_kernel::{Bytes, PageSize};

use super::{FaultCost, FaultSample, PrivateTables, ProcessSample};

/// What was observed of a server within an interval.
#[derive(Clone, Copy, Debug)]
pub struct BenefitFacts<'a> {
    /// The processes at the start and at the end of the interval.
    pub samples: [&'a FaultSample; 2],
    /// Processes that were seen between them, and perhaps ended.
    pub newcomers: &'a [ProcessSample],
    /// The time between both.
    pub elapsed: Duration,
    /// The process that measures the cost of a fault in between: its own faults do not count.
    pub observer: i32,
    /// The processes of the second sample that serve clients.
    pub sessions: &'a [i32],
    /// The page tables of processes of the second sample for other memory than the main segment.
    pub private_tables: &'a PrivateTables,
    /// `None` if it could not be measured.
    pub cost: Option<FaultCost>,
    /// The size of the main segment.
    pub segment: Bytes,
    /// Where it is.
    pub landing: Landing,
    /// The page size of the segment; `None` if unknown.
    pub page_size: Option<PageSize>,
    /// The base page size of the kernel.
    pub base: PageSize,
    /// The huge page sizes of the kernel; `None` if they could not be determined.
    pub sizes: Option<&'a [PageSize]>,
    /// `None` if unknown.
    pub max_connections: Option<u64>,
    /// The memory of the host; `None` if unknown.
    pub memory: Option<Bytes>,
}
