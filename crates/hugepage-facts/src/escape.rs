//! Names that others chose, as text that is safe on a terminal, in a log and in a file of lines: they may hold escape sequences.

use std::borrow::Cow;

/// The bytes of a name of a server or of a container.
const MAX_NAME: usize = 255;

/// Whether a character is shown as its number: it controls a terminal, ends a line, or reorders the text around it (bidi).
fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The text with each character that `is_hidden` as `show` has it.
fn escaped(
    text: &str,
    is_hidden: impl Fn(char) -> bool,
    show: impl Fn(char) -> String,
) -> Cow<'_, str> {
    if !text.contains(&is_hidden) {
        return text.into();
    }
    text.chars()
        .map(|c| if is_hidden(c) { show(c) } else { c.to_string() })
        .collect::<String>()
        .into()
}

/// One line of text without control characters: `\x1b`, `\n`, `\u{202e}`.
pub fn line(text: &str) -> Cow<'_, str> {
    escaped(text, is_hidden, |c| match u32::from(c) {
        0x09 | 0x0a | 0x0d => c.escape_default().to_string(),
        number if number < 0x100 => format!("\\x{number:02x}"),
        number => format!("\\u{{{number:x}}}"),
    })
}

/// Text in which [`line`] has escaped all but line breaks, for text whose lines are this program's own.
pub fn lines(text: &str) -> String {
    text.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

/// A JSON document in which such characters are escaped, `\u009b`: they are in its strings, and it has none below U+0020.
pub fn json(document: &str) -> Cow<'_, str> {
    // None of them is beyond U+FFFF.
    let show = |c| format!("\\u{:04x}", u32::from(c));
    escaped(document, |c| u32::from(c) >= 0x7f && is_hidden(c), show)
}

/// A name of at most [`MAX_NAME`] bytes: of a longer one the end, which says more of a path than its beginning, and a hash of all. It is
/// no path.
pub fn name(name: String) -> String {
    if name.len() <= MAX_NAME {
        return name;
    }
    // FNV-1a, which later releases have, too: a history keeps the name.
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let end = name.ceil_char_boundary(name.len() - (MAX_NAME - "...#".len() - 16));
    format!("...{}#{hash:016x}", &name[end..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn show_what_a_terminal_would_obey() {
        for (text, shown) in [
            ("/var/lib/pgsql", "/var/lib/pgsql"),
            ("/data\u{1b}]0;x\u{7}", "/data\\x1b]0;x\\x07"),
            ("a\nWARNING:  b\r\tc", "a\\nWARNING:  b\\r\\tc"),
            ("\u{9b}31m\u{7f}", "\\x9b31m\\x7f"),
            ("\u{202e}fdp", "\\u{202e}fdp"),
            ("Ünïcode $(x) 'y'", "Ünïcode $(x) 'y'"),
        ] {
            assert_eq!(line(text), shown);
        }
        assert_eq!(lines("a\nb\u{1b}"), "a\nb\\x1b");
    }

    #[test]
    fn names_have_an_end() {
        for (long, begins) in [
            ("/srv/a".repeat(50), "...a/srv/a/srv"),
            ("/ü".repeat(100), ".../ü/ü"),
        ] {
            let short = name(long.clone());
            assert!(
                short.len() <= MAX_NAME && short.len() > 250 && short.starts_with(begins),
                "{short}"
            );
            assert_ne!(short, name(format!("/other{long}")), "the hash is of all");
        }
        let longest = "/".repeat(MAX_NAME);
        assert_eq!(name(longest.clone()), longest);
    }

    #[test]
    fn escape_as_json_does_it() {
        let name = "a\u{1b}[0m\u{9b}31m\u{7f}\u{202e}fdp\u{61c} ünï \\u009b";
        let plain = serde_json::to_string(&[name]).unwrap();
        let shown = json(&plain);
        assert!(
            !shown.contains(is_hidden) && shown.contains("ünï") && shown.contains("\\u009b31m"),
            "{shown}"
        );
        assert_eq!(
            serde_json::from_str::<Vec<String>>(&shown).unwrap(),
            [name],
            "it reads as the same"
        );
        assert_eq!(json("{\n  \"a\": 1\n}"), "{\n  \"a\": 1\n}");
    }
}
