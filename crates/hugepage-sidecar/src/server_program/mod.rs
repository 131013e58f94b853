//! The program `postgres`, asked for the size of its shared memory: which one is trusted, and what it may do.

pub mod asked_starts;
pub mod child;
pub mod empty_cluster;
pub mod libraries;
pub mod trust;

use std::path::PathBuf;
use std::time::Duration;

/// Timeout of `postgres -C`, which usually takes hundredths of a second.
pub const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);

/// Where Debian's and Red Hat's packages have the server of a major version.
pub fn packaged(major: u32) -> impl Iterator<Item = PathBuf> {
    let paths = ["/usr/lib/postgresql/{}/bin/postgres", "/usr/pgsql-{}/bin/postgres"];
    paths.into_iter().map(move |path| PathBuf::from(path.replace("{}", &major.to_string())))
}
