//! What sets the pool at the next boot of the host, and which files the configuration includes: read by a child of the asker,
//! because any of these files may not answer.

use std::io;
use std::path::PathBuf;
use std::time::Instant;

use hugepage_kernel::next_boot::{NextBoot, PoolAtBoot};
use hugepage_kernel::postgresql::postgresql_conf::Configuration;
use hugepage_kernel::{InstanceFiles, Notes, PageSize, Pages, Root};

use super::child;
use crate::server;

/// The pool of `size` at the next boot; the reason why it is unknown if the child has no answer.
pub fn pool(size: PageSize, deadline: Instant) -> PoolAtBoot {
    let read = || to_text(&NextBoot::read(&Root::live()).pool(size));
    match child::read("reading what sets the pool at the next boot", deadline, read) {
        Ok(text) => of_text(&text),
        Err(error) => PoolAtBoot::Unknown(error.to_string()),
    }
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

fn to_text(pool: &PoolAtBoot) -> String {
    match pool {
        PoolAtBoot::Set(pages, file) => format!("{} {file}", pages.0),
        PoolAtBoot::Unset => "unset".to_owned(),
        PoolAtBoot::Unknown(why) => format!("unknown {why}"),
    }
}

fn of_text(text: &str) -> PoolAtBoot {
    let (first, rest) = text.split_once(' ').unwrap_or((text, ""));
    match (first, first.parse()) {
        (_, Ok(pages)) => PoolAtBoot::Set(Pages(pages), rest.to_owned()),
        ("unset", _) => PoolAtBoot::Unset,
        _ => PoolAtBoot::Unknown(rest.to_owned()),
    }
}
