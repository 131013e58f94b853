//! One file for each subcommand; that of `capture` is `survey`.

pub mod apply;
pub mod check;
pub mod collapse;
pub mod completions;
pub mod explain;
pub mod metrics;
pub mod oracle;
pub mod report;
pub mod reserve;
pub mod size;
pub mod status;
pub mod survey;
pub mod watch;
