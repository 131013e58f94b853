//! Formats one record of a file as a line of US-ASCII text without quoting.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hugepage_assess::columns::{Column, ColumnType};
use serde_json::Value;

use crate::output::rows::LAST_SECOND;

/// The maximum bytes of a record with its newline: the default line of UTL_FILE has 1024, and all known readers accept 999.
pub const MAX_RECORD_BYTES: usize = 999;
/// Marks a truncated text.
const ELLIPSIS: &str = "...";
/// In place of an instruction that does not fit.
const INSTRUCTION_ELSEWHERE: &str =
    "Run \"hugepage-sidecar status\" on this host: what to do does not fit here.";

/// The header line.
pub fn header(columns: &[Column]) -> String {
    let names: Vec<_> = columns.iter().map(|column| column.name).collect();
    format!("{}\n", names.join("|"))
}

/// The line of a record. `value`: that of a column, by its name.
pub fn line(columns: &[Column], value: impl Fn(&str) -> Value) -> String {
    let mut fields: Vec<_> = columns
        .iter()
        .map(|column| field(column.kind, &value(column.name)))
        .collect();
    let length = |fields: &[String]| fields.iter().map(|field| field.len() + 1).sum::<usize>();
    let mut order: Vec<_> = (0..fields.len())
        .rev()
        .filter(|&at| columns[at].kind.may_be_shortened())
        .collect();
    order.sort_by_key(|&at| matches!(columns[at].kind, ColumnType::Command(_)));
    for at in order {
        let Some(excess) = length(&fields)
            .checked_sub(MAX_RECORD_BYTES)
            .filter(|excess| *excess > 0)
        else {
            break;
        };
        fields[at] = shortened(
            columns[at].kind,
            &fields[at],
            fields[at].len().saturating_sub(excess),
        );
    }
    format!("{}\n", fields.join("|"))
}

fn field(column_type: ColumnType, value: &Value) -> String {
    match (column_type, value) {
        (ColumnType::Utc, Value::Number(seconds)) => {
            seconds.as_u64().and_then(utc).unwrap_or_default()
        }
        (_, Value::Number(number)) => number.to_string(),
        (_, Value::Array(parts)) => {
            let texts: Vec<_> = parts.iter().filter_map(Value::as_str).collect();
            field(column_type, &texts.join("; ").into())
        }
        (_, Value::Bool(flag)) => if *flag { "Y" } else { "N" }.to_owned(),
        (_, Value::String(text)) => {
            let safe = sanitised(text);
            let width = column_type.width();
            if column_type.is_whole() && safe != *text {
                elsewhere(column_type, width)
            } else {
                shortened(column_type, &safe, width)
            }
        }
        _ => String::new(),
    }
}

fn shortened(column_type: ColumnType, text: &str, width: usize) -> String {
    match column_type {
        _ if text.len() <= width => text.to_owned(),
        _ if column_type.is_whole() => elsewhere(column_type, width),
        ColumnType::Prose(_) => truncate_at_word(text, width),
        _ => truncate(text, width),
    }
}

/// In place of a text that must not be changed, and does not fit as it is.
fn elsewhere(column_type: ColumnType, width: usize) -> String {
    let is_instruction =
        matches!(column_type, ColumnType::Instruction(_)) && INSTRUCTION_ELSEWHERE.len() <= width;
    if is_instruction {
        INSTRUCTION_ELSEWHERE.to_owned()
    } else {
        String::new()
    }
}

/// `text` in printable US-ASCII without the separator and without blanks at its ends: a control character becomes a blank, `|` and
/// a character beyond ASCII `?`. Oracle reads an empty text as NULL.
fn sanitised(text: &str) -> String {
    let safe = text.chars().map(|character| match character {
        _ if character.is_control() => ' ',
        _ if character == '|' || !character.is_ascii() => '?',
        _ => character,
    });
    safe.collect::<String>().trim_matches(' ').to_owned()
}

