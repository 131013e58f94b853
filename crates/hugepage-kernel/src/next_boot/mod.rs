//! What the next boot will set: sysctl.d, tmpfiles.d, units, the command line of the kernel, and the boot loader.

pub mod boot;
pub(crate) mod boot_loader;
pub mod boot_writers;
