//! The server's parameters (guc_tables.h) as this process has them. No configuration is parsed here, and no check hook runs.

#![expect(unsafe_code, reason = "the records are C's")]

use std::collections::BTreeSet;
use std::ffi::{CStr, CString, OsStr, c_char, c_int};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::ptr;

use pgrx::pg_sys;

use crate::majors;

/// The value of a parameter in its unit; `None` if this server has no such parameter, or it is a text without a value.
pub fn running(name: &CStr) -> Option<String> {
    // SAFETY: the name ends in a zero byte; the value stays until it is changed or asked for again, and is copied.
    unsafe { text(pg_sys::GetConfigOption(name.as_ptr(), true, false)) }
}

/// `value` as a number in the unit of `flags` (guc.h), parsed by the server's function.
pub fn integer(value: &str, flags: u32) -> Option<c_int> {
    let value = CString::new(value).ok()?;
    let mut number = 0;
    // SAFETY: the text ends in a zero byte, the number is a local variable, and the hint may be null.
    let is_valid = unsafe {
        pg_sys::parse_int(
            value.as_ptr(),
            &mut number,
            flags.cast_signed(),
            ptr::null_mut(),
        )
    };
    is_valid.then_some(number)
}

/// A parameter that only a start changes (`PGC_POSTMASTER`). None is defined or removed after the start.
pub struct StartParameter(*const pg_sys::config_generic);

impl StartParameter {
    /// All of this server and its preloaded libraries.
    pub fn all() -> Vec<Self> {
        let mut found = Vec::new();
        // SAFETY: the server's records.
        unsafe {
            majors::each_parameter(|record| {
                if (*record).context == pg_sys::GucContext::PGC_POSTMASTER {
                    found.push(Self(record.cast_const()));
                }
            });
        }
        found
    }

    fn record(&self) -> &pg_sys::config_generic {
        // SAFETY: a record that the server keeps for its life; read and written by this process alone.
        unsafe { &*self.0 }
    }

    /// The name of the parameter.
    pub fn name(&self) -> String {
        // SAFETY: as above.
        unsafe { text(self.record().name) }.unwrap_or_default()
    }

    /// Whether the configuration files had another value when this process read them last (`pg_settings.pending_restart`).
    pub fn is_pending(&self) -> bool {
        self.has_status(pg_sys::GUC_PENDING_RESTART)
    }

    /// Whether the configuration files set the parameter.
    pub fn is_in_files(&self) -> bool {
        self.has_status(pg_sys::GUC_IS_IN_FILE)
    }

    /// Whether the value of the parameter is an option of the server's command line.
    pub fn is_option(&self) -> bool {
        self.record().reset_source == pg_sys::GucSource::PGC_S_ARGV
    }

    fn has_status(&self, flag: u32) -> bool {
        self.record().status.unsigned_abs() & flag != 0
    }
}

/// What the last reload of this process has left in the parameters.
#[derive(Default)]
pub struct LoadedFiles {
    /// The configuration files that values of parameters come from.
    pub sources: BTreeSet<PathBuf>,
    /// Parameters of which the files have a value that the server has refused, as far as that can be seen: not where an
    /// earlier value was from a file, too, and not where this process may have refused it for itself alone, as a session does
    /// with `temp_buffers` that has used temporary tables.
    pub refused: Vec<String>,
}

impl LoadedFiles {
    /// What the parameters have now.
    pub fn of_parameters() -> Self {
        let mut files = Self::default();
        // SAFETY: times that each process has; until its own first reload it has what the postmaster had.
        let is_of_postmaster = unsafe { pg_sys::PgReloadTime <= pg_sys::MyStartTimestamp };
        let add = |parameter: *mut pg_sys::config_generic| {
            // SAFETY: a record of the server; its texts end in a zero byte or are null.
            let (record, source, has_hook) = unsafe {
                (
                    &*parameter,
                    path((*parameter).sourcefile),
                    majors::has_check_hook(parameter),
                )
            };
            let status = record.status.unsigned_abs();
            let is_refused =
                status & pg_sys::GUC_IS_IN_FILE != 0 && status & pg_sys::GUC_PENDING_RESTART == 0;
            if record.sourcefile.is_null() && is_refused && (is_of_postmaster || !has_hook) {
                // SAFETY: as above.
                files.refused.extend(unsafe { text(record.name) });
            }
            files
                .sources
                .extend(Some(source).filter(|path| path.is_absolute()));
        };
        // SAFETY: the server's records.
        unsafe { majors::each_parameter(add) };
        files
    }
}

/// Whether this process runs a statement of somebody: the worker and the postmaster never do.
pub fn is_session() -> bool {
    // SAFETY: a plain question to the server.
    unsafe { pg_sys::IsTransactionState() }
}

/// Whether the current user may read `pg_file_settings`, which has what files set and the server has not loaded; in a transaction.
pub fn may_see_file_settings() -> bool {
    // SAFETY: only in a transaction.
    is_session() && unsafe { majors::may_execute(pg_sys::F_PG_SHOW_ALL_FILE_SETTINGS) }
}

/// A text of the server; `None` if that is null.
///
/// # Safety
/// `text` is null or ends in a zero byte.
pub unsafe fn text(text: *const c_char) -> Option<String> {
    // SAFETY: as the caller promises.
    (!text.is_null()).then(|| {
        unsafe { CStr::from_ptr(text) }
            .to_string_lossy()
            .into_owned()
    })
}

/// A path that the server has; empty if that is null.
///
/// # Safety
/// `text` is null or ends in a zero byte.
pub unsafe fn path(text: *const c_char) -> PathBuf {
    // SAFETY: as the caller promises; the text is copied.
    let text = (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) });
    text.map(|text| OsStr::from_bytes(text.to_bytes()).into())
        .unwrap_or_default()
}
