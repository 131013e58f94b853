//! `huge_pages = on` and its risk: with `try` the server always starts.

use crate::advice::context::AdviceContext;
use crate::advice::recommendation::Recommendation;
use crate::assessment::{Outlook, Severity};
use crate::model::HugePages;

pub fn with_on(context: &AdviceContext) -> Option<Recommendation> {
    if context.status.facts.requested.huge_pages != HugePages::On {
        return None;
    }
    let (severity, now) = match context.status.crash.outlook {
        Outlook::Fails => (Severity::Critical, "with the current pool it would fail"),
        Outlook::Hugetlb => (Severity::Notice, "with the current pool it would succeed"),
        _ => (Severity::Warning, "with the current pool this is unknown"),
    };
    let reason = format!(
        "With on, a restart after a crash fails if the pool is too small, and with try it continues in base pages; {now}."
    );
    let (current, recommended) = ("on".to_owned(), Some("try".to_owned()));
    Some(Recommendation::of_server(severity, "huge_pages", current, recommended, reason, None))
}
