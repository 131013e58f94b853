//! What the recommendations for one server need of its host.

use hugepage_assess::advice::context::{AdviceContext, Server};
use hugepage_assess::assessment::Status;
use hugepage_kernel::memory::{pressure, sysctl, thp};
use hugepage_kernel::next_boot::boot::NextBoot;
use hugepage_kernel::proc::namespace;
use hugepage_kernel::{Bytes, Notes, Root};

use crate::{CgroupView, pools};

/// Adds what the host has to what is known of the server.
pub fn advice_context(
    root: &Root,
    status: Status,
    server: Server,
    next_boot: Option<NextBoot>,
    view: CgroupView<'_>,
    notes: &mut Notes,
) -> AdviceContext {
    let mut number = |name: &str| {
        let text = notes.keep(sysctl::running(root, name)).flatten()?;
        text.parse::<u64>().ok()
    };
    let swappiness = number("vm.swappiness");
    let min_free = number("vm.min_free_kbytes").map(Bytes::from_kib);
    let overcommit_memory = number("vm.overcommit_memory");
    AdviceContext {
        status,
        server,
        pools: pools::rows(root, view, notes),
        is_in_container: namespace::shows_files_of_container(root),
        next_boot,
        thp_enabled: notes.keep(thp::choice(root, "enabled")).flatten(),
        swappiness,
        min_free,
        overcommit_memory,
        pressure: pressure(root),
    }
}

/// `some avg300` of /proc/pressure/memory. Kernels that were booted without PSI have the file but refuse to read it.
fn pressure(root: &Root) -> Option<f64> {
    let average = pressure::memory(root).into_iter().find(|one| one.tasks == "some" && one.window == "avg300")?;
    average.percent.parse().ok()
}
