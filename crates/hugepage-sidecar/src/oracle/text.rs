//! Sanitises text for files of US-ASCII records without quoting.

/// Marks a truncated text.
const ELLIPSIS: &str = "...";

/// `text` in printable US-ASCII without the separator and without blanks at its ends: a control character becomes a blank, `|` and
/// a character beyond ASCII `?`. Oracle reads an empty text as NULL.
pub fn sanitised(text: &str) -> String {
    let safe = text.chars().map(|character| match character {
        _ if character.is_control() => ' ',
        _ if character == '|' || !character.is_ascii() => '?',
        _ => character,
    });
    safe.collect::<String>().trim_matches(' ').to_owned()
}

/// Truncates a sanitised text that is longer to `width` bytes, with `...` at its end.
pub fn truncate(text: &str, width: usize) -> String {
    match width.checked_sub(ELLIPSIS.len()) {
        Some(kept) => format!("{}{ELLIPSIS}", text[..kept].trim_end_matches(' ')),
        None => String::new(),
    }
}

/// Truncates a text as [`truncate`], but between two words, so that no number is cut; empty if the first word does not fit.
pub fn truncate_at_word(text: &str, width: usize) -> String {
    let kept = width.checked_sub(ELLIPSIS.len() + 1).and_then(|kept| text[..=kept].rfind(' '));
    kept.map_or_else(String::new, |kept| format!("{} {ELLIPSIS}", text[..kept].trim_end_matches(' ')))
}

#[cfg(test)]
mod tests {
    use super::*;

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
