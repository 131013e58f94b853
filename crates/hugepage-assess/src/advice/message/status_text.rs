//! The quantities and noun phrases of one status, from which its sentences are made.

use std::fmt::{self, Display};

use hugepage_kernel::cgroups::cgroup::CgroupLimit;
use hugepage_kernel::{Bytes, PageSize, Pages};

use crate::advice::message::product::ProductTerms;
use crate::assessment::Status;
use crate::model::{Cause, HugePages, Landing};

/// The text of one status.
pub(in crate::advice) struct StatusText<'a>(pub(in crate::advice) &'a Status);

impl StatusText<'_> {
    pub(in crate::advice) fn size(&self) -> Bytes {
        self.0.facts.segment_size().unwrap_or_default()
    }

    pub(in crate::advice) fn terms(&self) -> &'static ProductTerms {
        ProductTerms::of_product(self.0.facts.requested.product)
    }

    /// What allocates shared memory again and loses pages; the restart alone where a crash does not, or may not.
    pub(in crate::advice) fn restart(&self) -> &'static str {
        if self.0.crash.outlook == self.0.outlook { self.terms().restart } else { "a restart" }
    }

    /// Behind a clause on the next start.
    pub(in crate::advice) fn next_start(&self) -> &'static str {
        if self.0.crash.outlook == self.0.outlook { self.terms().next_start } else { "" }
    }

    /// The setting, as the administrator wrote it.
    pub(in crate::advice) fn setting(&self) -> &'static str {
        ProductTerms::current(&self.0.facts.requested)
    }

    pub(in crate::advice) fn memory(&self) -> impl Display {
        fmt::from_fn(|f| write!(f, "{} ({})", self.terms().memory, self.size()))
    }

    pub(in crate::advice) fn needed(&self) -> Pages {
        self.0.needed.unwrap_or_default()
    }

    pub(in crate::advice) fn needed_bytes(&self) -> Option<Bytes> {
        Some(self.0.facts.pool_state.huge_page_size?.times(self.0.needed?))
    }

    pub(in crate::advice) fn own_bytes(&self) -> Bytes {
        self.0.facts.pool_state.huge_page_size.map_or(Bytes(0), |size| size.times(self.0.own))
    }

    pub(in crate::advice) fn huge_pages(&self) -> impl Display {
        fmt::from_fn(|f| {
            write!(f, "{} huge pages of {}", self.needed(), page_size(self.0.facts.pool_state.huge_page_size))
        })
    }

    /// The pages of a segment that is not, or not completely, in huge pages.
    pub(in crate::advice) fn base_pages(&self) -> impl Display {
        let requested = match self.0.facts.requested.huge_pages {
            HugePages::Off => "",
            _ => " although huge pages were asked for",
        };
        fmt::from_fn(move |f| match (&self.0.facts.segment, self.0.facts.page_size()) {
            (Some(segment), _) if segment.landing == Landing::Mixed => write!(
                f,
                "huge pages for {}, in base pages for the other {}{requested}",
                segment.in_huge_pages,
                segment.in_base_pages()
            ),
            (_, Some(size)) => write!(f, "{size} pages{requested}"),
            (_, None) => write!(f, "base pages{requested}"),
        })
    }

    pub(in crate::advice) fn current_pages(&self) -> impl Display {
        fmt::from_fn(|f| match self.0.cause {
            None => self.huge_pages().fmt(f),
            Some(_) => self.base_pages().fmt(f),
        })
    }

    /// The tightest cgroup limit that is checked when memory is mapped.
    pub(in crate::advice) fn reservation_limit(&self) -> Option<&CgroupLimit> {
        self.0.facts.pool_state.limits.as_ref()?.tightest_reservation_without(self.own_bytes())
    }

    /// Whether the pool (or else a cgroup) has too few pages for a restart.
    pub(in crate::advice) fn pool_falls_short(&self) -> bool {
        self.0.share.is_none_or(|share| share.guaranteed < self.needed())
    }

    /// Whether a start would land in huge pages now, though the last one did not.
    pub(in crate::advice) fn could_land_now(&self) -> bool {
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

pub(super) fn page_size(size: Option<PageSize>) -> impl Display {
    fmt::from_fn(move |f| match size {
        Some(size) => size.fmt(f),
        None => f.write_str("unknown size"),
    })
}
