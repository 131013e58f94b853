//! How often an event happens in a cycle, by the hardware counters of several processes.
//!
//! A CPU with fewer counters than events counts each group for a part of the time. The kernel tells both times, and what a
//! process has counted is scaled by them, as perf-stat does.

use crate::model::NotCounted;
use crate::read::perf_counters::GroupCounts;

/// Events for each cycle of the processes together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CycleShare {
    /// 0.05 means five events in a hundred cycles.
    pub events: f64,
    /// Each process was counted all the time that it ran.
    pub is_exact: bool,
}

impl CycleShare {
    /// Of groups whose first event is cycles.
    pub fn of(counts: &[GroupCounts]) -> Result<Self, NotCounted> {
        let (mut cycles, mut events, mut is_exact) = (0.0, 0.0, true);
        for group in counts {
            is_exact &= group.running >= group.enabled;
            // One that ran, but never had a counter: how much is missing is not known.
            let (Some((first, rest)), true) = (group.values.split_first(), group.running > 0) else { continue };
            let scale = as_f64(group.enabled) / as_f64(group.running);
            cycles += as_f64(*first) * scale;
            events += rest.iter().map(|count| as_f64(*count)).sum::<f64>() * scale;
        }
        if cycles > 0.0 { Ok(Self { events: events / cycles, is_exact }) } else { Err(NotCounted::NotRun) }
    }
}

#[allow(clippy::cast_precision_loss)]
const fn as_f64(count: u64) -> f64 {
    count as f64
}
