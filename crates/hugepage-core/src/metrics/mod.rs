//! What monitoring sees: the metrics of a host and of the instances on it, the same from every face of ours.
//!
//! Each metric is defined once, in [`definitions`]: its name, its unit, its HELP, and where its value comes from. All
//! are gauges, and those for texts have a series for each text that there can be, 1 for the one that holds: so the
//! result is OpenMetrics, and node_exporter's textfile collector, which knows only the older text format, reads it too.
//! What is unknown has no sample.

mod definitions;
mod openmetrics;
#[cfg(feature = "oracle")]
mod survey;

use crate::Bytes;
use crate::assess::Status;
use crate::assess::page_tables::PageTables;
use crate::collect::pools::PoolRow;
use crate::read::meminfo::Meminfo;

/// A host and what runs on it, at one moment.
#[derive(Clone, Debug)]
pub struct MetricsSnapshot {
    /// The instances; no two of one kind may have the same name.
    pub instances: Vec<InstanceMetrics>,
    /// The pools of all page sizes, and the nodes' shares of them.
    pub pools: Vec<PoolRow>,
    /// The host's memory; `None` if it could not be read.
    pub meminfo: Option<Meminfo>,
}

/// One instance of a database system.
#[derive(Clone, Debug)]
pub struct InstanceMetrics {
    /// What it is an instance of: `postgresql`, `oracle`.
    pub kind: String,
    /// What tells it from the others of its kind on this host: PostgreSQL's data directory, Oracle's SID.
    pub name: String,
    /// Its assessment.
    pub status: Status,
    /// The page tables of its processes; `None` if nobody has looked.
    pub page_tables: Option<PageTables>,
    /// What they would be if every connection that it allows had touched all of shared memory.
    pub page_tables_at_max: Option<Bytes>,
    /// Allocations of shared memory by its postmaster; `None` if that is not counted.
    pub generation: Option<u64>,
}

/// One metric with its samples, at least one.
#[derive(Clone, Debug)]
pub(crate) struct Family {
    name: &'static str,
    unit: Option<&'static str>,
    help: &'static str,
    samples: Vec<Sample>,
}

/// One value; the labels have names of ours and values of the kernel's or the server's.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    labels: Labels,
    value: u64,
}

type Labels = Vec<(&'static str, String)>;

/// The text, as OpenMetrics 1.0 has it, `# EOF` at its end.
pub fn text(snapshot: &MetricsSnapshot) -> String {
    openmetrics::text(definitions::families(snapshot))
}
