//! One file for each subcommand.

pub mod apply;
pub mod capture;
pub mod check;
pub mod explain;
pub mod metrics;
pub mod oracle;
pub mod report;
pub mod size;
pub mod status;
pub mod survey;
pub mod watch;
