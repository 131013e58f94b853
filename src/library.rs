//! Which version of the library this server runs. After an update of the package it may be older than the extension's
//! script for a while: a preloaded library stays what it was until the server restarts.

// pgrx takes the error as it is, for the sake of its SQLSTATE.
#![allow(clippy::result_large_err)]

use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;

// It comes first, so that an old library is named before the first function that it lacks.
pgrx::extension_sql_file!("library.sql", name = "library", bootstrap);

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The library's version; an error if that is older than `needed`.
#[pg_extern(sql = false)]
fn hugepage_library_version(needed: Option<&str>) -> Result<&'static str, ErrorReport> {
    match needed {
        Some(needed) if numbers(VERSION) < numbers(needed) => Err(ErrorReport::new(
            PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            format!("version {needed} of pg_hugepages needs a newer library than the one this server runs, {VERSION}"),
            "hugepage_library_version",
        )
        .set_hint(
            "If the new version is installed, restart the server: a preloaded library stays what it was until then.",
        )),
        _ => Ok(VERSION),
    }
}

/// `1.10.2` as numbers that compare; a pre-release counts as its release.
fn numbers(version: &str) -> Vec<u32> {
    let release = version.split(['-', '+']).next().unwrap_or_default();
    release.split('.').map(|part| part.parse().unwrap_or_default()).collect()
}
