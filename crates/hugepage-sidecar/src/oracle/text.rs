//! Texts of a host, made safe for a file of US-ASCII records without quoting.

/// Stands where a text was cut.
const ELLIPSIS: &str = "...";

/// `text` in printable US-ASCII without the delimiter and without blanks at its ends: a `|` becomes `/`, a control
/// character a blank, what is not ASCII a `?`. Empty where nothing is left, which Oracle reads as NULL.
pub fn sanitised(text: &str) -> String {
    let safe = text.chars().map(|character| match character {
        '|' => '/',
        _ if character.is_control() => ' ',
        _ if !character.is_ascii() => '?',
        _ => character,
    });
    safe.collect::<String>().trim_matches(' ').to_owned()
}

/// The first `width` bytes of a sanitised text; a cut one ends in `...`.
pub fn truncate(text: &str, width: usize) -> String {
    if text.len() <= width {
        return text.to_owned();
    }
    match width.checked_sub(ELLIPSIS.len()) {
        Some(kept) => format!("{}{ELLIPSIS}", text[..kept].trim_end_matches(' ')),
        None => String::new(),
    }
}

/// As [`truncate`], but between two words, so that no number is cut short; empty if not even the first word fits.
pub fn truncate_at_word(text: &str, width: usize) -> String {
    if text.len() <= width {
        return text.to_owned();
    }
    let kept = width.checked_sub(ELLIPSIS.len() + 1).and_then(|kept| text[..=kept].rfind(' '));
    kept.map_or_else(String::new, |kept| format!("{} {ELLIPSIS}", text[..kept].trim_end_matches(' ')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_texts() {
        for (text, safe) in [
            ("plain", "plain"),
            ("a|b\nc\td", "a/b c d"),
            ("\u{85}|\r\n", "/"),
            (" \t ", ""),
            ("Größe €", "Gr??e ?"),
            ("'; DROP USER SYS; --", "'; DROP USER SYS; --"),
        ] {
            assert_eq!(sanitised(text), safe);
        }
    }

    #[test]
    fn truncation() {
        assert_eq!(truncate("abcdef", 6), "abcdef");
        assert_eq!(truncate("abcdefg", 6), "abc...");
        assert_eq!(truncate("ab  cdefg", 6), "ab...");
        assert_eq!(truncate("abcdef", 2), "");
        assert_eq!(truncate_at_word("set it to 12345", 15), "set it to 12345");
        assert_eq!(truncate_at_word("set it to 12345", 14), "set it to ...");
        assert_eq!(truncate_at_word("set it to 12345", 13), "set it to ...");
        assert_eq!(truncate_at_word("set it to 12345", 12), "set it ...");
        assert_eq!(truncate_at_word("abcdefghij", 9), "");
        assert_eq!(truncate_at_word("ab", 1), "");
    }
}
