//! /proc/pressure/memory: the share of time that tasks waited for memory (accounting/psi).

use crate::Root;

/// The file, of kernels since 4.20 that are built with PSI.
pub const PATH: &str = "/proc/pressure/memory";

/// The average of each window, `some avg10` to `full avg300`, and its percentage, as the kernel prints it; empty on a kernel without
/// PSI. One that was booted without PSI refuses to read it.
pub fn memory(root: &Root) -> Vec<(String, String)> {
    let text = root.read(PATH).unwrap_or_default();
    let averages = text.lines().flat_map(|line| {
        let (tasks, windows) = line.split_once(' ').unwrap_or_default();
        let pairs = windows.split_ascii_whitespace().filter_map(|word| word.split_once('='));
        pairs.map(move |(window, percent)| (format!("{tasks} {window}"), percent.to_owned()))
    });
    averages.filter(|(name, _)| name.contains(" avg")).collect()
}
