//! Formats one record of a file as a line of text.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::oracle::schema::{Column, ColumnType, FieldValue};
use crate::oracle::text::{sanitised, truncate, truncate_at_word};

/// The field separator.
pub const DELIMITER: char = '|';
/// The maximum bytes of a record with its newline. The default line size of UTL_FILE is 1024, and all known readers accept
/// 999.
pub const MAX_RECORD_BYTES: usize = 999;
/// The last second of the year 9999.
const LAST_SECOND: u64 = 253_402_300_799;

/// The header line.
pub fn header(columns: impl Iterator<Item = &'static Column>) -> String {
    let names: Vec<_> = columns.map(|column| column.name).collect();
    format!("{}\n", names.join("|"))
}

/// The line of `values`, which must be in the order of `columns`.
pub fn line(columns: impl Iterator<Item = &'static Column>, values: &[Option<FieldValue>]) -> String {
    let columns: Vec<_> = columns.collect();
    assert_eq!(columns.len(), values.len(), "a record has a value for every column");
    let mut fields: Vec<_> =
        columns.iter().zip(values).map(|(column, value)| field(column.column_type, value)).collect();
    let length = |fields: &[String]| fields.iter().map(|field| field.len() + 1).sum::<usize>();
    let mut order: Vec<_> = (0..fields.len()).rev().filter(|&at| columns[at].column_type.may_be_shortened()).collect();
    order.sort_by_key(|&at| matches!(columns[at].column_type, ColumnType::Command(_)));
    for at in order {
        let Some(excess) = length(&fields).checked_sub(MAX_RECORD_BYTES).filter(|excess| *excess > 0) else {
            break;
        };
        fields[at] = shortened(columns[at].column_type, &fields[at], fields[at].len().saturating_sub(excess));
    }
    format!("{}\n", fields.join(&DELIMITER.to_string()))
}

fn field(column_type: ColumnType, value: &Option<FieldValue>) -> String {
    match value {
        None => String::new(),
        Some(FieldValue::Number(number)) => number.to_string(),
        Some(FieldValue::Flag(flag)) => if *flag { "Y" } else { "N" }.to_owned(),
        Some(FieldValue::Time(time)) => utc(*time).unwrap_or_default(),
        Some(FieldValue::Text(text)) => shortened(column_type, &sanitised(text), column_type.width()),
    }
}

fn shortened(column_type: ColumnType, text: &str, width: usize) -> String {
    match column_type {
        ColumnType::Command(_) if text.len() > width => String::new(),
        ColumnType::Prose(_) => truncate_at_word(text, width),
        _ => truncate(text, width),
    }
}

/// A timestamp as `2026-11-21 10:00:00`; `None` if it is before 1970 or after 9999.
fn utc(time: SystemTime) -> Option<String> {
    let seconds = time.duration_since(UNIX_EPOCH).ok()?.as_secs();
    let time = (seconds <= LAST_SECOND).then(|| UNIX_EPOCH + Duration::from_secs(seconds))?;
    let text = humantime::format_rfc3339_seconds(time).to_string();
    Some(text.replace('T', " ").replace('Z', ""))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::oracle::columns::{FILES, columns};

    fn value(column_type: ColumnType) -> BoxedStrategy<Option<FieldValue>> {
        let value = match column_type {
            ColumnType::Bytes | ColumnType::Pages | ColumnType::Count => {
                any::<u64>().prop_map(FieldValue::Number).boxed()
            }
            ColumnType::Flag => any::<bool>().prop_map(FieldValue::Flag).boxed(),
            ColumnType::UtcTime => any::<u32>()
                .prop_map(|seconds| FieldValue::Time(UNIX_EPOCH + Duration::from_secs(u64::from(seconds))))
                .boxed(),
            _ => "(?s).{0,600}".prop_map(FieldValue::Text).boxed(),
        };
        prop_oneof![4 => value.prop_map(Some), 1 => Just(None)].boxed()
    }

    fn values() -> impl Strategy<Value = (usize, Vec<Option<FieldValue>>)> {
        (0..FILES.len()).prop_flat_map(|file| {
            let values: Vec<_> = columns(FILES[file]).map(|column| value(column.column_type)).collect();
            (Just(file), values)
        })
    }

    proptest! {
        #[test]
        fn write_short_ascii_records((file, values) in values()) {
            let line = line(columns(FILES[file]), &values);
            prop_assert!(line.is_ascii() && line.len() <= MAX_RECORD_BYTES);
            prop_assert_eq!(line.find(|c: char| c.is_control()), Some(line.len() - 1));
            let fields: Vec<_> = line.trim_end_matches('\n').split('|').collect();
            prop_assert_eq!(fields.len(), values.len());
            for (field, column) in fields.into_iter().zip(columns(FILES[file])) {
                prop_assert!(field.len() <= column.column_type.width());
                prop_assert_eq!(field.trim_matches(' '), field);
            }
        }
    }

    #[test]
    fn shorten_the_last_fields_first() {
        let kinds: [&'static Column; 3] = [
            &Column { name: "a", column_type: ColumnType::Prose(400), comment: &[] },
            &Column { name: "b", column_type: ColumnType::Command(400), comment: &[] },
            &Column { name: "c", column_type: ColumnType::Prose(400), comment: &[] },
        ];
        let words = |count: usize| Some(FieldValue::Text("word ".repeat(count)));
        let fields = |values: &[Option<FieldValue>]| {
            let line = line(kinds.into_iter(), values);
            line.trim_end().split('|').map(str::len).collect::<Vec<_>>()
        };
        assert_eq!(fields(&[words(60), words(60), words(60)]), [299, 299, 299]);
        assert_eq!(fields(&[words(80), words(80), words(80)]), [399, 399, 198]);
        assert_eq!(fields(&[words(90), words(90), None]), [398, 0, 0]);
        let command = |count| Some(FieldValue::Text("c".repeat(count)));
        assert_eq!(fields(&[words(80), command(390), words(80)]), [399, 390, 203]);
        assert_eq!(fields(&[words(80), command(390), None]), [399, 390, 0]);
    }

    #[test]
    fn format_timestamps() {
        let at = |seconds| utc(UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(at(0).unwrap(), "1970-01-01 00:00:00");
        assert_eq!(at(1_795_255_199).unwrap(), "2026-11-21 09:59:59");
        assert_eq!(at(LAST_SECOND).unwrap(), "9999-12-31 23:59:59");
        assert_eq!(at(LAST_SECOND + 1), None);
        assert_eq!(utc(UNIX_EPOCH - Duration::from_secs(1)), None);
    }
}
