//! Of which characters names and numbers are.

/// Whether it has letters, digits, `_`, `$` and `#` alone, at most so many bytes.
pub fn is_name(text: &str, most: usize) -> bool {
    let in_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'#');
    !text.is_empty() && text.len() <= most && text.bytes().all(in_name)
}

/// Whether it has digits alone.
pub fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}
