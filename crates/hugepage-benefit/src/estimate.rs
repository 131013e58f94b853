//! What huge pages would save a server that runs in base pages: from two samples of its processes and the cost of a page
//! fault on this machine.
//!
//! A process that touches a page of shared memory for the first time has a page fault, and `RssShmem` grows. The kernel
//! counts the faults of a process, but not by memory: those on private memory and files are subtracted by the growth of
//! `RssAnon` and `RssFile`. What remains lies between one fault for each page, and one for as many as a read fault maps.

use std::time::Duration;

use hugepage_assess::assessment::page_tables::{PageTables, tables};
use hugepage_assess::assessment::sessions::{HUGE_SIZES, MIN_SHARE_OF_MEMORY};
use hugepage_assess::model::Landing;
use hugepage_kernel::{Bytes, PageSize};

use crate::benefit_value::{BenefitValue, Confidence};
use crate::model::{BenefitFacts, FaultSample, ProcessSample};
use crate::shared_faults::{growth, pages_of};
use crate::shared_tables::SharedTables;

/// The least savings for which a restart is worth it: of one CPU, and for a session, in CPU seconds.
const MIN_CPU: f64 = 0.01;
const MIN_WARM_UP: f64 = 0.010;

/// The savings of huge pages for one server.
#[derive(Clone, Debug)]
pub struct Benefit {
    /// The time that was observed.
    pub elapsed: Duration,
    /// The pages in which shared memory is.
    pub landing: Landing,
    /// The page size of the segment; `None` if unknown.
    pub page_size: Option<PageSize>,
    /// Page faults on shared memory, in CPU seconds per second.
    pub fault_cpu: BenefitValue,
    /// Page faults until a session has mapped what the typical (median) session has, in CPU seconds.
    pub warm_up: BenefitValue,
    /// Copying page tables of shared memory when a session begins, in CPU seconds.
    pub fork: BenefitValue,
    /// Removing the pages of shared memory from the page tables when a session ends, in CPU seconds.
    pub exit: BenefitValue,
    /// The page tables of all processes, in bytes.
    pub page_tables: BenefitValue,
    /// The page tables that another typical session adds for shared memory, in bytes.
    pub page_tables_per_session: BenefitValue,
    /// The page tables with `max_connections` sessions that have touched all of shared memory, in bytes.
    pub page_tables_at_max_connections: BenefitValue,
    /// The page tables that would be freed, in bytes; nothing for base pages.
    pub page_tables_freed: BenefitValue,
    /// Page tables for other memory could not be counted, so that what is freed is a lower bound.
    pub frees_at_least: bool,
    /// Whether sessions that ended within the interval had faults, but no session was seen from which to learn how many
    /// of these were on shared memory.
    pub misses_short_sessions: bool,
    /// Whether a restart into huge pages is worth it by these figures; `None` if they are unknown.
    pub is_worth_it: Option<bool>,
}

impl Benefit {
    /// Assesses a server.
    pub fn estimate(facts: &BenefitFacts<'_>) -> Self {
        let statuses = || facts.samples[1].processes.iter().map(|process| &process.status);
        let sum = PageTables::sum(statuses(), facts.base);
        let mut benefit = Self {
            elapsed: facts.elapsed,
            landing: facts.landing,
            page_size: facts.page_size,
            fault_cpu: BenefitValue::UNKNOWN,
            warm_up: BenefitValue::UNKNOWN,
            fork: BenefitValue::UNKNOWN,
            exit: BenefitValue::UNKNOWN,
            page_tables: BenefitValue::UNKNOWN,
            page_tables_per_session: BenefitValue::UNKNOWN,
            page_tables_at_max_connections: BenefitValue::UNKNOWN,
            page_tables_freed: BenefitValue::UNKNOWN,
            frees_at_least: false,
            misses_short_sessions: false,
            is_worth_it: None,
        };
        if facts.landing != Landing::Base {
            benefit.keep_page_tables(&sum);
            return benefit;
        }
        // The kernel copies none at a fork: the child finds these pages by faults (mm/memory.c, copy_page_range).
        benefit.fork = BenefitValue::new(Confidence::Modelled, 0.0, |_| 0.0);
        benefit.add_page_tables(facts, &sum);
        benefit.add_faults(facts);
        benefit.drop_missing_sizes(facts.sizes);
        benefit.is_worth_it = benefit.is_worth_it(facts.memory);
        benefit
    }

    /// Keeps only the page tables of a server in huge pages, in the column of their size, if there is one: there is
    /// nothing to compare with.
    fn keep_page_tables(&mut self, sum: &PageTables) {
        let Some(total) = sum.total.filter(|_| self.landing == Landing::Hugetlb) else { return };
        let page = self.page_size.map(|size| size.bytes().0);
        let huge = HUGE_SIZES.map(|size| (page == Some(size)).then_some(as_f64(total)));
        if huge.iter().any(Option::is_some) {
            self.page_tables = BenefitValue { base: None, huge, confidence: Confidence::Measured };
        }
    }

