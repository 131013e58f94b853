//! The input of advice on this server, and the size of shared memory with other shared_buffers.

use hugepage_core::advise::context::{AdviceContext, Server};
use hugepage_core::assess::page_tables::PageTables;
use hugepage_core::read::Root;
use hugepage_core::{Bytes, Notes, PageSize};
use pgrx::pg_sys;

use crate::preflight::on_disk::OnDisk;
use crate::preflight::{self, Answer, Overrides};
use crate::{assessment, processes, server};

/// The facts about this server and its host that advice needs, now.
pub fn now(root: &Root, notes: &mut Notes) -> AdviceContext {
    let status = assessment::now(root, notes);
    let processes = processes::all(root, notes);
    let statuses = processes.iter().filter_map(|process| process.status.as_ref());
    let server = Server {
        major: u32::from(pgrx::pg_sys::get_pg_major_version_num()),
        max_connections: server::max_connections(),
        min_dynamic_shared_memory: server::min_dynamic_shared_memory(),
        parallel_memory: server::parallel_memory(),
        page_tables: PageTables::sum(statuses, PageSize::base()),
    };
    server::with_hierarchy(root, notes, |view, notes| AdviceContext::collect(root, status, server, view, notes))
}

/// The size of shared memory with these `shared_buffers` and the configuration on disk, as the server's program
/// calculates it; `None` if that would not start or could not be asked.
pub fn size_of(root: &Root, shared_buffers: Bytes) -> Option<Bytes> {
    let blocks = i32::try_from(shared_buffers.0 / u64::from(pg_sys::BLCKSZ)).ok()?;
    let on_disk = OnDisk::read(root, &mut Notes::default());
    match preflight::ask(&on_disk, Overrides { shared_buffers: Some(blocks), ..Overrides::default() }) {
        Answer::Starts(demand) => Some(demand.shared_memory),
        Answer::Either(either) => Some(either.with_options.shared_memory.max(either.files_alone.shared_memory)),
        Answer::Refuses(_) | Answer::Unknown(_) => None,
    }
}
