//! The history file of this server, in its data directory, and the records that are written to it. Nothing stays open.

use std::path::PathBuf;
use std::time::SystemTime;

use hugepage_assess::assessment::Status;
use hugepage_assess::history::record::InstanceIdentity;
use hugepage_assess::history::{Event, Record};
use hugepage_kernel::host::identity;
use hugepage_kernel::next_boot::BootLook;
use hugepage_kernel::{Notes, ROOT};
use hugepage_server::history::HistoryFile;
use hugepage_server::history::file::path_of_server;
use humantime::format_rfc3339_micros;
use pgrx::pg_sys;

use crate::{log, server, settings, shmem};

/// The history file of this server.
pub fn file() -> HistoryFile {
    HistoryFile::at(path_of_server(&data_directory()))
}

/// A record of `status`, with the time now.
pub fn record(event: Event, status: &Status, notes: &mut Notes) -> Record {
    // Whoever asked for the record has the note about a mapping that could not be read.
    let mapping = server::main_mapping(&mut Notes::default());
    let instance = instance(notes);
    Record {
        postmaster_start: format_rfc3339_micros(shmem::postmaster_start()).to_string(),
        generation: shmem::generation().unwrap_or(0),
        server_version: String::from_utf8_lossy(pg_sys::PG_VERSION.to_bytes()).into_owned(),
        host: instance.machine.clone(),
        boot_id: notes.keep(identity::boot_id(&ROOT)).flatten(),
        segment: mapping.map(|mapping| mapping.inode),
        ..Record::new(
            event,
            format_rfc3339_micros(SystemTime::now()).to_string(),
            instance,
            status,
        )
    }
}

/// The last record of this instance; `None` if there is none or the history is off.
pub fn last(instance: &InstanceIdentity) -> Option<Record> {
    let is_ours = |record: &Record| record.instance.is_past_of(instance);
    (settings::history_size() > 0)
        .then(|| log::ok_or_log("read the history", file().last(is_ours)))?
        .flatten()
}

/// The first look after the boot that a record of this data directory has; `None` if none is recorded.
pub fn first_look(boot_id: &str) -> Option<BootLook> {
    let is_of_boot = |look: &BootLook| look.boot_id == boot_id;
    let has_it = |record: &Record| record.boot.as_ref().is_some_and(is_of_boot);
    file().last(has_it).ok()??.boot
}

/// Appends a record, unless the history is off.
pub fn append(record: &Record) {
    if settings::history_size() > 0 {
        log::ok_or_log("append to the history", file().append(record));
    }
}

/// Cuts the file to `pg_hugepages.history_size` records, drops damaged lines, and makes it durable.
pub fn trim() {
    if settings::history_size() == 0 {
        return;
    }
    let file = file();
    let Some(damaged) = log::ok_or_log("trim the history", file.trim(settings::history_size()))
    else {
        return;
    };
    if damaged > 0 {
        let lines = if damaged == 1 { "line" } else { "lines" };
        log::line(format!(
            "dropped {damaged} damaged {lines} of history file \"{}\"",
            file.path().display()
        ));
    }
}

/// The identity of this server, by which its records are told from others.
pub fn instance(notes: &mut Notes) -> InstanceIdentity {
    // SAFETY: read from the control file before shared memory is allocated.
    #[allow(unsafe_code)]
    let system_identifier = unsafe { pg_sys::GetSystemIdentifier() }.to_string();
    InstanceIdentity {
        machine: notes.keep(identity::host_name(&ROOT)).unwrap_or_default(),
        directory: data_directory().to_string_lossy().into_owned(),
        system_identifier,
        server_version_num: pg_sys::PG_VERSION_NUM,
    }
}

/// The data directory, with symbolic links resolved.
#[expect(clippy::disallowed_methods, reason = "the server's own directory")]
fn data_directory() -> PathBuf {
    let path = server::data_directory();
    std::fs::canonicalize(&path).unwrap_or(path)
}
