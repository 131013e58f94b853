//! `hugepage_metrics()`: this server and its host as OpenMetrics text.

use hugepage_assess::assessment::page_tables::PageTables;
use hugepage_assess::metrics::{self, InstanceMetrics, MetricsSnapshot};
use hugepage_kernel::notes::Notes;
use hugepage_kernel::{PageSize, Root};
use hugepage_server::pools;
use pgrx::prelude::*;

use super::convert::text;
use super::rows;
use crate::{assessment, memory, processes, server, shmem};

#[pg_extern(sql = false)]
fn hugepage_metrics() -> String {
    memory::with_reserve(memory::USUAL, || {
        let root = Root::live();
        let mut notes = Notes::default();
        let status = assessment::now(&root, &mut notes);
        let pools = server::with_hierarchy(&root, &mut notes, |view, notes| pools::rows(&root, view, notes));
        let processes = processes::all(&root, &mut notes);
        rows::raise(notes);

        let facts = &status.facts;
        // Of nodes the size that hugepage_nodes has; the sidecar has all.
        let size = facts.pool_state.huge_page_size;
        let pools = pools.into_iter().filter(|row| row.node.is_none() || Some(row.pool.page_size) == size).collect();
        let sum = PageTables::sum(processes.iter().filter_map(|process| process.status.as_ref()), PageSize::base());
        let segment = facts.segment_size().zip(facts.page_size());
        let snapshot = MetricsSnapshot {
            stopped: Vec::new(),
            pools,
            meminfo: facts.meminfo.clone(),
            instances: vec![InstanceMetrics {
                kind: "postgresql".to_owned(),
                name: server::data_directory().to_string_lossy().into_owned(),
                page_tables_at_max: segment.and_then(|(size, page)| sum.at(server::max_connections(), size, page)),
                page_tables: Some(sum),
                generation: shmem::generation().and_then(|generation| u64::try_from(generation).ok()),
                status,
            }],
        };
        text(metrics::text(&snapshot))
    })
}
