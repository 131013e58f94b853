//! The size of huge pages as a user writes it.

use hugepage_kernel::PageSize;

/// Parses a size as PostgreSQL writes it (`2MB`, `64kB`), as the kernel's command line does (`2M`, `2048K`), or in bytes.
pub fn parse(text: &str) -> Result<PageSize, String> {
    let plain = text.trim_end_matches(['b', 'B']).trim_end_matches('i');
    let unit = plain.trim_start_matches(|c: char| c.is_ascii_digit());
    let size = PageSize::of_kernel_text(plain).filter(|_| ["", "k", "K", "M", "G"].contains(&unit));
    size.ok_or_else(|| "not a page size: give a number and kB, MB or GB".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_sizes() {
        for (text, kib) in
            [("2MB", 2048), ("2M", 2048), ("2048kB", 2048), ("1GiB", 1 << 20), ("64kB", 64), ("1048576", 1024)]
        {
            assert_eq!(parse(text).ok(), PageSize::from_kib(kib), "{text}");
        }
        for text in ["", "MB", "2 TB", "-2MB", "0"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
