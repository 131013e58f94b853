//! Control groups: limits on huge pages and on memory, of version 1 and 2.

pub mod cgroup;
pub mod memory;
