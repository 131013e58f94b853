//! The servers that were seen here, by the histories of `watch`.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::ensure;
use hugepage_assess::history::{Event, Record};
use hugepage_facts::{InstanceKey, Owner, Remembered};
use hugepage_host::readers::{self, owner};
use hugepage_kernel::host::mounts;
use hugepage_kernel::{InstanceFiles, Root, limit};
use hugepage_server::history::HistoryFile;
use hugepage_server::history::stored::StoredRecords;
use humantime::format_rfc3339_micros;
use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, UTIME_NOW, utimensat};

use super::stored::opened;
use crate::{privileges, state};

/// All servers with a history in `directory`, those that are gone as well, in the order of their keys; and notes on what could not be read,
/// of whose servers nothing is known.
pub fn remembered(root: &Root, directory: &Path) -> (Vec<Remembered>, Vec<String>) {
    let (all, notes) = last_records(root, directory, &BTreeSet::new());
    (all.into_iter().map(|(one, _)| one).collect(), notes)
}

/// The same, each with its last record, but for the histories of those that run.
fn last_records(
    root: &Root,
    directory: &Path,
    running: &BTreeSet<PathBuf>,
) -> (Vec<(Remembered, Record)>, Vec<String>) {
    let mut all = Vec::new();
    let mut notes = Vec::new();
    let path = directory.to_string_lossy();
    let names = root.list_if_there(&path).unwrap_or_else(|error| {
        notes.push(error.to_string());
        Vec::new()
    });
    for name in names {
        if state::is_history_file(&name) && !running.contains(&directory.join(&name)) {
            match of_file(root, &format!("{path}/{name}"), &name) {
                Ok(found) => all.extend(found),
                Err(why) => notes.push(why),
            }
        }
    }
    all.sort_by(|(one, _), (other, _)| one.key.cmp(&other.key));
    (all, notes)
}

/// The server of the history at `path`; `None` if it has no record, or none that tells which server it is.
fn of_file(root: &Root, path: &str, name: &str) -> Result<Option<(Remembered, Record)>, String> {
    let files = InstanceFiles::own(root);
    let last = |records: StoredRecords| records.last(limit::HISTORY, |_| true);
    let record = opened(&files, path, last)?;
    let has_text = || files.read_first(path, 1).is_ok_and(|text| !text.is_empty());
    if record.is_none() && has_text() {
        return Err(format!("\"{path}\" has no record that is known here"));
    }
    Ok(record.and_then(|record| {
        let key = key_of(&record, name)?;
        let one = hugepage_host::remembered(key, &record, root.modified(path)?);
        Some((one, record))
    }))
}

/// Where the host has the files of a server; `None` in a container of which that is unknown.
pub fn directory_of<'a>(
    key: &'a InstanceKey,
    host_directory: Option<&'a String>,
) -> Option<&'a String> {
    match key.container {
        Some(_) => host_directory,
        None => key.home.as_ref().or(Some(&key.name)),
    }
}

/// The mount point above a directory.
pub fn mount_above(root: &Root, directory: &str) -> Option<String> {
    let mounts = mounts::read(root).ok()?;
    Some(mounts::above(&mounts, Path::new(directory))?.point.clone())
}

/// Keeps in mind when a server was seen: its history is of that time.
pub fn was_seen(history: &Path) {
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: UTIME_NOW,
    };
    let times = Timestamps {
        last_access: now,
        last_modification: now,
    };
    // Without a history there is nothing to keep.
    let _ = privileges::write(|| {
        Ok::<_, io::Error>(utimensat(CWD, history, &times, AtFlags::SYMLINK_NOFOLLOW)?)
    });
}

/// Records that servers are gone: those whose directory is absent where the file system of their time is mounted. Returns what failed.
pub fn mark_gone(root: &Root, directory: &Path, running: &BTreeSet<PathBuf>) -> Vec<String> {
    let is_gone = |(one, record): &(Remembered, Record)| {
        let directory = directory_of(&one.key, record.host_directory.as_ref());
        directory.is_some_and(|directory| {
            let is_mounted = record.mount.is_some() && mount_above(root, directory) == record.mount;
            !one.is_gone && is_mounted && is_absent(root, &one.key, directory)
        })
    };
    let (all, _) = last_records(root, directory, running);
    mark(root, directory, all.into_iter().filter(is_gone))
}

/// Records that the servers of this name are gone, and returns what failed. The error is that there is none.
pub fn forget(root: &Root, directory: &Path, name: &str) -> anyhow::Result<Vec<String>> {
    let (mut all, _) = last_records(root, directory, &BTreeSet::new());
    all.retain(|(one, _)| one.key.name == name && !one.is_gone);
    ensure!(
        !all.is_empty(),
        "no server in {name} is remembered in {}",
        directory.display()
    );
    Ok(mark(root, directory, all))
}

fn mark(
    root: &Root,
    directory: &Path,
    gone: impl IntoIterator<Item = (Remembered, Record)>,
) -> Vec<String> {
    let written = gone.into_iter().filter_map(|(one, record)| {
        let record = Record {
            event: Event::Gone,
            recorded_at: format_rfc3339_micros(root.now()).to_string(),
            lost: None,
            detail: None,
            ..record
        };
        let file = HistoryFile::at(state::history_file(directory, &one.key));
        privileges::write(|| file.append(&record)).err()
    });
    written.map(|error| error.to_string()).collect()
}

/// Whether its directory is certainly not there, as its own user sees it, or of a container root, who owns what is above it.
fn is_absent(root: &Root, key: &InstanceKey, directory: &str) -> bool {
    let is_absent = || InstanceFiles::own(root).is_absent(directory);
    let seen_by = |owner: &Owner| readers::read_as(owner, is_absent).unwrap_or(false);
    key.uid
        .is_some_and(|uid| seen_by(&owner::of_account(root, uid)))
        || key.container.is_some() && seen_by(&owner::own())
}

/// The key in a record. Older ones have none; but what is in no container and no ORACLE_HOME, the name of its file tells.
fn key_of(record: &Record, file: &str) -> Option<InstanceKey> {
    if record.key.is_some() {
        return record.key.clone();
    }
    let (kind, rest) = file.split_once('-')?;
    let uid = rest.trim_end_matches(".history").rsplit('.').next()?;
    Some(InstanceKey {
        kind: kind.to_owned(),
        uid: Some(uid.parse().ok()?),
        name: record.instance.directory.clone(),
        ..InstanceKey::default()
    })
}
