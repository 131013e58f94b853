//! What sets the pool at the next boot, and which files the configuration includes: children read both, because a file may hang.

use std::path::Path;
use std::time::Duration;

use hugepage_kernel::next_boot::NextBoot;
use hugepage_kernel::postgresql::postgresql_conf::Configuration;
use hugepage_kernel::{InstanceFiles, Notes, ROOT};
use hugepage_server::history::boots;

use super::child;
use crate::{history, latch, log, server, shared, shmem};

/// The time between two looks at what sets the pool at the next boot.
pub const INTERVAL: Duration = Duration::from_secs(3600);

/// Whether what sets the pool at the next boot is to be read.
pub fn is_due() -> bool {
    shmem::generation().is_some()
        && shared::since_boot_was_read().is_none_or(|since| since >= INTERVAL)
}

/// Reads which files the configuration includes, and what sets the pool at the next boot, for shared memory.
pub fn read_files(with_boot: bool) {
    let files = child::read(
        "reading which files the configuration includes",
        included_files,
    )
    .map_err(|error| format!("could not find the configuration files: {error}"));
    if latch::is_stopping() {
        return;
    }
    if let Some(files) = log::ok_or_log("find the configuration files", files) {
        shared::set_included_files(&files.lines().collect::<Vec<_>>());
    }
    if with_boot {
        let boot = child::read("reading what sets the pool at the next boot", next_boot);
        let boot = boot.and_then(|text| Ok(serde_json::from_str(&text)?));
        shared::set_boot(&boot.map_err(|error| error.to_string()));
    }
}

/// The files and directories that the configuration consists of, missing ones too, a line each: nothing if some can't be named,
/// or were not read to their end.
fn included_files() -> String {
    let (mut files, mut unread) = (Configuration::default(), Notes::default());
    files.add(
        &InstanceFiles::own(&ROOT),
        &server::config_file(),
        &mut unread,
    );
    let names: Vec<_> = files
        .sources
        .iter()
        .map(|path| path.to_string_lossy())
        .collect();
    let is_whole =
        unread.into_vec().is_empty() && !names.iter().any(|name| name.contains(['\n', '\u{fffd}']));
    if is_whole {
        names.join("\n")
    } else {
        String::new()
    }
}

/// What the next boot gives, a [`NextBoot`] as JSON, with what this server or the sidecar has seen of the last one.
fn next_boot() -> String {
    let mut boot = NextBoot::read(&ROOT);
    let (of_sidecar, damage) = boots::looks(&ROOT, Path::new(boots::DIRECTORY));
    let own = history::first_look(&boot.look.boot_id);
    // The worker records this look, if it is the first.
    let looks = of_sidecar.into_iter().chain(own).chain([boot.look.clone()]);
    boot.recall((looks, damage));
    serde_json::to_string(&boot).unwrap_or_default()
}
