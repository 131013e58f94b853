//! What sets the pool at the next boot, and which files the configuration includes: children read both, because a file may hang.

use std::time::Duration;

use hugepage_kernel::memory::meminfo::Meminfo;
use hugepage_kernel::next_boot::{NextBoot, PoolAtBoot};
use hugepage_kernel::postgresql::postgresql_conf::Configuration;
use hugepage_kernel::{InstanceFiles, Notes, PageSize, Root};

use super::child;
use crate::{found, latch, log, server, shmem};

/// The time between two looks at what sets the pool at the next boot.
const INTERVAL: Duration = Duration::from_secs(3600);

/// Whether what sets the pool at the next boot is to be read.
pub fn is_due() -> bool {
    shmem::generation().is_some() && found::since_boot_was_read().is_none_or(|since| since >= INTERVAL)
}

/// Reads which files the configuration includes, and what sets the pool at the next boot, for shared memory.
pub fn read_files(with_boot: bool) {
    let files = child::read("reading which files the configuration includes", included_files)
        .map_err(|error| format!("could not find the configuration files: {error}"));
    if latch::is_stopping() {
        return;
    }
    if let Some(files) = log::ok_or_log("find the configuration files", files) {
        found::set_included_files(&files);
    }
    let default = Meminfo::read(&Root::live()).ok().and_then(|meminfo| meminfo.huge_page_size);
    if let Some(size) = server::requested_memory().huge_page_size.or(default).filter(|_| with_boot) {
        let pool = child::read("reading what sets the pool at the next boot", || pool(size));
        found::set_boot(size, &pool.unwrap_or_else(|error| format!("unknown {error}")));
    }
}

/// The files and directories that the configuration consists of, missing ones too, a line each: nothing if some can't be named,
/// or were not read to their end.
fn included_files() -> String {
    let (mut files, mut unread) = (Configuration::default(), Notes::default());
    files.add(&InstanceFiles::own(&Root::live()), &server::config_file(), &mut unread);
    let names: Vec<_> = files.sources.iter().map(|path| path.to_string_lossy()).collect();
    let is_whole = unread.into_vec().is_empty() && !names.iter().any(|name| name.contains(['\n', '\u{fffd}']));
    if is_whole { names.join("\n") } else { String::new() }
}

/// The pool of `size` at the next boot, as [`found::boot`] takes it.
fn pool(size: PageSize) -> String {
    match NextBoot::read(&Root::live()).pool(size) {
        PoolAtBoot::Set(pages, file) => format!("{pages} {file}"),
        PoolAtBoot::Unset => "unset".to_owned(),
        PoolAtBoot::Unknown(why) => format!("unknown {why}"),
    }
}
