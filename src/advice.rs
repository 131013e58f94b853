//! The input of advice on this server.

use hugepage_assess::advice::AdviceContext;
use hugepage_assess::assessment::page_tables::PageTables;
use hugepage_kernel::proc::namespace;
use hugepage_kernel::{Notes, PageSize, Root};

use crate::{assessment, processes};

/// The facts about this server and its host that advice needs, now.
pub fn now(root: &Root, notes: &mut Notes) -> AdviceContext {
    let status = assessment::now(root, notes);
    let processes = processes::all(root, notes);
    let statuses = processes.iter().filter_map(|process| process.status.as_ref());
    AdviceContext {
        status,
        page_tables: PageTables::sum(statuses, PageSize::base()),
        is_in_container: namespace::shows_files_of_container(root),
    }
}
