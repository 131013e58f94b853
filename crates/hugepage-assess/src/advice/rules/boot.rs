//! What the next boot would do that is no finding: a pool that the host cannot hold, one that is unknown, and memory that
//! only a boot provides.

use hugepage_kernel::next_boot::PoolAtBoot;
use hugepage_kernel::{PageSize, Pages};

use crate::advice::context::AdviceContext;
use crate::advice::recommendation::{Area, Effect, Recommendation};
use crate::advice::{command, pool};
use crate::assessment::Severity;
use crate::model::HugePages;
use crate::pools;

pub fn rule(context: &AdviceContext) -> Vec<Recommendation> {
    of_pool(context)
}

fn of_pool(context: &AdviceContext) -> Vec<Recommendation> {
    let status = &context.status;
    let Some((pool, wanted)) = status.facts.pool_state.pool.known().zip(status.recommended) else { return Vec::new() };
    if status.facts.requested.huge_pages == HugePages::Off || status.does_not_fit() {
        return Vec::new();
    }
    [at_boot(context, pool.page_size, wanted), fragmented(context, pool.page_size, pool.nr, wanted)]
        .into_iter()
        .flatten()
        .collect()
}

fn at_boot(context: &AdviceContext, size: PageSize, wanted: Pages) -> Option<Recommendation> {
    let status = &context.status;
    let is_default = status.facts.is_default(size);
    let row = Recommendation {
        area: Area::Boot,
        current: None,
        ..pool::set((size, is_default), (wanted, wanted), Severity::Notice, Effect::Reboot, String::new(), None)
    };
    match status.facts.next_boot.as_ref()? {
        PoolAtBoot::Unknown(why) => Some(Recommendation {
            reason: format!("Whether the pool of {size} pages has {wanted} after the next boot is unknown: {why}."),
            ..row
        }),
        PoolAtBoot::Set { pages, file } => {
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
fn fragmented(context: &AdviceContext, size: PageSize, nr: Pages, wanted: Pages) -> Option<Recommendation> {
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
        PoolAtBoot::Set { file, .. } => Some(file),
        PoolAtBoot::Unset | PoolAtBoot::Unknown(_) => None,
    }
}
