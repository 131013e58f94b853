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
use std::mem;

use hugepage_assess::columns::{Column, ColumnType, NamedValue, Value};
use hugepage_kernel::Notes;
use pgrx::datum::TimestampWithTimeZone;
use pgrx::pg_sys::{self, Datum, Oid};
use pgrx::prelude::*;
use pgrx::{IntoDatum, PgMemoryContexts, PgTupleDesc};

use crate::{library, log, majors, memory};

/// A call raises no more notices than this.
const MAX_NOTICES: usize = 5;

/// Runs `body` with a reserve of memory, and gives its rows to the caller of the set-returning function that has these `columns`:
/// each gets the value that a row has by its name. What the body noted is raised as notices.
pub fn return_rows<R: IntoIterator<Item = NamedValue>, I: IntoIterator<Item = R>>(
    call: pg_sys::FunctionCallInfo,
    columns: &'static [Column],
    body: impl FnOnce(&mut Notes) -> I,
) {
    memory::with_reserve(memory::USUAL, || {
        let result = ResultSet::begin(call, columns);
        let mut notes = Notes::default();
        let mut row_context = PgMemoryContexts::new("pg_hugepages row");
        for row in body(&mut notes) {
            result.put(row, &mut row_context);
        }
        raise(notes);
    });
}

/// Raises notes as notices for the client.
fn raise(notes: Notes) {
    let notes = notes.into_vec();
    let shown = if notes.len() > MAX_NOTICES {
        MAX_NOTICES - 1
    } else {
        notes.len()
    };
    let more =
        (notes.len() > shown).then(|| format!("there are {} more notes", notes.len() - shown));
    for message in notes.into_iter().take(shown).chain(more) {
        log::report(PgLogLevel::NOTICE, log::plain(text(message)));
    }
}

/// Ends the query if it was cancelled or has timed out.
pub fn check_for_cancel() {
    pgrx::check_for_interrupts!();
}

/// The tuplestore of a call, and the columns that its caller expects.
struct ResultSet {
    rows: *mut pg_sys::Tuplestorestate,
    description: pg_sys::TupleDesc,
    columns: &'static [Column],
}

impl ResultSet {
    /// Raises an error unless `call` expects these `columns`.
    #[allow(unsafe_code)]
    fn begin(call: pg_sys::FunctionCallInfo, columns: &'static [Column]) -> Self {
        // SAFETY: pgrx passes the call that goes on. The first function puts the tuplestore and the columns where they
        // are read, or raises an error.
        let (set, function) = unsafe {
            majors::init_materialized(call);
            (
                *(*call).resultinfo.cast::<pg_sys::ReturnSetInfo>(),
                (*(*call).flinfo).fn_oid,
            )
        };
        // SAFETY: as above; the columns live as long as the tuplestore.
        let expected = unsafe { PgTupleDesc::from_pg_unchecked(set.setDesc) };
        let is_same = |(attribute, column): (&pg_sys::FormData_pg_attribute, &Column)| {
            !attribute.attisdropped
                && attribute.atttypid == oid(column.kind)
                && name_of(attribute) == column.name.as_bytes()
        };
        let count = expected.len();
        let all_same = count <= columns.len() && expected.iter().zip(columns).all(is_same);
        if !all_same || count < columns.len() && !library::is_newer() {
            library::other_columns(function).report(PgLogLevel::ERROR);
        }
        Self {
            rows: set.setResult,
            description: set.setDesc,
            columns: &columns[..count],
        }
    }

    /// Adds a row, formed in `context`, which is empty afterwards.
    #[allow(unsafe_code)]
    fn put(&self, row: impl IntoIterator<Item = NamedValue>, context: &mut PgMemoryContexts) {
        let mut row: Vec<_> = row.into_iter().collect();
        let mut formed = |Column { name, kind, .. }: &Column| {
            let value = row
                .iter_mut()
                .find(|(known, _)| known == name)
                .map(|(_, value)| mem::take(value));
            let Some(datum) = value.and_then(|value| datum(value, oid(*kind))) else {
                error!("a row has no value of the type of column \"{name}\"");
            };
            (datum.unwrap_or(Datum::null()), datum.is_none())
        };
        // SAFETY: there is a value for each column, of its type as `begin` has compared it, and the tuplestore copies them.
        unsafe {
            context.switch_to(|_| {
                let (mut values, mut nulls): (Vec<_>, Vec<_>) =
                    self.columns.iter().map(&mut formed).unzip();
                pg_sys::tuplestore_putvalues(
                    self.rows,
                    self.description,
                    values.as_mut_ptr(),
                    nulls.as_mut_ptr(),
                );
            });
            context.reset();
        }
    }
}

/// The name of a column, in the encoding of the database.
fn name_of(column: &pg_sys::FormData_pg_attribute) -> &[u8] {
    // SAFETY: a name ends in a zero byte.
    #[allow(unsafe_code)]
    unsafe { CStr::from_ptr(column.attname.data.as_ptr()) }.to_bytes()
}

/// The type of a column in SQL; invalid for one that no view has.
const fn oid(kind: ColumnType) -> Oid {
    match kind {
        ColumnType::Bytes | ColumnType::Pages | ColumnType::Count => pg_sys::INT8OID,
        ColumnType::Int => pg_sys::INT4OID,
        ColumnType::Ratio => pg_sys::FLOAT8OID,
        ColumnType::Oid => pg_sys::OIDOID,
        ColumnType::Flag => pg_sys::BOOLOID,
        ColumnType::Time => pg_sys::TIMESTAMPTZOID,
        ColumnType::Texts => pg_sys::TEXTARRAYOID,
        ColumnType::Word(_)
        | ColumnType::Text(_)
        | ColumnType::Prose(_)
        | ColumnType::Instruction(_)
        | ColumnType::Command(_) => pg_sys::TEXTOID,
        ColumnType::Utc | ColumnType::Row => Oid::INVALID,
    }
}

/// A value as a datum of that type; `None` if it is of another one. Null becomes NULL, a larger number the largest `bigint`.
fn datum(value: Value, kind: Oid) -> Option<Option<Datum>> {
    Some(match (kind, value) {
        (_, Value::Null) => None,
        (pg_sys::BOOLOID, Value::Bool(value)) => value.into_datum(),
        (pg_sys::TEXTOID, Value::String(value)) => text(value).into_datum(),
        (pg_sys::TEXTARRAYOID, Value::Array(values)) => values
            .into_iter()
            .map(|value| value.as_str().map(|value| text(value.to_owned())))
            .collect::<Vec<_>>()
            .into_datum(),
        (pg_sys::FLOAT8OID, Value::Number(value)) => value.as_f64().into_datum(),
        (_, Value::Number(value)) => {
            let value = value.as_i64().unwrap_or(i64::MAX);
            match kind {
                pg_sys::INT8OID => value.into_datum(),
                pg_sys::INT4OID => i32::try_from(value).ok().into_datum(),
                pg_sys::OIDOID => u32::try_from(value).ok().map(Oid::from).into_datum(),
                pg_sys::TIMESTAMPTZOID => TimestampWithTimeZone::try_from(value).ok().into_datum(),
                _ => return None,
            }
        }
        _ => return None,
    })
}

/// Text that is valid in every database encoding: each character that is not ASCII becomes a question mark. No command has one.
fn text(text: String) -> String {
    if text.is_ascii() {
        text
    } else {
        text.replace(|character: char| !character.is_ascii(), "?")
    }
}
