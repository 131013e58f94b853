//! The limit of a container: Kubernetes and engines set it from outside, so a command that writes its file does not help.

use hugepage_kernel::{Bytes, PageSize};

use crate::advice::context::AdviceContext;
use crate::advice::recommendation::{Area, Effect, Recommendation};
use crate::assessment::Severity;
use crate::model::HugePages;

/// Silent where the server has its huge pages, and where a limit that is seen lets it have them.
pub fn limit(context: &AdviceContext) -> Option<Recommendation> {
    let status = &context.status;
    let (size, needed) = (status.facts.pool_state.huge_page_size?, status.needed?);
    let limits = status.facts.pool_state.limits.as_ref();
    let seen = limits.and_then(|limits| limits.fault.iter().map(|level| level.limit).min());
    let wanted = size.times(needed);
    let has_them = context.in_huge_pages() && seen.is_none_or(|limit| limit >= wanted);
    if !context.is_in_container || has_them || status.facts.requested.huge_pages == HugePages::Off {
        return None;
    }
    let resource = format!("hugepages-{}i", size.kernel_parameter());
    let reason = format!(
        "In a container the limit {resource} has to hold all of shared memory, not only shared_buffers: {needed} pages of {size}."
    );
    (seen.is_none_or(|limit| limit < wanted)).then(|| Recommendation {
        current: seen.map(|limit| quantity(limit, size)),
        recommended: Some(quantity(wanted, size)),
        command: Some(format!("{resource}: {}", quantity(wanted, size))),
        takes_effect: Effect::ServerRestart,
        ..Recommendation::new(Severity::Notice, Area::Cgroup, resource.as_str(), reason)
    })
}

/// What a limit allows, in whole pages, as Kubernetes accepts it.
fn quantity(limit: Bytes, size: PageSize) -> String {
    let whole = limit.0 / size.bytes().0 * size.bytes().0;
    if whole.is_multiple_of(1 << 20) { format!("{}Mi", whole >> 20) } else { format!("{}Ki", whole >> 10) }
}
