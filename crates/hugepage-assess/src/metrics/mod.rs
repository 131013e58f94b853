//! The metrics of a host and of its instances.
//!
//! Each metric is defined once, in [`definitions`]: its name, its unit, its HELP, and the source of its value. All are
//! gauges. A metric of a state has a series for each possible state, 1 for the present one. The result is OpenMetrics that
//! node_exporter's textfile collector can also read. That knows only the older text format, which has no types for infos and
//! sets of states. Unknown values have no sample.

mod definitions;
mod metric;
mod openmetrics;

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

use hugepage_kernel::memory::meminfo::Meminfo;
use hugepage_kernel::{Pages, escape};

use crate::assessment::page_tables::PageTables;
use crate::assessment::stopped::StoppedState;
use crate::assessment::{Outlook, Severity, Status};
use crate::pools::PoolRow;

/// A host and its instances at one moment.
#[derive(Clone, Debug)]
pub struct MetricsSnapshot {
    /// The instances; no two of one kind may have the same name.
    pub instances: Vec<InstanceMetrics>,
    /// Instances that do not run; no two of one kind may have the same name.
    pub stopped: Vec<StoppedMetrics>,
    /// The pools of all page sizes, and the nodes' shares of them.
    pub pools: Vec<PoolRow>,
    /// The host's memory; `None` if it could not be read.
    pub meminfo: Option<Meminfo>,
    /// The instances whose shared memory could not be inspected.
    pub uninspected: u64,
    /// The time that the survey took; `None` for captured files.
    pub survey_duration: Option<Duration>,
}

/// One instance of a database system.
#[derive(Clone, Debug)]
pub struct InstanceMetrics {
    /// The product: `postgresql`, `oracle`.
    pub kind: String,
    /// Unique on this host among its kind: PostgreSQL's data directory, Oracle's SID.
    pub name: String,
    /// The assessment.
    pub status: Status,
    /// The page tables of its processes; `None` if they were not read.
    pub page_tables: Option<PageTables>,
    /// When its history has the last loss of huge pages; `None` without one.
    pub last_regression: Option<SystemTime>,
}

/// An instance that is configured and does not run: an Oracle instance of oratab.
#[derive(Clone, Debug)]
pub struct StoppedMetrics {
    /// As of [`InstanceMetrics`], also the next one.
    pub kind: String,
    /// The SID.
    pub name: String,
    /// `stopped`, or `failed` if its last start failed.
    pub state: StoppedState,
    /// How severe that is.
    pub severity: Severity,
    /// What its next start would get.
    pub outlook: Outlook,
    /// The huge pages that its next start needs; 0 if none, `None` if unknown.
    pub needed: Option<Pages>,
    /// The needed pages that the pool could not give it now.
    pub missing: Option<Pages>,
}

/// One metric with its samples, at least one.
#[derive(Clone, Debug)]
pub(crate) struct Family {
    name: &'static str,
    unit: Option<&'static str>,
    help: &'static str,
    samples: Vec<Sample>,
}

/// One value with its labels.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    labels: Labels,
    value: Number,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Number {
    Whole(u64),
    Seconds(f64),
}

type Labels = Vec<(&'static str, String)>;

/// The text in OpenMetrics 1.0, with `# EOF` at its end.
pub fn text(snapshot: &MetricsSnapshot) -> String {
    let mut snapshot = snapshot.clone();
    make_unique(snapshot.instances.iter_mut().map(|instance| (&instance.kind, &mut instance.name)));
    make_unique(snapshot.stopped.iter_mut().map(|stopped| (&stopped.kind, &mut stopped.name)));
    openmetrics::text(definitions::families(&snapshot))
}

/// Escapes the names, and numbers those that are then equal: a duplicate series makes the whole text invalid.
fn make_unique<'a>(names: impl Iterator<Item = (&'a String, &'a mut String)>) {
    let mut seen = BTreeSet::new();
    for (kind, name) in names {
        let escaped = escape::lines(name);
        let numbered = (2..).map(|number| format!("{escaped} ({number})"));
        let mut candidates = std::iter::once(escaped.clone()).chain(numbered);
        *name = candidates.find(|name| seen.insert((kind, name.clone()))).unwrap_or_default();
    }
}
