//! The memory of a process: its mappings, their pages and nodes, and the segments that several processes share.

pub mod maps;
pub mod memory_policy;
pub mod numa_maps;
pub mod own_mapping;
pub mod page_nodes;
pub mod procmap_query;
pub mod smaps;
