//! What a test of several crates measures: that reading does not fill memory.

use std::fs;

/// The most that this process has ever had in memory (VmHWM, proc(5)), in bytes.
pub fn most_resident() -> u64 {
    let text = fs::read_to_string("/proc/self/status").unwrap();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .unwrap();
    line.split_ascii_whitespace()
        .next()
        .unwrap()
        .parse::<u64>()
        .unwrap()
        << 10
}
