//! The facts that a block has in sentences. Oracle wraps them anywhere, so they are searched in one text, ignoring case.

use hugepage_kernel::proc::rlimit::Rlimit;
use hugepage_kernel::{Bytes, PageSize, Pages};

use crate::readers::size;
use crate::readers::startup::LastStart;

/// Adds what the text of a block says. Its lines are joined by single spaces.
pub fn add(text: &str, start: &mut LastStart) {
    let text = text.to_ascii_lowercase();
    let behind = |marker: &str| text.split_once(marker).map(|(_, rest)| rest);
    // Oracle writes both "at least" and "atleast".
    let at_least = |marker: &str| behind(marker)?.trim_start().strip_prefix("at")?.trim_start().strip_prefix("least");
    start.memlock = behind("per process system memlock (soft) limit = ").and_then(|limit| match limit {
        _ if limit.starts_with("unlimited") => Some(Rlimit::Unlimited),
        _ => size::parse(limit).map(Rlimit::At),
    });
    start.more_pages = at_least("unused large pages by").map(str::trim_start).and_then(number).map(Pages);
    start.unused_pages = at_least("unused large pages to").map(str::trim_start).and_then(number).map(Pages);
    if let Some(pages) = start.large_pages.as_mut().filter(|pages| pages.page_size.is_none()) {
        let size = behind("(page size ").and_then(size::parse);
        pages.page_size = size.and_then(|size| PageSize::new(size.0));
    }
    let total = behind("total shared global region size is ").or_else(|| behind("total system global area size is "));
    start.sga = total.and_then(size::parse);
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
