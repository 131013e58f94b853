//! Page faults on shared memory, as two looks at the processes of a server tell them.

use hugepage_assess::assessment::sessions::HUGE_SIZES;
use hugepage_kernel::proc::process::ProcessStatus;
use hugepage_kernel::{Bytes, PageSize};

use crate::model::{BenefitFacts, FaultCost, ProcessSample};

/// Faults on shared memory and the base pages that they mapped.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SharedFaults {
    pub(super) faults: f64,
    pub(super) pages: f64,
    /// The largest number of faults in pages of each of [`HUGE_SIZES`].
    pub(super) huge: [f64; 2],
    /// All minor faults, those on private memory too.
    pub(super) all: f64,
    /// Whether there were more faults than pages: how many were on shared memory is modelled.
    pub(super) is_ambiguous: bool,
}

impl SharedFaults {
    pub(super) fn add(&mut self, other: Self) {
        self.faults += other.faults;
        self.pages += other.pages;
        self.all += other.all;
        for (sum, part) in self.huge.iter_mut().zip(other.huge) {
            *sum += part;
        }
        self.is_ambiguous |= other.is_ambiguous;
    }

    pub(super) fn of_size(&self, size: PageSize) -> f64 {
        HUGE_SIZES.iter().zip(self.huge).find(|(one, _)| **one == size.bytes().0).map_or(0.0, |(_, faults)| faults)
    }

    pub(super) fn times(&self, factor: f64) -> Self {
        Self {
            faults: self.faults * factor,
            pages: self.pages * factor,
            huge: self.huge.map(|faults| faults * factor),
            all: self.all * factor,
            is_ambiguous: true,
        }
    }
}

/// The faults of a process since an earlier moment, or since its start.
pub(super) fn faults_between(
    before: Option<&ProcessSample>,
    after: &ProcessSample,
    facts: &BenefitFacts<'_>,
    cost: &FaultCost,
) -> SharedFaults {
    let grown = |take: fn(&ProcessStatus) -> Option<Bytes>| {
        let then = before.and_then(|one| take(&one.status)).unwrap_or_default();
        pages_of(take(&after.status).unwrap_or_default().saturating_sub(then), facts.base)
    };
    let all = after.stat.minor_faults.saturating_sub(before.map_or(0, |one| one.stat.minor_faults));
    #[allow(clippy::cast_precision_loss)]
    let all = all as f64;
    let pages = grown(|status| status.rss_shmem);
    let private = grown(|status| status.rss_anon) + grown(|status| status.rss_file) / cost.pages_per_read_fault;
    let rest = all - private;
    let faults = rest.clamp(pages / cost.pages_per_read_fault, pages);
    let huge = HUGE_SIZES.map(|size| PageSize::new(size).map_or(0.0, |size| faults.min(pages_of(facts.segment, size))));
    SharedFaults { faults, pages, huge, all, is_ambiguous: rest > pages && pages > 0.0 }
}

/// All faults on shared memory within the interval, and whether those of short sessions are missing.
pub(super) fn growth(facts: &BenefitFacts<'_>, cost: &FaultCost) -> (SharedFaults, bool) {
    let [before, after] = facts.samples;
    let mut sum = SharedFaults::default();
    // Short sessions as far as they were seen: begun within the interval, or ended within it.
    let mut short = SharedFaults::default();
    for process in after.processes.iter().filter(|process| process.pid != facts.observer) {
        let then = before.same(process);
        let faults = faults_between(then, process, facts, cost);
        sum.add(faults);
        if then.is_none() {
            short.add(faults);
        }
    }
    for process in facts.newcomers.iter().filter(|process| after.same(process).is_none()) {
        short.add(faults_between(None, process, facts, cost));
    }
    let mut before_interval = 0;
    for process in before.processes.iter().filter(|process| after.same(process).is_none()) {
        before_interval += process.stat.minor_faults;
        short.add(faults_between(None, process, facts, cost));
    }
    let ended = after.faults_of_ended.saturating_sub(before.faults_of_ended).saturating_sub(before_interval);
    #[allow(clippy::cast_precision_loss)]
    let ended = ended as f64;
    if short.all > 0.0 {
        sum.add(short.times(ended / short.all));
    }
    (sum, short.all <= 0.0 && ended > 0.0)
}

#[allow(clippy::cast_precision_loss)]
pub(super) fn pages_of(size: Bytes, page: PageSize) -> f64 {
    page.pages_to_hold(size).0 as f64
}
