//! Sizes as Oracle writes them.

use hugepage_kernel::Bytes;

/// Parses `64K`, `1538M`, `20GB`, `100 GB`, `2097152`; text after the unit is ignored (`2048 KB Large Pages`). `None`
/// if it does not begin with a number, or if the size exceeds 64 bits.
pub fn parse(text: &str) -> Option<Bytes> {
    let text = text.trim_start();
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let number: u64 = text[..digits].parse().ok()?;
    let unit: String = text[digits..].trim_start_matches(' ').chars().take_while(char::is_ascii_alphabetic).collect();
    let factor = match unit.to_ascii_uppercase().as_str() {
        "K" | "KB" => 1 << 10,
        "M" | "MB" => 1 << 20,
        "G" | "GB" => 1 << 30,
        "T" | "TB" => 1 << 40,
        _ => 1,
    };
    number.checked_mul(factor).map(Bytes)
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
            assert_eq!(parse(text), bytes.map(Bytes), "{text}");
        }
    }
}
