//! What advice on this server is made of, and the questions that it has: what other shared_buffers would come to.

use hugepage_core::advise::context::{AdviceContext, Server};
use hugepage_core::assess::page_tables::PageTables;
use hugepage_core::read::Root;
use hugepage_core::{Bytes, Notes, PageSize};
use pgrx::pg_sys;

use crate::preflight::on_disk::OnDisk;
use crate::preflight::{self, Answer, Overrides};
use crate::{assessment, processes, server};

/// This server on its host, now.
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

/// The shared memory that `shared_buffers` would come to with the configuration on disk, by the server's program.
pub fn size_of(root: &Root, shared_buffers: Bytes) -> Option<Bytes> {
    let blocks = i32::try_from(shared_buffers.0 / u64::from(pg_sys::BLCKSZ)).ok()?;
    let on_disk = OnDisk::read(root, &mut Notes::default());
    match preflight::ask(&on_disk, Overrides { shared_buffers: Some(blocks), ..Overrides::default() }) {
        Answer::Starts(demand) => Some(demand.shared_memory),
        Answer::Refuses(_) | Answer::Unknown(_) => None,
    }
}
