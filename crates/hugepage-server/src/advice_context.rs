//! What the recommendations for one server need of its host.

use hugepage_assess::advice::context::{AdviceContext, Server};
use hugepage_assess::assessment::Status;
use hugepage_kernel::memory::thp;
use hugepage_kernel::proc::namespace;
use hugepage_kernel::{Notes, Root};

use crate::{CgroupView, pools};

/// Adds what the host has to what is known of the server.
pub fn advice_context(
    root: &Root,
    status: Status,
    server: Server,
    view: CgroupView<'_>,
    notes: &mut Notes,
) -> AdviceContext {
    AdviceContext {
        status,
        server,
        pools: pools::rows(root, view, notes),
        is_in_container: namespace::shows_files_of_container(root),
        thp_enabled: notes.keep(thp::choice(root, "enabled")).flatten(),
    }
}
