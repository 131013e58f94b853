//! One line of postgresql.conf, by the rules of the server's own scanner (guc-file.l), and a size in it (guc.c).

use crate::Bytes;

/// What a line sets, its name in lower case: `name = value`, `name value`, `Name = 'it''s' # comment`; nothing if it is empty or a
/// comment. `None` if it is not certainly one of the server's grammar: values that are seldom written, such as hexadecimal
/// numbers and octal escapes, are not certain.
pub fn parse(line: &str) -> Option<Option<(String, String)>> {
    let is_blank = |c: char| matches!(c, ' ' | '\t' | '\r');
    let is_letter = |c: char| c.is_ascii_alphabetic() || c == '_' || !c.is_ascii();
    let is_end = |rest: &str| rest.is_empty() || rest.starts_with('#');
    let after_name = |text: &str| {
        let after = text.trim_start_matches(|c: char| is_letter(c) || c.is_ascii_digit());
        text.starts_with(is_letter).then_some(after.len())
    };
    let line = line.trim_start_matches(is_blank);
    if is_end(line) {
        return Some(None);
    }
    let mut rest = &line[line.len() - after_name(line)?..];
    if let Some(second) = rest.strip_prefix('.') {
        rest = &second[second.len() - after_name(second)?..];
    }
    let name = line[..line.len() - rest.len()].to_ascii_lowercase();
    let rest = rest.trim_start_matches(is_blank);
    let text = rest
        .strip_prefix('=')
        .unwrap_or(rest)
        .trim_start_matches(is_blank);
    let (value, after) = match text.strip_prefix('\'') {
        Some(text) => quoted(text)?,
        None => {
            let is_part =
                |c: char| is_letter(c) || c.is_ascii_digit() || matches!(c, '-' | '.' | ':' | '/');
            let after = if text.starts_with(is_letter) {
                text.trim_start_matches(is_part)
            } else {
                after_number(text)?
            };
            (text[..text.len() - after.len()].to_owned(), after)
        }
    };
    is_end(after.trim_start_matches(is_blank)).then_some(Some((name, value)))
}

/// What follows a number, which has a unit or a fraction.
fn after_number(text: &str) -> Option<&str> {
    let number = text.strip_prefix(['-', '+']).unwrap_or(text);
    let rest = number.trim_start_matches(|c: char| c.is_ascii_digit());
    let after = match rest.strip_prefix('.') {
        Some(fraction) => fraction.trim_start_matches(|c: char| c.is_ascii_digit()),
        None => rest.trim_start_matches(|c: char| c.is_ascii_alphabetic()),
    };
    number
        .starts_with(|c: char| c.is_ascii_digit())
        .then_some(after)
}

/// The text up to the closing quote, and what follows: a doubled quote is one, and so is what a backslash escapes (`GUC_scanstr`).
/// Control characters keep their backslash, because no value that is read here has one, and an octal number is not certain.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut plain = String::new();
    let mut rest = text.chars();
    loop {
        match rest.next()? {
            '\'' => match rest.as_str().strip_prefix('\'') {
                Some(after) => {
                    rest = after.chars();
                    plain.push('\'');
                }
                None => return Some((plain, rest.as_str())),
            },
            '\\' => match rest.next()? {
                '0'..='7' => return None,
                control @ ('b' | 'f' | 'n' | 'r' | 't') => plain.extend(['\\', control]),
                escaped => plain.push(escaped),
            },
            other => plain.push(other),
        }
    }
}

/// A size as the server parses it: a number with `B`, `kB`, `MB`, `GB` or `TB`, or in units of `unit` bytes (guc.c).
pub fn size_setting(text: &str, unit: u64) -> Option<Bytes> {
    let text = text.trim();
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, name) = text.split_at(end);
    let unit = match name.trim() {
        "" => unit,
        "B" => 1,
        "kB" => 1 << 10,
        "MB" => 1 << 20,
        "GB" => 1 << 30,
        "TB" => 1 << 40,
        _ => return None,
    };
    // The server takes these for octal numbers.
    if number.len() > 1 && number.starts_with('0') && !number.starts_with("0.") {
        return None;
    }
    match number.parse::<u64>() {
        Ok(number) => number.checked_mul(unit).map(Bytes),
        // The server accepts fractions too, and rounds them to its units.
        Err(_) => {
            let (whole, fraction) = number.split_once('.')?;
            let digits = fraction.get(..fraction.len().min(9))?;
            let scale = 10u64.checked_pow(u32::try_from(digits.len()).ok()?)?;
            let part =
                u128::from(digits.parse::<u64>().ok()?) * u128::from(unit) / u128::from(scale);
            whole
                .parse::<u64>()
                .ok()?
                .checked_mul(unit)?
                .checked_add(u64::try_from(part).ok()?)
                .map(Bytes)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines() {
        for (line, expected) in [
            ("huge_pages = on", Some(("huge_pages", "on"))),
            ("  Huge_Pages on # why", Some(("huge_pages", "on"))),
            ("huge_page_size=2MB#x", Some(("huge_page_size", "2MB"))),
            (
                "search_path = '\"$user\", public'",
                Some(("search_path", "\"$user\", public")),
            ),
            (
                "x = 'it''s \\'so\\' # no comment' # comment",
                Some(("x", "it's 'so' # no comment")),
            ),
            ("x = '\\o\\n\\''", Some(("x", "o\\n'"))),
            ("huge_pages = 'o\\156'", None),
            (
                "pg_stat_statements.max = 10",
                Some(("pg_stat_statements.max", "10")),
            ),
            ("# huge_pages = on", None),
            ("", None),
            ("1x = 2", None),
            ("x = 'open", None),
        ] {
            let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
            assert_eq!(parse(line).flatten(), expected, "{line}");
        }
    }

    #[test]
    fn lines_of_the_grammar() {
        for line in [
            "",
            "  # why",
            "a = 1",
            "a 1",
            "A=-8MB#x",
            "a.b = on",
            "a='it''s \\' so' # c",
            "a = 0.5",
            "a = C.UTF-8",
            "\ta\t=\tx:/y\r",
        ] {
            assert!(parse(line).is_some(), "{line}");
        }
        for line in [
            "a",
            "a =",
            "a = 'open",
            "a = 1 2",
            "a = x y",
            "a = a, b",
            "a-b = 1",
            "1a = 1",
            "a = 'x' 'y'",
            "a.b.c = 1",
            "= 1",
            "a = $x",
            "a == 1",
            "<<<<<<< HEAD",
        ] {
            assert_eq!(parse(line), None, "{line}");
        }
    }
}
