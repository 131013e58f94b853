//! The input of advice on this server.

use hugepage_assess::advice::context::{AdviceContext, Server};
use hugepage_assess::assessment::page_tables::PageTables;
use hugepage_kernel::{Notes, PageSize, Root};
use hugepage_server::advice_context::advice_context;

use crate::{assessment, processes, server};

/// The facts about this server and its host that advice needs, now.
pub fn now(root: &Root, notes: &mut Notes) -> AdviceContext {
    let status = assessment::now(root, notes);
    let processes = processes::all(root, notes);
    let statuses = processes.iter().filter_map(|process| process.status.as_ref());
    let server = Server {
        max_connections: server::max_connections(),
        shared_memory: server::shared_memory(),
        page_tables: PageTables::sum(statuses, PageSize::base()),
    };
    server::with_hierarchy(root, notes, |view, notes| advice_context(root, status, server, view, notes))
}
