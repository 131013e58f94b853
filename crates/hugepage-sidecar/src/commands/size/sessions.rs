//! `size --sessions`: the page tables of a number of sessions of each server, by the model of the core.

use hugepage_assess::assessment::page_tables::PageTables;
use hugepage_assess::stopped_databases::Wants;
use hugepage_host::Instance;
use hugepage_kernel::Bytes;
use serde::Serialize;

use super::sizing::HostSizing;
use crate::output::escape;
use crate::output::stream::say;
use crate::output::table::{or_unknown, table, wrapped};
use crate::sessions::{Choice, SessionForecast, worth};

/// The model, as in docs/page-tables.md.
const FORMULA: &str = "a model: sessions x (own_per_session + 8 bytes for each page of shared_memory), as if each session had \
                       touched all of it; page tables of 2 MB pages are shared between processes";

/// The part of the output that `--sessions` adds.
#[derive(Debug, Serialize)]
pub struct SessionsOutput {
    pub sessions: u64,
    pub formula: &'static str,
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
    /// The page tables in pages of 2 MB, in bytes; null if the kernel has no pages of that size, as in the next one,
    /// which is null for Oracle, too.
    pub page_tables_huge_2mb: Option<Bytes>,
    pub page_tables_huge_1gb: Option<Bytes>,
    /// Whether huge pages save at least 1% of memory; null if unknown.
    pub is_worth_it: Option<bool>,
    pub worth: String,
}

/// A server with shared memory.
struct SizedServer<'a> {
    name: &'a str,
    is_running: bool,
    is_postgresql: bool,
    shared_memory: Bytes,
    page_tables: PageTables,
    choice: Choice,
}

impl SessionsOutput {
    pub fn new(host: &HostSizing, sessions: u64) -> Option<Self> {
        let survey = &host.survey;
        let base = survey.host.base_page_size?;
        let memory = survey.host.meminfo.as_ref().and_then(|meminfo| meminfo.mem_total);
        let pools = survey.host.pools.iter().filter(|row| row.node.is_none());
        let sizes: Vec<_> = pools.map(|row| row.pool.page_size).collect();
        let row = |server: SizedServer<'_>| {
            let SizedServer { is_postgresql, shared_memory, .. } = server;
            let mut forecast = SessionForecast::new(sessions, shared_memory, &server.page_tables, base, &sizes, memory);
            if !is_postgresql {
                forecast.huge[1] = None;
            }
            SessionRow {
                instance: server.name.to_owned(),
                is_running: server.is_running,
                shared_memory,
                own_per_session: forecast.own,
                page_tables_base: forecast.base,
                page_tables_huge_2mb: forecast.huge[0],
                page_tables_huge_1gb: forecast.huge[1],
                is_worth_it: forecast.is_worth_it,
                worth: worth(&forecast, server.choice, memory),
            }
        };
        let running = survey.instances.iter().filter_map(running);
        let default = survey.host.default_page_size();
        let down = host.down.iter().filter_map(|down| match down.wants {
            Wants::Pages(pages, _) => Some(SizedServer {
                name: &down.name,
                is_running: false,
                is_postgresql: down.kind == "postgresql",
                shared_memory: down.page_size.or(default)?.times(pages),
                page_tables: PageTables::default(),
                choice: Choice::HugePages,
            }),
            Wants::None(_) | Wants::Unknown(_) => None,
        });
        Some(Self { sessions, formula: FORMULA, instances: running.chain(down).map(row).collect() })
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
            let own = if row.own_per_session.is_none() { " What a session needs beside that is unknown." } else { "" };
            say!("{}", wrapped(&format!("{}: {}{own}", row.instance, row.worth), 2, 4));
        }
        say!();
    }
}

fn running(instance: &Instance) -> Option<SizedServer<'_>> {
    let settings = &instance.status.facts.requested;
    Some(SizedServer {
        name: &instance.id.name,
        is_running: true,
        is_postgresql: instance.id.postgresql().is_some(),
        shared_memory: instance.status.facts.segment_size()?,
        page_tables: instance.memory.page_tables,
        choice: Choice::by_settings(settings),
    })
}