    fn add_page_tables(&mut self, facts: &BenefitFacts<'_>, sum: &PageTables) {
        let shared = sum.min.and_then(|min| {
            let (sample, private) = (facts.samples[1], facts.private_tables);
            SharedTables::count(sample, facts.sessions, private, min, facts.segment, facts.base)
        });
        if let Some((total, shared)) = sum.total.zip(shared) {
            let huge = |size| tables(shared.processes, facts.segment, size).min(shared.total);
            let on = |size| as_f64(total.saturating_sub(shared.total)) + as_f64(huge(size));
            self.frees_at_least = shared.is_lower_bound;
            self.page_tables = BenefitValue::new(Confidence::Measured, as_f64(total), on);
            let freed = BenefitValue::new(Confidence::Modelled, 0.0, |size| as_f64(total) - on(size));
            self.page_tables_freed = BenefitValue { base: None, ..freed };
        }
        if let Some(base) = shared.and_then(|shared| shared.of_session) {
            let more = |size| as_f64(tables(2, facts.segment, size).saturating_sub(tables(1, facts.segment, size)));
            let base = as_f64(base);
            self.page_tables_per_session = BenefitValue::new(Confidence::Modelled, base, |size| more(size).min(base));
        }
        if let Some(max) = facts.max_connections
            && let Some(base) = sum.at(max, facts.segment, facts.base)
        {
            let on = |size| sum.at(max, facts.segment, size).map_or(0.0, as_f64);
            self.page_tables_at_max_connections = BenefitValue::new(Confidence::Modelled, as_f64(base), on);
        }
    }

    fn add_faults(&mut self, facts: &BenefitFacts<'_>) {
        let (Some(cost), true) = (facts.cost, knows_shared_memory(facts.samples[1])) else { return };
        let (growth, misses_short_sessions) = growth(facts, &cost);
        self.misses_short_sessions = misses_short_sessions;
        let seconds = facts.elapsed.as_secs_f64();
        let is_modelled = growth.is_ambiguous || misses_short_sessions;
        let confidence = if is_modelled { Confidence::Modelled } else { Confidence::Measured };
        if seconds > 0.0 {
            let base = cost.of_base(growth.faults, growth.pages) / seconds;
            self.fault_cpu =
                BenefitValue::new(confidence, base, |size| (cost.of_huge(growth.of_size(size)) / seconds).min(base));
        }
        let Some(warm) = typical_session(facts) else { return };
        let pages = pages_of(warm, facts.base);
        // As many pages in a fault as in the interval; without a fault then, as many as a read fault maps.
        let per_page = if growth.pages > 0.0 { growth.faults / growth.pages } else { 1.0 / cost.pages_per_read_fault };
        let faults = pages * per_page;
        let base = cost.of_base(faults, pages);
        let at_most = |size: PageSize| faults.min(pages_of(facts.segment, size));
        self.warm_up = BenefitValue::new(Confidence::Modelled, base, |size| cost.of_huge(at_most(size)).min(base));
        let base = pages * cost.per_unmapped_page;
        self.exit =
            BenefitValue::new(Confidence::Modelled, base, |size| (at_most(size) * cost.per_unmapped_page).min(base));
    }

    fn drop_missing_sizes(&mut self, sizes: Option<&[PageSize]>) {
        let is_missing = |size: u64| sizes.is_some_and(|sizes| sizes.iter().all(|one| one.bytes().0 != size));
        for value in self.values_mut() {
            for (of_size, size) in value.huge.iter_mut().zip(HUGE_SIZES) {
                *of_size = of_size.filter(|_| !is_missing(size));
            }
        }
    }

    fn values_mut(&mut self) -> [&mut BenefitValue; 8] {
        [
            &mut self.fault_cpu,
            &mut self.warm_up,
            &mut self.fork,
            &mut self.exit,
            &mut self.page_tables,
            &mut self.page_tables_per_session,
            &mut self.page_tables_at_max_connections,
            &mut self.page_tables_freed,
        ]
    }

    /// Whether any of the three savings is large enough; `None` if none is and one is unknown.
    fn is_worth_it(&self, memory: Option<Bytes>) -> Option<bool> {
        let share = self.page_tables.saving().zip(memory).map(|(saved, memory)| saved / as_f64(memory));
        let warm_up = self.warm_up.saving().or(self.fault_cpu.base.map(|_| 0.0));
        let exceeds = [
            self.fault_cpu.saving().map(|saved| saved >= MIN_CPU),
            warm_up.map(|saved| saved >= MIN_WARM_UP),
            share.map(|share| share >= MIN_SHARE_OF_MEMORY),
        ];
        if exceeds.contains(&Some(true)) { Some(true) } else { exceeds.iter().all(Option::is_some).then_some(false) }
    }
}

/// The shared memory that the median session has mapped; `None` without sessions.
fn typical_session(facts: &BenefitFacts<'_>) -> Option<Bytes> {
    let of_session = |process: &&ProcessSample| facts.sessions.contains(&process.pid);
    let sessions = facts.samples[1].processes.iter().filter(of_session);
    let mut sizes: Vec<_> = sessions.filter_map(|process| process.status.rss_shmem).collect();
    sizes.sort_unstable();
    sizes.get(sizes.len() / 2).copied()
}

/// `RssShmem` is there since Linux 4.5.
fn knows_shared_memory(sample: &FaultSample) -> bool {
    sample.processes.iter().any(|process| process.status.rss_shmem.is_some())
}

#[allow(clippy::cast_precision_loss)]
const fn as_f64(size: Bytes) -> f64 {
    size.0 as f64
}
