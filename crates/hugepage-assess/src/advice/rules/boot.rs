//! What the next boot would do and is no finding: a pool that is too large, an unknown one, memory that only a boot provides.

use hugepage_kernel::Pages;
use hugepage_kernel::memory::pool::Pool;
use hugepage_kernel::next_boot::PoolAtBoot;

use crate::advice::context::AdviceContext;
use crate::advice::recommendation::{Area, Effect, Recommendation};
use crate::advice::{command, pool};
use crate::assessment::{Severity, Status};
use crate::model::HugePages;
use crate::pools;

/// The pool of a server that asks for huge pages and can have them, and what it should have.
fn pool_of(status: &Status) -> Option<(&Pool, Pages)> {
    let is_of_use = status.facts.requested.huge_pages != HugePages::Off && !status.does_not_fit();
    status.facts.pool_state.pool.known().zip(status.recommended).filter(|_| is_of_use)
}

pub fn at_boot(context: &AdviceContext) -> Option<Recommendation> {
    let status = &context.status;
    let (&Pool { page_size: size, .. }, wanted) = pool_of(status)?;
    let is_default = status.facts.is_default(size);
    let row = Recommendation {
        recommended: Some(wanted.to_string()),
        takes_effect: Effect::Reboot,
        ..Recommendation::new(Severity::Notice, Area::Boot, pool::setting(size, is_default), "")
    };
    match status.facts.next_boot.as_ref()? {
        PoolAtBoot::Unknown(why) => Some(Recommendation {
            reason: format!("Whether the pool of {size} pages has {wanted} after the next boot is unknown: {why}."),
            ..row
        }),
        PoolAtBoot::Set(pages, file) => {
            let capacity = status.capacity.filter(|capacity| *pages > capacity.most)?;
            Some(Recommendation {
                severity: Severity::Warning,
                current: Some(pages.to_string()),
                command: command::set_pool_at_boot(size, is_default, wanted, Some(file)),
                reason: format!("{file} sets {pages} pages of {size} at boot, more than the {}.", pool::held(capacity)),
                ..row
            })
        }
        PoolAtBoot::Unset => None,
    }
}

/// If memory is fragmented, only a reservation at boot is guaranteed to get all pages.
pub fn fragmented(context: &AdviceContext) -> Option<Recommendation> {
    let (&Pool { page_size: size, nr, .. }, wanted) = pool_of(&context.status)?;
    let more = wanted.saturating_sub(nr);
    let ready = pools::of_size(&context.pools, size)?.obtainable_now.filter(|ready| *ready < more)?;
    let reason = format!(
        "Free memory holds only {ready} of the {more} missing pages of {size} without compaction; the kernel's command line \
         reserves them before memory is fragmented."
    );
    Some(Recommendation {
        recommended: Some(wanted.to_string()),
        command: command::set_pool_at_boot(size, false, wanted, file_at_boot(context)),
        takes_effect: Effect::Reboot,
        ..Recommendation::new(Severity::Notice, Area::Boot, "hugepages", reason)
    })
}

/// The file that sets the server's pool at the next boot.
fn file_at_boot(context: &AdviceContext) -> Option<&str> {
    match context.status.facts.next_boot.as_ref()? {
        PoolAtBoot::Set(_, file) => Some(file),
        PoolAtBoot::Unset | PoolAtBoot::Unknown(_) => None,
    }
}
