//! What sets the pool at the next boot, and which files the configuration includes: a child reads it, because a file may hang.

use std::io;
use std::path::PathBuf;
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

/// The files and directories that the configuration consists of, missing ones too; an error if they could not be read.
pub fn included_files(deadline: Instant) -> io::Result<Vec<PathBuf>> {
    let read = || {
        let own = InstanceFiles::own(&Root::live());
        let mut files = Configuration::default();
        files.add(&own, &server::config_file(), &mut Notes::default());
        let names = files.sources.iter().map(|path| path.to_string_lossy());
        names.collect::<Vec<_>>().join("\n")
    };
    let text = child::read("reading which files the configuration includes", deadline, read)?;
    Ok(text.lines().map(PathBuf::from).collect())
}
