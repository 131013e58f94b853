//! The memory of the host: its pools of huge pages, free memory, and the settings of the kernel.

pub mod kernel_limits;
pub mod meminfo;
pub mod node;
pub mod pool;
pub mod sysctl;
pub mod sysvipc;
pub mod thp;
