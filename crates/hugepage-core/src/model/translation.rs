//! What hardware counters tell of address translation in the processes of a server.

use crate::read::perf_counters::GroupCounts;

/// Counts of several processes, or why there are none.
pub type Counted = Result<Vec<GroupCounts>, NotCounted>;

/// What was counted within an interval. In each group the first event is cycles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TranslationCounts {
    /// Cycles in which a page walk was active: for loads, for stores.
    pub walks: Counted,
    /// Misses of the TLB of data.
    pub misses: Counted,
    /// Not all processes of the server were counted.
    pub leaves_out: bool,
}

/// Why an event was not counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotCounted {
    /// The machine has no such counter.
    NoCounter,
    /// Which event of this CPU counts cycles of page walks is not known here.
    UnknownEvent,
    /// The kernel refused, with its `kernel.perf_event_paranoid`, if that is known.
    Refused(Option<String>),
    /// The kernel or its configuration has no perf_event_open(2).
    NoSystemCall,
    /// There are not enough file descriptors for the counters.
    NoDescriptors,
    /// It failed otherwise: the error.
    Failed(String),
    /// None of the processes ran, or other programs use the counters.
    NotRun,
    /// There was no reason to: no processes are visible, or there is no column for the pages of shared memory.
    NotTried,
}

impl TranslationCounts {
    /// Nothing was tried.
    pub const NOT_TRIED: Self =
        Self { walks: Err(NotCounted::NotTried), misses: Err(NotCounted::NotTried), leaves_out: false };
}
