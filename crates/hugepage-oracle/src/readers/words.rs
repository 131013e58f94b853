//! Words as Oracle writes them: names, numbers and sizes.

use std::str::FromStr;

use hugepage_kernel::Bytes;

/// Whether it has letters, digits, `_`, `$` and `#` alone, at most so many bytes.
pub fn is_name(text: &str, most: usize) -> bool {
    let in_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'#');
    !text.is_empty() && text.len() <= most && text.bytes().all(in_name)
}

/// Whether it has digits alone.
pub fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The number at the beginning of `text`.
pub fn number<T: FromStr>(text: &str) -> Option<T> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    text[..digits].parse().ok()
}

/// The first word of `text`.
pub fn word(text: &str) -> Option<&str> {
    text.split_ascii_whitespace().next()
}

/// Parses `64K`, `1538M`, `20GB`, `100 GB`, `2097152`; text after the unit is ignored (`2048 KB Large Pages`). `None`
/// if it does not begin with a number, or if the size exceeds 64 bits.
pub fn size(text: &str) -> Option<Bytes> {
    Some(size_and_rest(text)?.0)
}

/// A size that nothing follows, not even the rest of a number: `16.5G` is none.
pub fn whole_size(text: &str) -> Option<Bytes> {
    let (size, rest) = size_and_rest(text)?;
    rest.trim().is_empty().then_some(size)
}

fn size_and_rest(text: &str) -> Option<(Bytes, &str)> {
    let text = text.trim_start();
    let value: u64 = number(text)?;
    let behind = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let rest = behind.trim_start_matches(' ');
    let unit = rest.len()
        - rest
            .trim_start_matches(|c: char| c.is_ascii_alphabetic())
            .len();
    let (unit, rest) = rest.split_at(unit);
    let (factor, rest) = match unit.to_ascii_uppercase().as_str() {
        "K" | "KB" => (1 << 10, rest),
        "M" | "MB" => (1 << 20, rest),
        "G" | "GB" => (1 << 30, rest),
        "T" | "TB" => (1 << 40, rest),
        _ => (1, behind),
    };
    Some((Bytes(value.checked_mul(factor)?), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_to_write_one() {
        for (text, bytes) in [
            ("64K", Some(64 << 10)),
            (" 1538M", Some(1538 << 20)),
            ("20GB\n to lock", Some(20 << 30)),
            ("100 GB", Some(100 << 30)),
            ("2T", Some(2 << 40)),
            ("4096 kb)", Some(4096 << 10)),
            ("536870912 bytes", Some(536_870_912)),
            ("0", Some(0)),
            ("", None),
            ("UNLIMITED", None),
            ("-1", None),
            ("99999999999999999999", None),
            ("18446744073709551615K", None),
        ] {
            assert_eq!(size(text), bytes.map(Bytes), "{text}");
        }
        for (text, is_whole) in [
            ("16G", true),
            ("16 gb ", true),
            ("17179869184", true),
            ("16.5G", false),
            ("16,5G", false),
            ("16e9", false),
            ("0x400000000", false),
            ("24\\", false),
            ("16P", false),
            ("16G 5", false),
            ("\\", false),
        ] {
            assert_eq!(whole_size(text).is_some(), is_whole, "{text}");
        }
    }
}
