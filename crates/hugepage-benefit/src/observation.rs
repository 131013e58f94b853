//! Observes a PostgreSQL server for some time, to assess what huge pages would save it. The caller waits between the two
//! passes over its processes.

use std::time::{Duration, Instant};

use hugepage_assess::model::Landing;
use hugepage_kernel::memory::meminfo::Meminfo;
use hugepage_kernel::memory::pool;
use hugepage_kernel::notes::Notes;
use hugepage_kernel::{Bytes, PageSize, Root};

use crate::model::{BenefitFacts, FaultCost, FaultSample, PrivateTables, ProcessSample};
use crate::page_fault_runs::FaultCostRuns;
use crate::{Benefit, private_table_count, sampling};

/// The shortest time from one reading of [`Observation::see_newcomers`] to the next.
pub const NEWCOMER_INTERVAL: Duration = Duration::from_millis(500);

/// The server that is observed.
#[derive(Clone, Copy, Debug)]
pub struct ObservedServer {
    /// The process id of its postmaster; `None` if its processes are not visible.
    pub postmaster: Option<i32>,
    /// The size of its main segment.
    pub segment: Bytes,
    /// The pages in which the main segment is.
    pub landing: Landing,
    /// The page size of that mapping; `None` if unknown.
    pub page_size: Option<PageSize>,
    /// `max_connections`; `None` if unknown.
    pub max_connections: Option<u64>,
}

/// An observation that has begun.
#[derive(Debug)]
pub struct Observation {
    server: ObservedServer,
    before: FaultSample,
    newcomers: Vec<ProcessSample>,
    newcomers_seen_at: Instant,
    begun: Instant,
}

/// Adds runs to the cost of a page fault here; a note if they fail.
pub fn measure_cost(runs: &mut FaultCostRuns, check: impl FnMut(), notes: &mut Notes) {
    if let Err(error) = runs.measure(check) {
        notes.add(format!("could not measure the cost of a page fault: {error}"));
    }
}

impl Observation {
    /// The first pass. `check` is called before each process.
    pub fn begin(root: &Root, server: ObservedServer, check: impl FnMut(), notes: &mut Notes) -> Self {
        let before = sample(root, &server, None, check, notes);
        Self { server, before, newcomers: Vec::new(), newcomers_seen_at: Instant::now(), begun: Instant::now() }
    }

    /// Sees processes between the passes that may be gone at the second one. At most every half of a second it lists
    /// the postmaster's children, and reads up to 16 new ones.
    pub fn see_newcomers(&mut self, root: &Root, check: impl FnMut(), notes: &mut Notes) {
        if let Some(postmaster) = self.server.postmaster
            && self.newcomers_seen_at.elapsed() >= NEWCOMER_INTERVAL
        {
            sampling::see_newcomers(root, postmaster, &self.before, &mut self.newcomers, check, notes);
            self.newcomers_seen_at = Instant::now();
        }
    }

    /// The part of `interval` that is left.
    pub fn left(&self, interval: Duration) -> Duration {
        interval.saturating_sub(self.begun.elapsed())
    }

    /// The second pass. `sessions` finds the processes that serve clients; `cost` is asked for when the processes have been
    /// read.
    pub fn end(
        self,
        root: &Root,
        sessions: impl FnOnce(&FaultSample) -> Vec<i32>,
        mut check: impl FnMut(),
        cost: impl FnOnce(&mut Notes) -> Option<FaultCost>,
        notes: &mut Notes,
    ) -> Benefit {
        let elapsed = self.begun.elapsed();
        let after = sample(root, &self.server, Some(&self.before), &mut check, notes);
        let sessions = sessions(&after);
        let private_tables = match self.server.landing {
            Landing::Base => private_table_count::take(root, &after, &sessions, PageSize::base(), check, notes),
            _ => PrivateTables::default(),
        };
        let sizes = notes.keep(pool::sizes(root));
        let meminfo = notes.keep(Meminfo::read(root));
        Benefit::estimate(&BenefitFacts {
            samples: [&self.before, &after],
            newcomers: &self.newcomers,
            elapsed,
            observer: std::process::id().cast_signed(),
            sessions: &sessions,
            private_tables: &private_tables,
            cost: cost(notes),
            segment: self.server.segment,
            landing: self.server.landing,
            page_size: self.server.page_size,
            base: PageSize::base(),
            sizes: sizes.as_deref(),
            max_connections: self.server.max_connections,
            memory: meminfo.and_then(|meminfo| meminfo.mem_total),
        })
    }
}

/// Takes a sample. It has no process if none could be read: then all that depends on them is unknown.
fn sample(
    root: &Root,
    server: &ObservedServer,
    before: Option<&FaultSample>,
    check: impl FnMut(),
    notes: &mut Notes,
) -> FaultSample {
    let Some(postmaster) = server.postmaster else { return FaultSample::default() };
    let taken = sampling::take(root, postmaster, before, check, notes);
    notes.keep(taken).unwrap_or_default()
}
