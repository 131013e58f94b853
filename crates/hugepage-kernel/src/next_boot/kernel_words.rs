//! How the kernel takes its command line apart (lib/cmdline.c, kernel/params.c).

use crate::PageSize;

/// The parameters up to `--`, each with its value; without one where there is no `=`. Quotes hold blanks together.
pub fn parameters(command_line: &str) -> Vec<(String, Option<String>)> {
    let mut found = Vec::new();
    let mut rest = command_line.trim_start_matches(is_blank);
    while !rest.is_empty() {
        let (word, behind) = next_word(rest);
        rest = behind.trim_start_matches(is_blank);
        match parameter(word) {
            (name, None) if name == "--" => break,
            parameter => found.push(parameter),
        }
    }
    found
}

/// Whether the kernel takes both for the same parameter: dashes are underscores.
pub fn is_parameter(name: &str, wanted: &str) -> bool {
    name.replace('-', "_") == wanted
}

/// A size in bytes: digits in base 8, 10 or 16, one letter for a unit, and whatever follows it.
pub fn size_in_bytes(text: &str) -> u64 {
    let (number, rest) = number(text);
    let shift = match rest.bytes().next().map(|byte| byte.to_ascii_uppercase()) {
        Some(b'K') => 10,
        Some(b'M') => 20,
        Some(b'G') => 30,
        Some(b'T') => 40,
        Some(b'P') => 50,
        Some(b'E') => 60,
        _ => 0,
    };
    number << shift
}

/// A page size as on the kernel's command line and among the options of a hugetlbfs: `2M`, `1GB`, `0x200000`. `None` for zero.
pub fn memparse(text: &str) -> Option<PageSize> {
    PageSize::new(size_in_bytes(text))
}

/// The leading decimal digits, after blanks, and what follows them; `None` without a digit (sscanf's `%lu`).
pub fn leading_count(text: &str) -> Option<(u64, &str)> {
    let text = text.trim_start_matches(is_blank);
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    Some((text[..digits].parse().ok()?, &text[digits..]))
}

/// The number that a write to a file of /proc/sys sets, in base 8, 10 or 16; `None` if the kernel refuses it, or might.
pub fn sysctl_number(text: &str) -> Option<u64> {
    let text = text.trim_matches(is_blank);
    let (number, rest) = number(text);
    (rest.is_empty() && text.starts_with(|c: char| c.is_ascii_digit())).then_some(number)
}

/// Digits in base 8 behind `0`, in base 16 behind `0x`, else in base 10, and what follows them. Zero without any.
fn number(text: &str) -> (u64, &str) {
    let hexadecimal = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let (base, digits) = match hexadecimal.filter(|rest| rest.starts_with(|c: char| c.is_ascii_hexdigit())) {
        Some(rest) => (16, rest),
        None if text.starts_with('0') => (8, text),
        None => (10, text),
    };
    let end = digits.find(|c: char| !c.is_digit(base)).unwrap_or(digits.len());
    let value = digits[..end].chars().filter_map(|c| c.to_digit(base));
    (value.fold(0, |sum: u64, digit| sum.wrapping_mul(base.into()).wrapping_add(digit.into())), &digits[end..])
}

fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r' | '\u{b}' | '\u{c}')
}

/// The text up to the next blank outside of quotes, and the rest.
fn next_word(text: &str) -> (&str, &str) {
    let mut is_quoted = false;
    let end = text.find(|c| {
        is_quoted ^= c == '"';
        !is_quoted && is_blank(c)
    });
    text.split_at(end.unwrap_or(text.len()))
}

/// The name and the value of a word, each without the quotes around it.
fn parameter(word: &str) -> (String, Option<String>) {
    let whole = word.strip_prefix('"');
    let word = whole.unwrap_or(word);
    let without_end = |text: &str| text.strip_suffix('"').unwrap_or(text).to_owned();
    match word.split_once('=') {
        Some((name, value)) => {
            let quoted = value.strip_prefix('"');
            let value = match quoted {
                Some(value) => without_end(value),
                None if whole.is_some() => without_end(value),
                None => value.to_owned(),
            };
            (name.to_owned(), Some(value))
        }
        None if whole.is_some() => (without_end(word), None),
        None => (word.to_owned(), None),
    }
}
