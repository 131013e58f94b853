//! huge_pages: `off` where huge pages would save memory, and `on` with its risk.

use hugepage_kernel::{Bytes, PageSize};

use crate::advice::context::AdviceContext;
use crate::advice::recommendation::Recommendation;
use crate::assessment::{Outlook, Severity};
use crate::model::HugePages;

/// The smallest size of page tables for which huge pages are recommended.
const MIN_PAGE_TABLES: Bytes = Bytes(64 << 20);

pub fn rule(context: &AdviceContext) -> Vec<Recommendation> {
    let found = match context.status.facts.requested.huge_pages {
        HugePages::Off => off(context),
        HugePages::On => Some(on(context)),
        HugePages::Try => None,
    };
    found.into_iter().collect()
}

fn row(severity: Severity, current: &str, reason: String, saves: Option<Bytes>) -> Recommendation {
    Recommendation::of_server(severity, "huge_pages", current.to_owned(), Some("try".to_owned()), reason, saves)
}

fn off(context: &AdviceContext) -> Option<Recommendation> {
    let status = &context.status;
    let at_most = context.tables_at_most(PageSize::base());
    let (to_land, size) = (status.to_land?, status.facts.pool_state.huge_page_size?);
    if at_most < MIN_PAGE_TABLES || status.does_not_fit() || status.facts.requested.sysv {
        return None;
    }
    let reason = format!(
        "{} connections that touch all {} of shared memory need {at_most} of page tables in base pages; a pool of {to_land} \
         pages of {size} would avoid them.",
        context.server.max_connections,
        context.segment(),
    );
    Some(row(Severity::Notice, "off", reason, context.saving()))
}

/// With `on`, a server never runs in base pages; with `try`, it always starts.
fn on(context: &AdviceContext) -> Recommendation {
    let (severity, now) = match context.status.crash.outlook {
        Outlook::Fails => (Severity::Critical, "with the current pool it would fail"),
        Outlook::Hugetlb => (Severity::Notice, "with the current pool it would succeed"),
        _ => (Severity::Warning, "with the current pool this is unknown"),
    };
    let reason = format!(
        "With on, a restart after a crash fails if the pool is too small, and with try it continues in base pages; {now}."
    );
    row(severity, "on", reason, None)
}