/// Truncates a sanitised text that is longer to `width` bytes, with `...` at its end.
fn truncate(text: &str, width: usize) -> String {
    match width.checked_sub(ELLIPSIS.len()) {
        Some(kept) => format!("{}{ELLIPSIS}", text[..kept].trim_end_matches(' ')),
        None => String::new(),
    }
}

/// Truncates a text as [`truncate`], but between two words, so that no number is cut; empty if the first word does not fit.
fn truncate_at_word(text: &str, width: usize) -> String {
    let kept = width
        .checked_sub(ELLIPSIS.len() + 1)
        .and_then(|kept| text[..=kept].rfind(' '));
    kept.map_or_else(String::new, |kept| {
        format!("{} {ELLIPSIS}", text[..kept].trim_end_matches(' '))
    })
}

/// The seconds since 1970, for [`ColumnType::Utc`]; `None` if the time is before that.
pub fn seconds(time: SystemTime) -> Option<u64> {
    time.duration_since(UNIX_EPOCH)
        .ok()
        .map(|since| since.as_secs())
}

/// A timestamp as `2026-11-21 10:00:00`; `None` if it is after 9999.
fn utc(seconds: u64) -> Option<String> {
    let time = (seconds <= LAST_SECOND).then(|| UNIX_EPOCH + Duration::from_secs(seconds))?;
    let text = humantime::format_rfc3339_seconds(time).to_string();
    Some(text.replace('T', " ").replace('Z', ""))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::oracle::schema::FILES;

    fn value(column_type: ColumnType) -> BoxedStrategy<Value> {
        let value = match column_type {
            ColumnType::Bytes | ColumnType::Pages | ColumnType::Count | ColumnType::Int => {
                any::<u64>().prop_map(Value::from).boxed()
            }
            ColumnType::Flag => any::<bool>().prop_map(Value::from).boxed(),
            ColumnType::Utc => any::<u32>().prop_map(Value::from).boxed(),
            _ => "(?s).{0,600}".prop_map(Value::from).boxed(),
        };
        prop_oneof![4 => value, 1 => Just(Value::Null)].boxed()
    }

    fn values() -> impl Strategy<Value = (usize, Vec<Value>)> {
        (0..FILES.len()).prop_flat_map(|file| {
            let values: Vec<_> = FILES[file]
                .columns
                .iter()
                .map(|column| value(column.kind))
                .collect();
            (Just(file), values)
        })
    }

    fn column(name: &'static str, kind: ColumnType) -> Column {
        Column {
            name,
            metric: name,
            kind,
            meaning: "",
            words: &[],
        }
    }

    fn line_of(columns: &[Column], values: &[Value]) -> String {
        line(columns, |name| {
            values[columns
                .iter()
                .position(|column| column.name == name)
                .unwrap()]
            .clone()
        })
    }

    proptest! {
        #[test]
        fn write_short_ascii_records((file, values) in values()) {
            let columns = &FILES[file].columns;
            let line = line_of(columns, &values);
            prop_assert!(line.is_ascii() && line.len() <= MAX_RECORD_BYTES);
            prop_assert_eq!(line.find(|c: char| c.is_control()), Some(line.len() - 1));
            let fields: Vec<_> = line.trim_end_matches('\n').split('|').collect();
            prop_assert_eq!(fields.len(), values.len());
            for (field, column) in fields.into_iter().zip(columns) {
                prop_assert!(field.len() <= column.kind.width());
                prop_assert_eq!(field.trim_matches(' '), field);
            }
        }
    }

    #[test]
    fn shorten_the_last_fields_first() {
        let kinds = [
            column("a", ColumnType::Prose(400)),
            column("b", ColumnType::Command(400)),
            column("c", ColumnType::Prose(400)),
        ];
        let words = |count: usize| Value::from("word ".repeat(count).trim_end());
        let fields = |values: &[Value]| {
            let line = line_of(&kinds, values);
            line.trim_end().split('|').map(str::len).collect::<Vec<_>>()
        };
        assert_eq!(fields(&[words(60), words(60), words(60)]), [299, 299, 299]);
        assert_eq!(fields(&[words(80), words(80), words(80)]), [399, 399, 198]);
        assert_eq!(fields(&[words(90), words(90), Value::Null]), [398, 0, 0]);
        let command = |count| Value::from("c".repeat(count));
        assert_eq!(
            fields(&[words(80), command(390), words(80)]),
            [399, 390, 203]
        );
        assert_eq!(
            fields(&[words(80), command(390), Value::Null]),
            [399, 390, 0]
        );
    }

    #[test]
    fn a_command_is_as_it_is_or_elsewhere() {
        let (command, instruction) = (ColumnType::Command(250), ColumnType::Instruction(300));
        let field = |column_type, text: &str| field(column_type, &Value::from(text));
        for text in [
            "sysctl -w vm.nr_hugepages=7",
            "a && b > 'c d' # \"$e\" \\n ~ *",
        ] {
            assert_eq!(field(command, text), text);
            assert_eq!(field(instruction, text), text);
        }
        for text in [
            "a || b",
            "echo 7 > '/sys/fs/cgroup/\u{e4}/x'",
            "a\nb",
            "a\u{202e}b",
            &"word ".repeat(70),
        ] {
            assert_eq!(field(command, text), "", "{text}");
            assert_eq!(field(instruction, text), INSTRUCTION_ELSEWHERE, "{text}");
            assert!(!field(ColumnType::Prose(300), text).is_empty());
        }
    }

    #[test]
    fn a_full_record_has_an_instruction_whole_elsewhere_or_not() {
        let columns = [
            column("a", ColumnType::Text(500)),
            column("b", ColumnType::Text(500)),
            column("c", ColumnType::Instruction(300)),
        ];
        let hint = "Run \"sysctl -w vm.nr_hugepages=7\" and restart the server, which then has what it asks for at present.";
        let beside = |bytes: usize| {
            let (first, second) = ("x".repeat(500), "x".repeat(bytes - 500));
            let line = line_of(&columns, &[first.into(), second.into(), hint.into()]);
            line.trim_end().rsplit('|').next().unwrap().to_owned()
        };
        let room = MAX_RECORD_BYTES - columns.len();
        assert_eq!(beside(room - hint.len()), hint);
        assert_eq!(beside(room - hint.len() + 1), INSTRUCTION_ELSEWHERE);
        assert_eq!(
            beside(room - INSTRUCTION_ELSEWHERE.len()),
            INSTRUCTION_ELSEWHERE
        );
        assert_eq!(beside(room - INSTRUCTION_ELSEWHERE.len() + 1), "");
    }

    #[test]
    fn format_timestamps() {
        assert_eq!(utc(0).unwrap(), "1970-01-01 00:00:00");
        assert_eq!(utc(1_795_255_199).unwrap(), "2026-11-21 09:59:59");
        assert_eq!(utc(LAST_SECOND).unwrap(), "9999-12-31 23:59:59");
        assert_eq!(utc(LAST_SECOND + 1), None);
        assert_eq!(seconds(UNIX_EPOCH - Duration::from_secs(1)), None);
    }

    #[test]
    fn sanitise_hostile_texts() {
        for (text, safe) in [
            ("plain", "plain"),
            ("a|b\nc\td", "a?b c d"),
            ("\u{85}|\r\n", "?"),
            (" \t ", ""),
            ("Größe €", "Gr??e ?"),
            ("'; DROP USER SYS; --", "'; DROP USER SYS; --"),
        ] {
            assert_eq!(sanitised(text), safe);
        }
    }

    #[test]
    fn truncate_texts() {
        assert_eq!(truncate("abcdefg", 6), "abc...");
        assert_eq!(truncate("ab  cdefg", 6), "ab...");
        assert_eq!(truncate("abcdef", 2), "");
        assert_eq!(truncate_at_word("set it to 12345", 14), "set it to ...");
        assert_eq!(truncate_at_word("set it to 12345", 13), "set it to ...");
        assert_eq!(truncate_at_word("set it to 12345", 12), "set it ...");
        assert_eq!(truncate_at_word("abcdefghij", 9), "");
        assert_eq!(truncate_at_word("abc", 1), "");
    }
}
