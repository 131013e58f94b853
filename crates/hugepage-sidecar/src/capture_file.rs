//! A file with all that was read of a host.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use anyhow::{Context, ensure};
use hugepage_host::Snapshot;
use serde::{Deserialize, Serialize};

/// The version that writes and reads a file: another one may know other facts.
const VERSION: &str = env!("CARGO_PKG_VERSION");
/// More bytes than a capture has, because another file in its place may have no end.
const MAX_BYTES: u64 = 16 << 20;

/// The content of a file.
#[derive(Serialize, Deserialize)]
pub struct Capture<S> {
    hugepage_sidecar: String,
    snapshot: S,
}

pub fn of(snapshot: Snapshot) -> Capture<Snapshot> {
    Capture { hugepage_sidecar: VERSION.to_owned(), snapshot }
}

/// The snapshot in a file.
#[expect(clippy::disallowed_methods, reason = "a file that the command line names")]
pub fn read(file: &Path) -> anyhow::Result<Snapshot> {
    let name = || format!("could not read \"{}\"", file.display());
    let mut text = Vec::new();
    let length = File::open(file).and_then(|file| file.take(MAX_BYTES).read_to_end(&mut text)).with_context(name)?;
    ensure!((length as u64) < MAX_BYTES, "{}: it is longer than 16 MB", name());
    let found: Capture<serde_json::Value> =
        serde_json::from_slice(&text).context("it is no output of `hugepage-sidecar capture`").with_context(name)?;
    let by = found.hugepage_sidecar;
    ensure!(by == VERSION, "{}: version {by} wrote it, and this is {VERSION}", name());
    serde_json::from_value(found.snapshot).with_context(name)
}
