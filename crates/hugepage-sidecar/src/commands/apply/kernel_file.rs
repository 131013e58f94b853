//! Files of the kernel that are written.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

use anyhow::Context;

/// The directory of the pools' files.
pub const POOLS: &str = "/sys/kernel/mm/hugepages";

/// Writes a file of the kernel.
pub fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    let written = OpenOptions::new().write(true).open(path).and_then(|mut file| file.write_all(text.as_bytes()));
    written.with_context(|| format!("could not write \"{text}\" to {}", path.display()))
}
