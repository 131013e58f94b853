//! Oracle instances: what they show to the operating system, what they ask for at a start, and what they would get.
//!
//! [`running`] and [`stopped`] are the two ways in.
//!
//! ```
//! use hugepage_oracle::readers::OracleProcess;
//!
//! assert!(OracleProcess::parse("ora_pmon_ORCL").is_some());
//! assert!(OracleProcess::parse("postgres").is_none());
//! ```

mod advice;
pub mod manual;
pub mod next_start;
pub mod readers;
pub mod running;
pub mod settings;
pub mod sga;
pub mod shm_devices;
pub mod start_limits;
pub mod stopped;
mod stopped_start;

pub use stopped_start::stopped_oracle;
