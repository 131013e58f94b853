//! The version of the library that this server runs. After an update of the package it may be older than the
//! extension's script, because a preloaded library is replaced only when the server restarts.

// pgrx takes the error as it is, for the sake of its SQLSTATE.
#![allow(clippy::result_large_err)]

use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;

// Runs first, so that an old library is reported before a function that it lacks.
pgrx::extension_sql_file!("library.sql", name = "library", bootstrap);

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The library's version; an error if it is older than `needed`.
#[pg_extern(sql = false)]
fn hugepage_library_version(needed: Option<&str>) -> Result<&'static str, ErrorReport> {
    match needed {
        Some(needed) if numbers(VERSION) < numbers(needed) => Err(ErrorReport::new(
            PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            format!("version {needed} of pg_hugepages needs a newer library than {VERSION}, which this server runs"),
            "hugepage_library_version",
        )
        .set_hint(
            "Restart the server if the new version is installed: a preloaded library is replaced only by a restart.",
        )),
        _ => Ok(VERSION),
    }
}

/// Ends CREATE EXTENSION, because these functions of users have names of the extension's in its schema.
#[pg_extern(sql = false)]
fn hugepage_refuse_overloads(functions: &str) -> Result<(), ErrorReport> {
    Err(ErrorReport::new(
        PgSqlErrorCode::ERRCODE_DUPLICATE_FUNCTION,
        format!("functions in the schema of pg_hugepages have names of its own functions: {functions}"),
        "hugepage_refuse_overloads",
    )
    .set_detail("Calls of the extension's functions could be ambiguous.")
    .set_hint(
        "Rename or drop them, or create the extension in another schema: CREATE EXTENSION pg_hugepages SCHEMA ...",
    ))
}

/// The numbers of `1.10.2`, to compare versions; a pre-release counts as its release.
fn numbers(version: &str) -> Vec<u32> {
    let release = version.split(['-', '+']).next().unwrap_or_default();
    release.split('.').map(|part| part.parse().unwrap_or_default()).collect()
}
