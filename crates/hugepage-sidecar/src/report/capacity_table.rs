//! The sessions of an Oracle database that fit into memory, by the size of its SGA, in base pages and in huge pages.

use hugepage_host::{Instance, InstanceKind, Survey};
use hugepage_kernel::{Bytes, PageSize};
use hugepage_oracle::readers::OracleKind;

use crate::sessions::{Choice, SessionForecast, sessions_that_fit, worth};

/// The sizes of SGAs beside that of the instance, in percent of memory. Oracle's own limit for huge pages is 70.
const SHARES: [u32; 7] = [10, 20, 30, 40, 50, 60, 70];

/// The table of one instance.
#[derive(Debug)]
pub struct CapacityTable {
    pub name: String,
    pub memory: u64,
    pub base_page_size: u64,
    pub huge_page_size: u64,
    /// The memory of a session beside page tables for the SGA, in bytes; `None` if it is unknown, and there are no rows
    /// then.
    pub private: Option<u64>,
    pub rows: Vec<CapacityRow>,
    /// Whether huge pages are worth it at the number of connections of the charts.
    pub worth: Option<String>,
}

/// The capacity with one size of the SGA.
#[derive(Debug)]
pub struct CapacityRow {
    pub sga: u64,
    pub is_current: bool,
    pub on_base: u64,
    pub on_huge: u64,
}

impl CapacityTable {
    /// The table of `instance`; `None` for what is no Oracle database, and where the host's memory or its page sizes
    /// are unknown.
    pub fn new(survey: &Survey, instance: &Instance, base: Option<PageSize>, connections: u64) -> Option<Self> {
        if instance.id.kind() != InstanceKind::Oracle(OracleKind::Database) {
            return None;
        }
        let facts = &instance.status.facts;
        let (base, huge) = (base?, facts.pool_state.huge_page_size?);
        let memory = survey.host.meminfo.as_ref()?.mem_total?;
        let current = facts.segment_size();
        let private = instance
            .memory
            .private_memory
            .zip(instance.memory.page_tables.min)
            .map(|(one, other)| one.saturating_add(other));
        let mut sizes: Vec<_> = SHARES.iter().map(|share| memory.percent(*share)).chain(current).collect();
        sizes.sort_unstable();
        let row = |private: Bytes, sga: Bytes| CapacityRow {
            sga: sga.0,
            is_current: Some(sga) == current,
            on_base: sessions_that_fit(memory, sga, private, base),
            on_huge: sessions_that_fit(memory, sga, private, huge),
        };
        let forecast = |shared_memory| {
            let sessions = connections.max(instance.memory.page_tables.processes);
            let session_forecast = SessionForecast::new(
                sessions,
                shared_memory,
                &instance.memory.page_tables,
                base,
                &[huge],
                Some(memory),
            );
            worth(&session_forecast, Choice::by_settings(&facts.requested), Some(memory))
        };
        Some(Self {
            name: instance.id.name.clone(),
            memory: memory.0,
            base_page_size: base.bytes().0,
            huge_page_size: huge.bytes().0,
            private: private.map(|size| size.0),
            rows: private.into_iter().flat_map(|private| sizes.iter().map(move |sga| row(private, *sga))).collect(),
            worth: current.map(forecast),
        })
    }
}
