//! Files of the kernel that are written.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use anyhow::Context;

/// The directory of the pools' files.
pub const POOLS: &str = "/sys/kernel/mm/hugepages";

/// Opens a file of the kernel for writing.
#[expect(clippy::disallowed_methods, reason = "/proc/sys and /sys")]
pub fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).open(path)
}

/// Writes a file of the kernel.
pub fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    let written = open(path).and_then(|mut file| file.write_all(text.as_bytes()));
    written.with_context(|| format!("could not write \"{text}\" to {}", path.display()))
}
