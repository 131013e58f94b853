//! What the kernel tells of the processes of others, beside what `hugepage_kernel` reads of any process.

pub(crate) mod credentials;
pub(crate) mod glance;
pub(crate) mod memory_limit;
