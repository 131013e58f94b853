//! Restores a pool that did not become what it should.

use hugepage_kernel::Pages;

use super::kernel_pool::KernelPool;
use super::resize::{Resize, ResizeOutcome, resize};
use super::resize_plan::HostState;
use crate::exit::{self, Exit};
use crate::output::stream::complain;
use crate::privileges;

/// Restores the pool, except for pages that other processes have taken meanwhile.
pub(super) fn roll_back(pool: &mut KernelPool<'_>, before: &HostState) -> anyhow::Result<Exit> {
    let size = pool.size();
    let outcome = privileges::write(|| restore(pool, before));
    let now = pool.state()?;
    let (kept, had) = (now.pool.persistent(), before.pool.persistent());
    if kept == had {
        complain!("The pool keeps {kept} pages of {size}, as before.");
        return Ok(exit::WARNING);
    }
    complain!("The pool keeps {kept} pages of {size}; before it kept {had}.");
    if kept == rollback_target(before, &now) {
        complain!("Other processes have taken pages meanwhile and keep them.");
        return Ok(exit::WARNING);
    }
    match outcome? {
        ResizeOutcome::InUse(in_use) => complain!("{in_use} pages were in use."),
        ResizeOutcome::Incomplete(got) => complain!("The kernel stopped at {got} pages."),
        _ => {}
    }
    Ok(exit::CRITICAL)
}

/// Sets the pool to what it was. Processes may take pages of it, or return some, between two steps.
fn restore(pool: &mut KernelPool<'_>, before: &HostState) -> anyhow::Result<ResizeOutcome> {
    const ATTEMPTS: usize = 10;
    let mut outcome = ResizeOutcome::Reached;
    for attempt in 0..ATTEMPTS {
        let now = pool.state()?;
        let (from, to) = (now.pool.persistent(), rollback_target(before, &now));
        // Pages that the kernel did not give once, after compaction, it would not give again.
        if from == to || (from < to && attempt > 0) {
            break;
        }
        // Further signals are ignored until the pool is restored.
        let request = Resize { from, to, size: pool.size() };
        outcome = resize(pool, request, &|| false)?;
    }
    Ok(outcome)
}

fn rollback_target(before: &HostState, now: &HostState) -> Pages {
    match (before.pool.in_use(), now.pool.in_use()) {
        (Some(then), Some(in_use)) if in_use > then => in_use.min(now.pool.persistent()).max(before.pool.persistent()),
        _ => before.pool.persistent(),
    }
}
