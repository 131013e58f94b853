//! The messages of `apply` about a change.

use hugepage_assess::advice::command::reserve_at_boot;
use hugepage_kernel::PageSize;

use super::resize::ResizeOutcome;
use super::resize_plan::ResizePlan;

/// The text on what would be done.
pub fn preview(size: PageSize, plan: ResizePlan) -> String {
    let ResizePlan { from, to } = plan;
    if from == to {
        return format!("The pool has {to} pages of {size} already; nothing to do.");
    }
    format!("The pool would have {to} pages of {size} ({}), now {from}.", size.times(to))
}

/// The text on what was done.
pub fn done(size: PageSize, plan: ResizePlan) -> String {
    let ResizePlan { from, to } = plan;
    if from == to {
        format!("The pool has {to} pages of {size} already.")
    } else {
        format!("The pool has {to} pages of {size} now ({}), {from} before.", size.times(to))
    }
}

/// The reason why the pool was not set.
pub fn failure(outcome: ResizeOutcome, size: PageSize, plan: ResizePlan) -> String {
    let requested = plan.to;
    match outcome {
        ResizeOutcome::Reached => String::new(),
        ResizeOutcome::Interrupted => "interrupted".to_owned(),
        ResizeOutcome::InUse(in_use) => {
            format!("{in_use} pages of {size} are in use now, more than the requested {requested}")
        }
        ResizeOutcome::LowMemory(got) => format!(
            "stopped at {got} of {requested} pages of {size}: other processes use more memory now, and the host would begin to swap"
        ),
        ResizeOutcome::Incomplete(got) => format!(
            "the kernel gave {got} of {requested} pages of {size}, after compaction. Memory is fragmented. To get all pages, \
             reserve them at boot: {}",
            reserve_at_boot(size, requested)
        ),
    }
}
