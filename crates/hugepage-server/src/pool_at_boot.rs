//! What the next boot gives a pool, as a fact about a server.

use hugepage_kernel::PageSize;
use hugepage_kernel::next_boot::boot::NextBoot;
use hugepage_kernel::next_boot::pool_at_boot::PoolAtBoot;

/// The pool of `size` after the next boot.
pub fn pool_at_boot(boot: &NextBoot, size: PageSize) -> PoolAtBoot {
    let default = boot.default_size().ok();
    if default.is_none() || boot.machine.running_default.is_some_and(|running| Some(running) != default) {
        return PoolAtBoot::Unknown("the next boot may have another default page size than now".to_owned());
    }
    boot.pool(size)
}
