//! The memory of the host: its pools of huge pages, free memory, and the settings of the kernel.

pub mod meminfo;
pub mod pool;
pub mod sysctl;
pub mod thp;
