//! Returns the rows of a function: all of them in one call, in a tuplestore (funcapi.h, "Materialize mode").
//!
//! The columns of a function stand in the catalogs, and a session may have loaded the library of another version than the
//! extension in its database has. So the columns that the caller expects are compared with those of the rows before any
//! row is formed. Later versions add columns at the end alone (docs/stability.md), so a newer library leaves those out that
//! an older extension lacks.
//!
//! A function that returns one value has no columns to compare. The server takes that value as the type in the catalogs, which is
//! text in every version, because a symbol keeps its signature (CONTRIBUTING.md). Nor can an argument be missing: pgrx
//! reads no more of them than the call has, and raises an error.

use std::ffi::CStr;

use hugepage_assess::advice::log::LogMessage;
use hugepage_kernel::notes::Notes;
use pgrx::pg_sys::{self, Oid};
use pgrx::prelude::*;
use pgrx::{IntoDatum, IntoHeapTuple, PgMemoryContexts, PgTupleDesc};

use super::convert::text;
use crate::{library, log, majors, memory};

/// A call raises no more notices than this.
const MAX_NOTICES: usize = 5;

/// A row with known types of its columns: each tuple that pgrx makes a row of.
pub trait ResultRow: IntoHeapTuple {
    /// The column types of a row, as OIDs of `pg_type`.
    fn types() -> Vec<Oid>;
}

macro_rules! rows_of {
    ($last:ident) => {};
    ($first:ident $($rest:ident)+) => {
        impl<$first: IntoDatum, $($rest: IntoDatum),+> ResultRow for ($first, $($rest),+) {
            fn types() -> Vec<Oid> {
                vec![$first::type_oid(), $($rest::type_oid()),+]
            }
        }
        rows_of!($($rest)+);
    };
}

rows_of!(A B C D E F G H I J K L M N O P Q R S T U V W X Y Z A1 B1 C1 D1 E1 F1);

/// Runs `body` with a reserve of memory, and gives its rows to the caller of a set-returning function, whose `declaration` has
/// their columns. What it noted is raised as notices.
pub fn return_rows<R: ResultRow, I: IntoIterator<Item = R>>(
    call: pg_sys::FunctionCallInfo,
    declaration: &str,
    body: impl FnOnce(&mut Notes) -> I,
) {
    memory::with_reserve(memory::USUAL, || {
        let result = ResultSet::begin::<R>(call, declaration);
        let mut notes = Notes::default();
        let mut row_context = PgMemoryContexts::new("pg_hugepages row");
        for row in body(&mut notes) {
            result.put(row, &mut row_context);
        }
        raise(notes);
    });
}

/// Raises notes as notices for the client.
pub fn raise(notes: Notes) {
    let notes = notes.into_vec();
    let shown = if notes.len() > MAX_NOTICES { MAX_NOTICES - 1 } else { notes.len() };
    let more = (notes.len() > shown).then(|| format!("there are {} more notes", notes.len() - shown));
    for message in notes.into_iter().take(shown).chain(more) {
        let message = LogMessage { is_bad: false, message: text(message), detail: None, hint: None };
        log::report(PgLogLevel::NOTICE, message);
    }
}

/// The tuplestore of a call, and the columns that its caller expects.
struct ResultSet {
    rows: *mut pg_sys::Tuplestorestate,
    columns: pg_sys::TupleDesc,
}

impl ResultSet {
    /// Raises an error unless `call` expects the columns of `R`, by the names in `declaration`.
    #[allow(unsafe_code)]
    fn begin<R: ResultRow>(call: pg_sys::FunctionCallInfo, declaration: &str) -> Self {
        // SAFETY: pgrx passes the call that goes on. The first function puts the tuplestore and the columns where they
        // are read, or raises an error.
        let (set, function) = unsafe {
            majors::init_materialized(call);
            (*(*call).resultinfo.cast::<pg_sys::ReturnSetInfo>(), (*(*call).flinfo).fn_oid)
        };
        // SAFETY: as above; the columns live as long as the tuplestore.
        let columns = unsafe { PgTupleDesc::from_pg_unchecked(set.setDesc) };
        let (count, types) = (columns.len(), R::types());
        let is_same = |(column, (name, kind)): (&pg_sys::FormData_pg_attribute, (&str, Oid))| {
            !column.attisdropped && column.atttypid == kind && name_of(column) == name.as_bytes()
        };
        let declared = names(declaration).zip(types.iter().copied());
        let all_same = count <= types.len() && columns.iter().zip(declared).all(is_same);
        if !all_same || count < types.len() && !library::is_newer() {
            library::other_columns(function).report(PgLogLevel::ERROR);
        }
        Self { rows: set.setResult, columns: set.setDesc }
    }

    /// Adds a row, formed in `context`, which is empty afterwards.
    #[allow(unsafe_code)]
    fn put<R: ResultRow>(&self, row: R, context: &mut PgMemoryContexts) {
        // SAFETY: the row begins with the columns, as `begin` has compared, and the tuplestore copies it.
        unsafe {
            context.switch_to(|_| pg_sys::tuplestore_puttuple(self.rows, row.into_heap_tuple(self.columns)));
            context.reset();
        }
    }
}

/// The names of the columns in a `CREATE FUNCTION ... RETURNS TABLE`, each of which has a line there.
fn names(declaration: &str) -> impl Iterator<Item = &str> {
    let (_, columns) = declaration.split_once(" RETURNS TABLE (\n").unwrap_or_default();
    columns.lines().take_while(|line| *line != ")").filter_map(|line| line.split_whitespace().next())
}

/// The name of a column, in the encoding of the database.
fn name_of(column: &pg_sys::FormData_pg_attribute) -> &[u8] {
    // SAFETY: a name ends in a zero byte.
    #[allow(unsafe_code)]
    unsafe { CStr::from_ptr(column.attname.data.as_ptr()) }.to_bytes()
}
