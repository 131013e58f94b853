//! What identifies the host: its names, its kernel, its accounts and mounts.

pub mod accounts;
pub mod identity;
pub mod kernel_release;
pub mod local_path;
pub mod mounts;
pub mod reserve_unit;
