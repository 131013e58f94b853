//! The quantities and noun phrases of one status, from which its sentences are made.

use hugepage_kernel::{Bytes, PageSize, Pages};

use crate::advice::message::product::ProductTerms;
use crate::assessment::Status;
use crate::model::{Cause, HugePages, Landing};

/// The text of one status.
pub struct StatusText<'a>(pub &'a Status);

impl StatusText<'_> {
    pub fn terms(&self) -> &'static ProductTerms {
        ProductTerms::of_product(self.0.facts.requested.product)
    }

    /// Behind a clause on the next start.
    pub fn next_start(&self) -> &'static str {
        if self.0.crash.outlook == self.0.outlook { self.terms().next_start } else { "" }
    }

    /// The setting, as the administrator wrote it.
    pub fn setting(&self) -> &'static str {
        ProductTerms::current(&self.0.facts.requested)
    }

    pub fn memory(&self) -> String {
        format!("{} ({})", self.terms().memory, self.0.facts.segment_size().unwrap_or_default())
    }

    pub fn needed(&self) -> Pages {
        self.0.needed.unwrap_or_default()
    }

    pub fn needed_bytes(&self) -> Option<Bytes> {
        Some(self.0.facts.pool_state.huge_page_size?.times(self.0.needed?))
    }

    pub fn huge_pages(&self) -> String {
        format!("{} huge pages of {}", self.needed(), page_size(self.0.facts.pool_state.huge_page_size))
    }

    /// The pages of a segment that is not, or not completely, in huge pages.
    pub fn base_pages(&self) -> String {
        let requested = match self.0.facts.requested.huge_pages {
            HugePages::Off => "",
            _ => " although huge pages were asked for",
        };
        match (&self.0.facts.segment, self.0.facts.page_size()) {
            (Some(segment), _) if segment.landing == Landing::Mixed => {
                let (huge, base) = (segment.in_huge_pages, segment.in_base_pages());
                format!("huge pages for {huge}, in base pages for the other {base}{requested}")
            }
            (_, Some(size)) => format!("{size} pages{requested}"),
            (_, None) => format!("base pages{requested}"),
        }
    }

    pub fn current_pages(&self) -> String {
        if self.0.cause.is_none() { self.huge_pages() } else { self.base_pages() }
    }

    /// Whether a start would land in huge pages now, though the last one did not.
    pub fn could_land_now(&self) -> bool {
        let is_of_host = matches!(
            self.0.cause,
            Some(Cause::PoolEmpty | Cause::PoolTooSmall | Cause::PoolTaken | Cause::CgroupLimit | Cause::NodeLimit)
                | Some(Cause::MemlockLimit | Cause::ShmGroup | Cause::ShmLimit | Cause::Unknown)
        );
        let lock = self.0.facts.pool_state.lock_limit.zip(self.needed_bytes());
        is_of_host
            && self.0.missing == Some(Pages(0))
            && !lock.is_some_and(|(lock, needed)| lock.refuses(needed) || lock.may_refuse(needed))
    }
}

/// Whether a larger pool removes `cause`.
pub const fn is_of_pool(cause: Cause) -> bool {
    matches!(cause, Cause::PoolEmpty | Cause::PoolTooSmall | Cause::PoolTaken)
}

pub fn page_size(size: Option<PageSize>) -> String {
    size.map_or("unknown size".to_owned(), |size| size.to_string())
}
