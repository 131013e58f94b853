//! The facts that a block has in sentences. Oracle wraps them anywhere, so they are searched in one text, ignoring case.

use hugepage_kernel::Bytes;
use hugepage_kernel::proc::rlimit::Rlimit;

use crate::readers::size;
use crate::readers::startup::LastStart;

/// Adds what the text of a block says. Its lines are joined by single spaces.
pub fn add(text: &str, start: &mut LastStart) {
    let text = text.to_ascii_lowercase();
    let behind = |marker: &str| text.split_once(marker).map(|(_, rest)| rest);
    start.memlock = behind("per process system memlock (soft) limit = ").and_then(|limit| match limit {
        _ if limit.starts_with("unlimited") => Some(Rlimit::Unlimited),
        _ => size::parse(limit).map(Rlimit::At),
    });
    let hex = |rest: &str| u64::from_str_radix(word(rest)?, 16).ok();
    start.refused_segment = behind("creating segment of size 0x").and_then(hex).map(Bytes);
}

/// The number at the beginning of `text`.
pub fn number<T: std::str::FromStr>(text: &str) -> Option<T> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    text[..digits].parse().ok()
}

/// The first word of `text`.
pub fn word(text: &str) -> Option<&str> {
    text.split_ascii_whitespace().next()
}
