//! The history file of this server: its path, and the records that are written to it.
//!
//! `pg_hugepages.history_directory` is read whenever the file is opened, and nothing stays open, so that a reload moves the
//! history, and a directory that is made later is used from then on.

use std::path::PathBuf;
use std::time::SystemTime;

use hugepage_assess::assessment::Status;
use hugepage_assess::history::record::{InstanceIdentity, Origin};
use hugepage_assess::history::{Event, Record};
use hugepage_kernel::Root;
use hugepage_kernel::host::identity;
use hugepage_kernel::notes::Notes;
use hugepage_server::history::file::path_of_server;
use hugepage_server::history::{HistoryError, HistoryFile};
use humantime::format_rfc3339_micros;
use pgrx::pg_sys;

use crate::{log, server, settings, shmem};

/// The history file. The error tells that the directory which is set for it is not there: that is no empty history.
#[expect(clippy::disallowed_methods, reason = "the directory that is set for the history")]
pub fn file() -> Result<HistoryFile, HistoryError> {
    let (data, set) = (data_directory(), settings::history_directory());
    if let Some(directory) = &set {
        let path = data.join(directory);
        // With a dot, for it may be something else than a directory.
        std::fs::metadata(path.join(".")).map_err(|source| HistoryError::Directory { path, source })?;
    }
    Ok(HistoryFile::at(path_of_server(&data, set.as_deref(), &system_identifier())))
}

/// A record of `status`, with the time now.
pub fn record(event: Event, status: &Status, notes: &mut Notes) -> Record {
    Record::new(event, format_rfc3339_micros(SystemTime::now()).to_string(), origin(notes), status)
}

/// The last record of this instance; `None` if there is none or the history is off.
pub fn last(instance: &InstanceIdentity) -> Option<Record> {
    let is_ours = |record: &Record| record.instance.is_past_of(instance);
    (settings::history_size() > 0).then(|| ok_or_log(file().and_then(|file| file.last(is_ours))))?.flatten()
}

/// Appends a record, unless the history is off.
pub fn append(record: &Record) {
    if settings::history_size() > 0 {
        ok_or_log(file().and_then(|file| file.append(record)));
    }
}

/// Cuts the file to `pg_hugepages.history_size` records, drops damaged lines, and flushes it to disk.
pub fn trim() {
    if settings::history_size() == 0 {
        return;
    }
    let Some(file) = ok_or_log(file()) else { return };
    if let Some(damaged @ 1..) = ok_or_log(file.trim(settings::history_size())) {
        let lines = if damaged == 1 { "line" } else { "lines" };
        log::problem(format!("dropped {damaged} damaged {lines} of history file \"{}\"", file.path().display()));
    }
    ok_or_log(file.sync());
}

/// The value; an error is one line in the log.
fn ok_or_log<T>(result: Result<T, HistoryError>) -> Option<T> {
    result.map_err(|error| log::problem(error.to_string())).ok()
}

/// The identity of this server, by which its records are told from others.
pub fn instance(notes: &mut Notes) -> InstanceIdentity {
    InstanceIdentity {
        machine: notes.keep(identity::machine(&Root::live())).unwrap_or_default(),
        directory: data_directory().to_string_lossy().into_owned(),
        system_identifier: system_identifier(),
        server_version_num: pg_sys::PG_VERSION_NUM,
    }
}

fn origin(notes: &mut Notes) -> Origin {
    let root = Root::live();
    // Whoever asked for the record has the note about a mapping that could not be read.
    let mapping = server::main_mapping(&root, &mut Notes::default());
    Origin {
        postmaster_start: format_rfc3339_micros(shmem::postmaster_start()).to_string(),
        generation: shmem::generation().unwrap_or(0),
        server_version: String::from_utf8_lossy(pg_sys::PG_VERSION.to_bytes()).into_owned(),
        host: notes.keep(identity::host_name(&root)).unwrap_or_default(),
        boot_id: notes.keep(identity::boot_id(&root)).flatten(),
        instance: instance(notes),
        segment: mapping.map(|mapping| mapping.inode),
    }
}

#[allow(unsafe_code)]
fn system_identifier() -> String {
    // SAFETY: read from the control file before shared memory is allocated.
    unsafe { pg_sys::GetSystemIdentifier() }.to_string()
}

/// The data directory, with symbolic links resolved.
#[expect(clippy::disallowed_methods, reason = "the server's own directory")]
fn data_directory() -> PathBuf {
    let path = server::data_directory();
    std::fs::canonicalize(&path).unwrap_or(path)
}
