//! Files of one process in /proc (proc(5)): its status, limits, user and namespaces.

pub(crate) mod auxv;
pub mod namespace;
pub mod process;
pub mod program;
pub mod rlimit;
