//! `size --sessions`: the page tables of a number of sessions of each server, by the model of the core (docs/page-tables.md).

use hugepage_assess::assessment::page_tables::tables;
use hugepage_kernel::Bytes;
use hugepage_sizing::Wants;
use serde::Serialize;

use super::sizing::HostSizing;
use crate::output::escape;
use crate::output::stream::say;
use crate::output::table::{or_unknown, table, wrapped};

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
    pub shared_memory: Bytes,
    /// Page tables that each session needs for other memory, by the smallest process; null if unknown, and then not counted.
    pub own_per_session: Option<Bytes>,
    pub page_tables_base: Bytes,
    /// In huge pages of the default size; null if the kernel has none.
    pub page_tables_huge: Option<Bytes>,
}

impl SessionsOutput {
    pub fn new(host: &HostSizing, sessions: u64) -> Option<Self> {
        let survey = &host.survey;
        let (base, huge) = (survey.host.base_page_size?, survey.host.default_page_size());
        let row = |instance: &String, shared_memory, own_per_session: Option<Bytes>| {
            let own = Bytes(own_per_session.unwrap_or_default().0.saturating_mul(sessions));
            let at = |size| own.saturating_add(tables(sessions, shared_memory, size));
            let instance = instance.clone();
            let (page_tables_base, page_tables_huge) = (at(base), huge.map(at));
            SessionRow { instance, shared_memory, own_per_session, page_tables_base, page_tables_huge }
        };
        let running = survey
            .instances
            .iter()
            .filter_map(|one| Some(row(&one.id.name, one.status.facts.segment_size()?, one.memory.page_tables.min)));
        let down = host.down.iter().filter_map(|down| match down.wants {
            Wants::Pages(pages, _) => Some(row(&down.name, down.page_size.or(huge)?.times(pages), None)),
            _ => None,
        });
        Some(Self { sessions, instances: running.chain(down).collect() })
    }

    pub fn print(&self) {
        let title = format!(
            "page tables of {} sessions, as if each had touched all shared memory, with OWN for other memory of each:",
            self.sessions
        );
        say!("{}", wrapped(&title, 0, 2));
        let mut rows = table(&["  INSTANCE", "SHARED", "OWN", "4 KB PAGES", "HUGE PAGES"], 1);
        for row in &self.instances {
            rows.add_row(vec![
                format!("  {}", escape::line(&row.instance)),
                row.shared_memory.to_string(),
                or_unknown(row.own_per_session),
                row.page_tables_base.to_string(),
                or_unknown(row.page_tables_huge),
            ]);
        }
        say!("{}\n", rows.trim_fmt());
    }
}
