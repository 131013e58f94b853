//! Complete commands for the administrator.

use crate::read::pool;
use crate::{PageSize, Pages};

/// Sets the pool of `size` to `pages` until the next boot.
pub fn set_pool(size: PageSize, is_default: bool, pages: Pages) -> String {
    if is_default {
        format!("sysctl -w vm.nr_hugepages={pages}")
    } else {
        format!("echo {pages} > /sys/kernel/mm/hugepages/{}/nr_hugepages", size.sysfs_name())
    }
}

/// Sets the pool of `size` on one NUMA node to `pages` until the next boot.
pub fn set_node_pool(node: u32, size: PageSize, pages: Pages) -> String {
    format!("echo {pages} > {}", pool::node_file(node, size))
}

/// Allows `pages` surplus pages of `size` until the next boot.
pub fn set_overcommit(size: PageSize, is_default: bool, pages: Pages) -> String {
    set_pool(size, is_default, pages).replace("nr_hugepages", "nr_overcommit_hugepages")
}

/// Adds a reservation to the kernel's command line, with grubby (Red Hat) or update-grub (Debian).
pub fn reserve_at_boot(size: PageSize, pages: Pages) -> String {
    let size = size.kernel_parameter();
    format!(
        "grubby --update-kernel=ALL --args=\"hugepagesz={size} hugepages={pages}\" || (echo \
         'GRUB_CMDLINE_LINUX=\"$GRUB_CMDLINE_LINUX hugepagesz={size} hugepages={pages}\"' >> /etc/default/grub && update-grub)"
    )
}
