//! What sets the pool at the next boot, and which files the configuration includes: a child reads it, because a file may hang.

use std::io;
use std::time::Instant;

use hugepage_kernel::next_boot::{NextBoot, PoolAtBoot};
use hugepage_kernel::postgresql::postgresql_conf::Configuration;
use hugepage_kernel::{InstanceFiles, Notes, PageSize, Root};

use super::child;
use crate::server;

/// The pool of `size` at the next boot, as [`boot`](crate::found::boot) takes it; the reason why it is unknown where the child has no answer.
pub fn pool(size: PageSize, deadline: Instant) -> String {
    let read = || match NextBoot::read(&Root::live()).pool(size) {
        PoolAtBoot::Set(pages, file) => format!("{pages} {file}"),
        PoolAtBoot::Unset => "unset".to_owned(),
        PoolAtBoot::Unknown(why) => format!("unknown {why}"),
    };
    child::read("reading what sets the pool at the next boot", deadline, read)
        .unwrap_or_else(|error| format!("unknown {error}"))
}

/// The files and directories that the configuration consists of, missing ones too, a line each: nothing if some can't be named,
/// or were not read to their end. An error if none could be read.
pub fn included_files(deadline: Instant) -> io::Result<String> {
    let read = || {
        let (mut files, mut unread) = (Configuration::default(), Notes::default());
        files.add(&InstanceFiles::own(&Root::live()), &server::config_file(), &mut unread);
        let names: Vec<_> = files.sources.iter().map(|path| path.to_string_lossy()).collect();
        let is_whole = unread.into_vec().is_empty() && !names.iter().any(|name| name.contains(['\n', '\u{fffd}']));
        if is_whole { names.join("\n") } else { String::new() }
    };
    child::read("reading which files the configuration includes", deadline, read)
}
