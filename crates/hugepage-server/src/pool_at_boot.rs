//! What the next boot gives a pool, as a fact about a server.

use hugepage_kernel::PageSize;
use hugepage_kernel::next_boot::boot::NextBoot;
use hugepage_kernel::next_boot::pool_at_boot::PoolAtBoot;

/// The pool of `size` after the next boot. A pool that has pages now, and that nothing sets, counts as one that nothing sets if all
/// was read: most such pools were set by hand since the boot.
pub fn pool_at_boot(boot: &NextBoot, size: PageSize) -> PoolAtBoot {
    let default = boot.default_size().ok();
    if default.is_none() || boot.machine.running_default.is_some_and(|running| Some(running) != default) {
        return PoolAtBoot::Unknown("the next boot may have another default page size than now".to_owned());
    }
    let is_all_read = boot.not_read.is_empty() && boot.programs_not_read.is_empty();
    match boot.pool(size) {
        PoolAtBoot::Unknown(_) if is_all_read && boot.asked_for(size) == PoolAtBoot::Unset => PoolAtBoot::Unset,
        pool => pool,
    }
}
