//! The version of the library that this server runs. After an update of the package it may be older than the
//! extension's script, because a preloaded library is replaced only when the server restarts.

// pgrx takes the error as it is, for the sake of its SQLSTATE.
#![allow(clippy::result_large_err)]

use std::cmp::Ordering;
use std::ffi::{CStr, c_void};
use std::mem::MaybeUninit;

use pgrx::pg_sys::{self, panic::ErrorReport};
use pgrx::prelude::*;

use crate::shmem;

const VERSION: &str = env!("CARGO_PKG_VERSION");
/// What is read of a caller's text, in bytes: more than any valid argument has.
const MAX_BYTES: usize = 1000;

/// The library's version; an error if it is older than `needed`.
#[pg_extern(sql = false)]
fn hugepage_library_version(needed: Option<&[u8]>) -> Result<&'static str, ErrorReport> {
    match needed.map(ascii) {
        Some(needed) if numbers(VERSION) < numbers(&needed) => Err(other_library(
            format!(
                "version {needed} of pg_hugepages needs a newer library than {VERSION}, which this server runs"
            ),
            "Restart the server if the new version is installed: a preloaded library is replaced only by a restart.",
        )),
        _ => Ok(VERSION),
    }
}

/// The error where this library is not the one that is needed.
fn other_library(message: String, hint: &str) -> ErrorReport {
    let code = PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE;
    ErrorReport::new(code, message, function_name!()).set_hint(hint)
}

/// Ends CREATE EXTENSION, because these functions of users have names of the extension's in its schema.
#[pg_extern(sql = false)]
fn hugepage_refuse_overloads(functions: &[u8]) -> Result<(), ErrorReport> {
    Err(ErrorReport::new(
        PgSqlErrorCode::ERRCODE_DUPLICATE_FUNCTION,
        format!("functions in the schema of pg_hugepages have names of its own functions: {}", ascii(functions)),
        "hugepage_refuse_overloads",
    )
    .set_detail("Calls of the extension's functions could be ambiguous.")
    .set_hint(
        "Rename or drop them, or create the extension in another schema: CREATE EXTENSION pg_hugepages SCHEMA ...",
    ))
}

/// A place in this file's memory.
static OWN: u8 = 0;

/// The name by which a background worker gets this library. By its path that is the one that the postmaster has loaded, also where the
/// file is gone; by its name the server would search for the file each time. Before PostgreSQL 17 a long path has no room.
pub fn name_for_workers() -> String {
    let path = file_of((&raw const OWN).cast());
    if path.len() < pg_sys::BGW_MAXLEN as usize && path.is_ascii() {
        path
    } else {
        "pg_hugepages".to_owned()
    }
}

/// Raises an error in `_PG_init` if this process has the library from another file, too: both would define the same settings.
#[allow(unsafe_code)]
pub fn refuse_another_copy() {
    let own = (&raw const OWN).cast_mut().cast::<c_void>();
    // SAFETY: the server keeps one pointer by this name for all libraries of a process, from which other processes inherit it.
    let loaded = unsafe {
        let place = pg_sys::find_rendezvous_variable(c"pg_hugepages".as_ptr());
        if (*place).is_null() {
            *place = own;
        }
        *place
    };
    if loaded == own {
        return;
    }
    other_library(
        "another copy of pg_hugepages is loaded already".to_owned(),
        "Name the library without a directory, as in shared_preload_libraries = 'pg_hugepages', and remove the other file.",
    )
    .set_detail(format!("\"{}\" is loaded, and \"{}\" is another file.", file_of(loaded), file_of(own)))
    .report(PgLogLevel::ERROR);
}

/// The file of the library that has this address.
fn file_of(address: *const c_void) -> String {
    let mut found = MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: all zeros are valid, and dladdr(3) writes there alone; the name lives as long as the library is loaded.
    #[allow(unsafe_code)]
    unsafe {
        libc::dladdr(address, found.as_mut_ptr());
        let name = found.assume_init().dli_fname;
        if name.is_null() {
            String::new()
        } else {
            CStr::from_ptr(name).to_string_lossy().into_owned()
        }
    }
}

/// The error for a function of the catalogs that has other columns than its rows in this library.
pub fn other_columns(function: pg_sys::Oid) -> ErrorReport {
    // SAFETY: text that the server allocates, of a function that is being called.
    #[allow(unsafe_code)]
    let function = unsafe { CStr::from_ptr(pg_sys::format_procedure(function)) }.to_string_lossy();
    let extension = extension_version();
    let hint = match extension
        .as_deref()
        .map(|extension| numbers(VERSION).cmp(&numbers(extension)))
    {
        Some(Ordering::Less) if shmem::generation().is_some() => {
            "Restart the server: a preloaded library is replaced only by a restart."
        }
        Some(Ordering::Less) => {
            "Connect again: this session has loaded the library of before the update."
        }
        Some(Ordering::Greater) => "Run ALTER EXTENSION pg_hugepages UPDATE.",
        _ => "Call the function that CREATE EXTENSION pg_hugepages creates.",
    };
    let extension = match extension {
        Some(version) => format!("that of the extension in this database is {version}"),
        None => "this database has no such extension".to_owned(),
    };
    let message =
        format!("function {function} has other columns than the library of pg_hugepages returns");
    let detail = format!("The version of the library in this session is {VERSION}, {extension}.");
    other_library(message, hint).set_detail(detail)
}

/// Whether the library is of a newer version than the extension in this database.
pub fn is_newer() -> bool {
    extension_version().is_some_and(|extension| numbers(&extension) < numbers(VERSION))
}

fn extension_version() -> Option<String> {
    const QUERY: &str = "SELECT extversion FROM pg_catalog.pg_extension WHERE extname OPERATOR(pg_catalog.=) 'pg_hugepages'";
    Spi::get_one(QUERY).ok().flatten()
}

/// The numbers of `1.10.2`, to compare versions; a pre-release counts as its release.
fn numbers(version: &str) -> Vec<u32> {
    let release = version.split(['-', '+']).next().unwrap_or_default();
    release
        .split('.')
        .map(|part| part.parse().unwrap_or_default())
        .collect()
}

/// Text of a caller of any encoding and length: what is not ASCII, or too long, becomes a question mark, which no valid argument has.
pub fn ascii(text: &[u8]) -> String {
    let end = (text.len() > MAX_BYTES).then_some('?');
    let shown = text.iter().take(MAX_BYTES).map(|&byte| {
        if byte.is_ascii() {
            char::from(byte)
        } else {
            '?'
        }
    });
    shown.chain(end).collect()
}
