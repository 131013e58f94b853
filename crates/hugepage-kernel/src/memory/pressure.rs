//! /proc/pressure/memory: the share of time that tasks waited for memory (accounting/psi).

use crate::Root;

/// The file, of kernels since 4.20 that are built with PSI.
pub const PATH: &str = "/proc/pressure/memory";

/// An average of one window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Average {
    /// `some`: at least one task waited; `full`: all tasks did.
    pub tasks: String,
    /// `avg10`, `avg60` or `avg300`: over how many seconds.
    pub window: String,
    /// The percentage of that time, as the kernel prints it.
    pub percent: String,
}

/// All averages, in the order of the file; empty on a kernel without PSI. One that was booted without PSI refuses to read it.
pub fn memory(root: &Root) -> Vec<Average> {
    let text = root.read(PATH).unwrap_or_default();
    let averages = text.lines().flat_map(|line| {
        let mut words = line.split_ascii_whitespace();
        let tasks = words.next().unwrap_or_default();
        let pairs = words.filter_map(|word| word.split_once('=')).filter(|(window, _)| window.starts_with("avg"));
        pairs.map(move |(window, percent)| Average {
            tasks: tasks.to_owned(),
            window: window.to_owned(),
            percent: percent.to_owned(),
        })
    });
    averages.collect()
}
