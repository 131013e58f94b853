//! What Oracle leaves on disk, as the readers see it: alert logs of the releases in `logs`, whole, damaged and enormous;
//! trees of files that stand for installations; and what instances need.

#![allow(clippy::disallowed_methods)]

mod damage;
mod enormous;
mod files;
mod logs;
mod size;

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, UNIX_EPOCH};

use hugepage_facts::{LastStart, Timestamp};
use hugepage_kernel::proc::rlimit::Rlimit;
use hugepage_kernel::stranger::limit;
use hugepage_kernel::{InstanceFiles, Root};
use hugepage_oracle::readers::alert_log;
use hugepage_oracle::readers::parameters::sga_max_size;
use hugepage_oracle::readers::startup::landed;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// One of `logs`.
fn log(name: &str) -> Vec<u8> {
    fs::read(directory().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn directory() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/readers/logs"))
}

fn names() -> Vec<String> {
    let entries = fs::read_dir(directory()).unwrap();
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort_unstable();
    names
}

fn last_start(bytes: &[u8]) -> Option<LastStart> {
    alert_log::last_start_in(&mut std::io::Cursor::new(bytes), &mut { limit::ALERT_LOG }).unwrap()
}

/// A tree of files; what ends in `/` is a directory.
fn tree(files: &[(&str, &str)]) -> (tempfile::TempDir, Root) {
    let directory = tempfile::tempdir().unwrap();
    for (path, content) in files {
        let place = directory.path().join(path);
        if path.ends_with('/') {
            fs::create_dir_all(place).unwrap();
        } else {
            fs::create_dir_all(place.parent().unwrap()).unwrap();
            fs::write(place, content).unwrap();
        }
    }
    let root = Root::at(directory.path());
    (directory, root)
}

/// All that is known of a start, one fact in a line; what is unknown is left out.
fn facts(start: &LastStart) -> Vec<String> {
    let mut facts = Vec::new();
    let mut fact = |name: &str, value: Option<String>| {
        facts.extend(value.map(|value| format!("{name} {value}")))
    };
    let local = |at: &Timestamp| {
        let since = Duration::from_secs(at.local.try_into().unwrap());
        humantime::format_rfc3339(UNIX_EPOCH + since).to_string()
    };
    fact("at", start.at.as_ref().map(local));
    fact(
        "unix",
        start
            .at
            .as_ref()
            .and_then(|at| at.unix())
            .map(|unix| unix.to_string()),
    );
    fact("mode", start.mode.clone());
    fact("pmon", start.pmon.map(|pid| pid.to_string()));
    fact("version", start.version.clone());
    fact("parameter_file", start.parameter_file.clone());
    fact("use_large_pages", start.use_large_pages.clone());
    fact(
        "sga_max_size",
        sga_max_size(&start.parameters).map(|size| size.to_string()),
    );
    fact("memlock", start.memlock.map(limit));
    for row in &start.page_sizes {
        let count = |pages: Option<hugepage_kernel::Pages>| {
            pages.map_or("?".to_owned(), |pages| pages.to_string())
        };
        let available = if row.is_base {
            "base".to_owned()
        } else {
            count(row.available)
        };
        let (expected, allocated) = (count(row.expected), count(row.allocated));
        let error = row.error.as_deref().unwrap_or("");
        fact(
            "row",
            Some(
                format!(
                    "{} {available} {expected} {allocated} {error}",
                    row.page_size
                )
                .trim_end()
                .to_owned(),
            ),
        );
    }
    fact("dev_shm", start.dev_shm.map(|size| size.to_string()));
    fact("os_error", start.os_error.map(|code| code.to_string()));
    for error in &start.errors {
        fact("error", Some(error.clone()));
    }
    fact("landed", landed(start).map(|landed| format!("{landed:?}")));
    for expected in expected(start) {
        fact("expected", Some(expected));
    }
    facts
}

/// The huge pages that it expected, by their size.
fn expected(start: &LastStart) -> Vec<String> {
    let rows = start.huge_pages();
    rows.filter_map(|row| Some(format!("{} of {}", row.expected?, row.page_size)))
        .collect()
}

fn limit(limit: Rlimit) -> String {
    match limit {
        Rlimit::Unlimited => "unlimited".to_owned(),
        Rlimit::At(size) => size.to_string(),
    }
}
