//! What the kernel grants a start in base pages.

use hugepage_kernel::Bytes;

/// A limit of the kernel on shared memory in base pages, beyond which it refuses a start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BaseLimit {
    /// What sets it.
    pub name: String,
    /// The most that it certainly grants.
    pub granted: Bytes,
    /// More than this it certainly refuses.
    pub most: Bytes,
}

impl BaseLimit {
    /// A limit with the kernel's name of what sets it.
    pub fn new(name: &str, granted: Bytes, most: Bytes) -> Self {
        let name = name.to_owned();
        Self {
            name,
            granted,
            most,
        }
    }
}
