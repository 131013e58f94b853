//! `size --sessions`: the page tables of a number of sessions of each server, by the model of the core.

use hugepage_assess::assessment::page_tables::tables;
use hugepage_host::Instance;
use hugepage_kernel::{Bytes, PageSize};
use hugepage_sizing::Wants;
use serde::Serialize;

use super::sizing::HostSizing;
use crate::output::escape;
use crate::output::stream::say;
use crate::output::table::{or_unknown, table, wrapped};

/// The model, as in docs/page-tables.md.
const FORMULA: &str = "a model: sessions x (own_per_session + 8 bytes for each page of shared_memory), as if each session had \
                       touched all of it; page tables of 2 MB pages are shared between processes";

/// The part of the output that `--sessions` adds.
#[derive(Debug, Serialize)]
pub struct SessionsOutput {
    pub sessions: u64,
    pub instances: Vec<SessionRow>,
}

/// The sessions of one server; sizes are in bytes.
#[derive(Debug, Serialize)]
pub struct SessionRow {
    pub instance: String,
    pub is_running: bool,
    pub shared_memory: Bytes,
    /// Page tables that each session needs for other memory, by the smallest process; null if unknown, and then not counted.
    pub own_per_session: Option<Bytes>,
    pub page_tables_base: Bytes,
    /// The page tables in pages of 2 MB, in bytes; null if the kernel has no such pages, as is the next one, for Oracle always.
    pub page_tables_huge_2mb: Option<Bytes>,
    pub page_tables_huge_1gb: Option<Bytes>,
    /// Whether huge pages save at least 1% of memory; null if unknown.
    pub is_worth_it: Option<bool>,
}

impl SessionsOutput {
    pub fn new(host: &HostSizing, sessions: u64) -> Option<Self> {
        let survey = &host.survey;
        let base = survey.host.base_page_size?;
        let memory = survey.host.meminfo.as_ref().and_then(|meminfo| meminfo.mem_total);
        let row = |instance: &str, is_postgresql: bool, is_running, shared_memory, own: Option<Bytes>| {
            let of_own = Bytes(own.unwrap_or_default().0.saturating_mul(sessions));
            let at = |size| of_own.saturating_add(tables(sessions, shared_memory, size));
            let huge = |bytes| PageSize::new(bytes).filter(|size| survey.host.pool(*size).is_some()).map(at);
            let (huge_2mb, huge_1gb) = (huge(2 << 20), huge(1 << 30).filter(|_| is_postgresql));
            let saving = huge_2mb.or(huge_1gb).map(|huge| at(base).saturating_sub(huge));
            SessionRow {
                instance: instance.to_owned(),
                is_running,
                shared_memory,
                own_per_session: own,
                page_tables_base: at(base),
                page_tables_huge_2mb: huge_2mb,
                page_tables_huge_1gb: huge_1gb,
                is_worth_it: saving.zip(memory).map(|(saving, memory)| saving >= memory.percent(1)),
            }
        };
        let running = survey.instances.iter().filter_map(|Instance { id, status, memory, .. }| {
            let (shared, own) = (status.facts.segment_size()?, memory.page_tables.min);
            Some(row(&id.name, id.postgresql().is_some(), true, shared, own))
        });
        let down = host.down.iter().filter_map(|down| {
            let size = down.page_size.or(survey.host.default_page_size())?;
            let Wants::Pages(pages, _) = down.wants else { return None };
            Some(row(&down.name, down.kind == "postgresql", false, size.times(pages), None))
        });
        Some(Self { sessions, instances: running.chain(down).collect() })
    }

    pub fn print(&self) {
        say!("{}", wrapped(&format!("page tables of {} sessions ({FORMULA}):", self.sessions), 0, 2));
        let mut rows = table(&["  INSTANCE", "SHARED", "BASE", "2 MB", "1 GB"], 1);
        for row in &self.instances {
            rows.add_row(vec![
                format!("  {}", escape::line(&row.instance)),
                row.shared_memory.to_string(),
                row.page_tables_base.to_string(),
                or_unknown(row.page_tables_huge_2mb),
                or_unknown(row.page_tables_huge_1gb),
            ]);
        }
        if rows.row_count() > 0 {
            say!("{}", rows.trim_fmt());
        }
        for row in &self.instances {
            let not_counted = "what a session needs beside shared memory is unknown, and not counted";
            let not_worth = "huge pages are not worth a change for page tables: they save less than 1% of memory";
            let unknown = row.own_per_session.is_none().then_some(not_counted);
            for text in unknown.into_iter().chain((row.is_worth_it == Some(false)).then_some(not_worth)) {
                say!("{}", wrapped(&format!("{}: {text}", row.instance), 2, 4));
            }
        }
        say!();
    }
}
