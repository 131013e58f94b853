//! What is known of one server and its host: the input of every assessment.

use hugepage_facts::{Landing, Past, PoolHolder};
use hugepage_kernel::memory::meminfo::Meminfo;
use hugepage_kernel::memory::pool::Pool;
use hugepage_kernel::next_boot::PoolAtBoot;
use hugepage_kernel::{Bytes, PageSize, Pages};

use crate::model::{
    CrashRecovery, CurrentStart, PagesOfStrangers, Pending, PoolState, Requested, Segment,
};

/// All that an assessment needs, gathered before it; `None` for what could not be read.
/// Nothing is written to it afterwards. What would be if something were different is a copy with the difference.
#[derive(Clone, Debug)]
pub struct Facts {
    /// The settings.
    pub requested: Requested,
    /// The running segment.
    pub segment: Option<Segment>,
    /// The pool of the segment if that is in huge pages, else of the size that `huge_page_size` asks for, and what limits its use.
    pub pool_state: PoolState,
    /// The host's memory, as far as it could be read.
    pub meminfo: Meminfo,
    /// What the configuration on disk would ask for.
    pub pending: Pending,
    /// The percentage of memory that the host keeps for base pages.
    pub reserve_percent: u32,
    /// The pages of the pool that other servers on this host still lack; `None` if other servers can't be seen.
    pub others_lack: Option<Pages>,
    /// What other servers ask for beyond that, which does not fit now: after a boot whoever starts first gets its pages.
    pub others_beyond: Pages,
    /// Whether another server may ask for more next than is known here.
    pub others_may_ask_for_more: bool,
    /// What was recorded when the server started.
    pub past: Past,
    /// Whether the server would recover after a crash.
    pub crash_recovery: CrashRecovery,
    /// Whether `requested` is from files that have changed since the start, so that the server may have been started with others.
    pub requested_may_differ: bool,
    /// Whether nobody knows `requested`, and the server's defaults stand for it.
    pub requested_is_assumed: bool,
    /// Whether pools of other page sizes have pages, or may get some.
    pub has_other_pools: bool,
    /// Whether an option of its command line sets `huge_pages`, which no file then changes.
    pub huge_pages_is_option: bool,
    /// Who sets its limit on locked memory: the setting of a unit or of a container; `None` for a session, or if unknown.
    pub memlock_setting: Option<String>,
    /// The program beside database servers that has most huge pages; `None` if others can't be seen, or have none.
    pub largest_holder: Option<PoolHolder>,
    /// What strangers have of the pool; none if others can't be seen.
    pub strangers: PagesOfStrangers,
    /// What the pool of `pool_state` has after the next boot; `None` if that was not read.
    pub next_boot: Option<PoolAtBoot>,
}

impl Facts {
    /// The facts on a server alone, whose next start asks for the same, and of which nothing was recorded.
    pub fn new(
        requested: Requested,
        segment: Option<Segment>,
        pool_state: PoolState,
        meminfo: Option<Meminfo>,
        reserve_percent: u32,
    ) -> Self {
        Self {
            requested,
            segment,
            pool_state,
            meminfo: meminfo.unwrap_or_default(),
            reserve_percent,
            pending: Pending::Unchanged,
            others_lack: None,
            others_beyond: Pages(0),
            others_may_ask_for_more: false,
            past: Past::default(),
            crash_recovery: CrashRecovery::default(),
            requested_may_differ: false,
            requested_is_assumed: false,
            has_other_pools: false,
            huge_pages_is_option: false,
            memlock_setting: None,
            largest_holder: None,
            strangers: PagesOfStrangers::default(),
            next_boot: None,
        }
    }

    /// What a next start is compared with.
    pub fn current_start(&self) -> CurrentStart<'_> {
        CurrentStart {
            requested: self.requested,
            segment: self.segment.as_ref(),
            pool_state: &self.pool_state,
        }
    }

    /// The pool of `pool_state`, if known.
    pub const fn pool(&self) -> Option<&Pool> {
        self.pool_state.pool.known()
    }

    /// Whether the segment is in huge pages as a whole.
    pub fn is_in_huge_pages(&self) -> bool {
        self.landing() == Landing::Hugetlb
    }

    /// Where the segment landed.
    pub fn landing(&self) -> Landing {
        self.current_start().landing()
    }

    /// The pages of the pool that the server has.
    pub fn own(&self) -> Pages {
        self.current_start().own()
    }

    /// What the next start asks for; what the running server has asked for where that is unknown.
    pub const fn requested_next(&self) -> Requested {
        self.pending.requested_next(self.requested)
    }

    /// The pool that the next start finds; that of the running server where the start is unchanged or unknown.
    pub fn next_pool_state(&self) -> &PoolState {
        match &self.pending {
            Pending::Changed(_, pool_state) => pool_state,
            Pending::Unchanged | Pending::Refused(_) | Pending::Unknown => &self.pool_state,
        }
    }

    /// Whether the next start asks for huge pages, or may do so because its settings are unknown.
    pub fn may_request_next(&self) -> bool {
        self.pending.may_request_next(self.requested)
    }

    /// Whether all servers that may need pages are seen, and what each asks for next.
    pub fn knows_all_needs(&self) -> bool {
        self.others_lack.is_some()
            && !self.others_may_ask_for_more
            && self.pending != Pending::Unknown
    }

    /// Whether mappings that request no size get huge pages of `size`.
    pub fn is_default(&self, size: PageSize) -> bool {
        self.meminfo.huge_page_size == Some(size)
    }

    /// The page size of the running segment.
    pub fn page_size(&self) -> Option<PageSize> {
        self.segment.as_ref()?.page_size
    }

    /// The size of the running segment.
    pub fn segment_size(&self) -> Option<Bytes> {
        self.segment.as_ref().map(|segment| segment.size)
    }
}
