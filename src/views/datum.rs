//! Values as the types of SQL.

use hugepage_assess::columns::Value;
use pgrx::IntoDatum;
use pgrx::datum::TimestampWithTimeZone;
use pgrx::pg_sys::{self, Datum, Oid};

/// The type of a column by its name in SQL; invalid if no view has such columns.
pub fn kind(name: &str) -> Oid {
    match name {
        "bigint" => pg_sys::INT8OID,
        "boolean" => pg_sys::BOOLOID,
        "double precision" => pg_sys::FLOAT8OID,
        "integer" => pg_sys::INT4OID,
        "oid" => pg_sys::OIDOID,
        "text" => pg_sys::TEXTOID,
        "text[]" => pg_sys::TEXTARRAYOID,
        "timestamp with time zone" => pg_sys::TIMESTAMPTZOID,
        _ => Oid::INVALID,
    }
}

/// A value as a datum of that type; `None` if it is of another one. Null becomes NULL, a larger number the largest `bigint`.
pub fn datum(value: Value, kind: Oid) -> Option<Option<Datum>> {
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

/// What is read of a caller's text, in bytes: more than any valid argument has.
const MAX_BYTES: usize = 1000;

/// Text of a caller of any encoding and length: what is not ASCII, or too long, becomes a question mark, which no valid argument has.
pub fn ascii(text: &[u8]) -> String {
    let end = (text.len() > MAX_BYTES).then_some('?');
    let shown = text.iter().take(MAX_BYTES).map(|&byte| if byte.is_ascii() { char::from(byte) } else { '?' });
    shown.chain(end).collect()
}

/// Text that is valid in every database encoding: each character that is not ASCII becomes a question mark. No command has one.
pub fn text(text: String) -> String {
    if text.is_ascii() { text } else { text.replace(|character: char| !character.is_ascii(), "?") }
}
