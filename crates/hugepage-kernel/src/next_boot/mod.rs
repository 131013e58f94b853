//! What the next boot will set: sysctl.d, tmpfiles.d, units, the command line of the kernel, and the boot loader.

pub mod boot;
pub(crate) mod boot_loader;
pub mod boot_programs;
pub(crate) mod boot_units;
pub mod boot_writers;
pub mod command_line;
pub(crate) mod hugetlb_parser;
pub mod kernel_words;
pub mod machine;
pub mod mention;
pub mod pool_at_boot;
pub(crate) mod pools;
pub mod releases;
pub mod tuned;
pub(crate) mod unit_keys;
