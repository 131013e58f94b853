//! Pages of 1 GB: how full the last one is.

use hugepage_kernel::{Bytes, PageSize};

use crate::advice::context::AdviceContext;
use crate::advice::recommendation::{Recommendation, setting};
use crate::advice::shared_buffers;
use crate::assessment::{Severity, Status};
use crate::model::HugePages;

/// The smallest saving in the last page that is recommended.
const MIN_SAVING: Bytes = Bytes(128 << 20);
const GIGANTIC: PageSize = PageSize::new(1 << 30).unwrap();

/// The status of a server that has, or can have, huge pages.
fn status(context: &AdviceContext) -> Option<&Status> {
    let status = &context.status;
    (status.facts.requested.huge_pages != HugePages::Off && !status.does_not_fit()).then_some(status)
}

/// The larger shared_buffers that takes the same number of pages.
pub fn last_page(context: &AdviceContext) -> Option<Recommendation> {
    let status = status(context)?;
    let (size, needed) = (status.facts.pool_state.huge_page_size.filter(|size| *size >= GIGANTIC)?, status.needed?);
    let buffers = status.facts.requested.shared_buffers;
    // The mapping is rounded up to whole pages.
    let exact = context.shared_memory?;
    let unused = size.times(needed).saturating_sub(exact);
    if size.pages_to_hold(exact) != needed || unused < MIN_SAVING {
        return None;
    }
    let fits = shared_buffers::largest(size.times(needed), buffers, exact).filter(|fits| *fits > buffers)?;
    Some(Recommendation::of_server(
        Severity::Notice,
        "shared_buffers",
        setting(buffers),
        Some(setting(fits)),
        format!(
            "Shared memory takes {needed} pages of {size} and leaves {unused} of the last one unused; shared_buffers = {fits} \
             takes the same number of pages."
        ),
        Some(unused),
    ))
}
