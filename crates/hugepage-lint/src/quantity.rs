//! Quantities of Kubernetes (apimachinery's resource.Quantity), as bytes.

use hugepage_kernel::{Bytes, PageSize, Pages};

/// A quantity of memory: `1Gi`, `512M`, `1.5Gi`, `1e9`, `1024`. `None` if it is none, or more than 64 bits hold. A fraction of a
/// byte is rounded up, as Kubernetes does.
pub fn bytes(text: &str) -> Option<Bytes> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let (numerator, denominator): (u128, u128) = match suffix {
        "" => (1, 1),
        "m" => (1, 1000),
        "k" => (1000, 1),
        "M" => (1_000_000, 1),
        "G" => (1_000_000_000, 1),
        "T" => (1_000_000_000_000, 1),
        "P" => (1_000_000_000_000_000, 1),
        "Ki" => (1 << 10, 1),
        "Mi" => (1 << 20, 1),
        "Gi" => (1 << 30, 1),
        "Ti" => (1 << 40, 1),
        "Pi" => (1 << 50, 1),
        _ => (10u128.checked_pow(suffix.strip_prefix(['e', 'E'])?.parse().ok().filter(|power| *power < 19)?)?, 1),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = format!("{whole}{fraction}");
    if digits.is_empty() || digits.len() > 24 {
        return None;
    }
    let scale = 10u128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    let size = digits.parse::<u128>().ok()?.checked_mul(numerator)?.div_ceil(scale.checked_mul(denominator)?);
    u64::try_from(size).ok().map(Bytes)
}

/// The size of `pages` as a Kubernetes quantity.
pub fn of_pages(size: PageSize, pages: Pages) -> String {
    of_bytes(size.times(pages))
}

/// A size as a Kubernetes quantity, in the largest unit that divides it.
pub fn of_bytes(size: Bytes) -> String {
    let unit = [(30, "Gi"), (20, "Mi"), (10, "Ki")].into_iter();
    let unit = unit.into_iter().find(|(shift, _)| size.0 > 0 && size.0.trailing_zeros() >= *shift);
    unit.map_or_else(|| size.0.to_string(), |(shift, name)| format!("{}{name}", size.0 >> shift))
}

/// The page size in the name of a resource: `hugepages-2Mi`.
pub fn page_size(resource: &str) -> Option<PageSize> {
    PageSize::new(bytes(resource.strip_prefix("hugepages-")?)?.0)
}

/// The name of the resource for pages of this size.
pub fn resource(size: PageSize) -> String {
    format!("hugepages-{}i", size.kernel_parameter())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities() {
        for (text, expected) in [
            ("1Gi", Some(1 << 30)),
            ("1.5Gi", Some(3 << 29)),
            ("512M", Some(512_000_000)),
            ("1e3", Some(1000)),
            ("1500m", Some(2)),
            ("0", Some(0)),
            (".5Ki", Some(512)),
            ("", None),
            ("1GiB", None),
            ("-1Gi", None),
            ("1e99", None),
            ("99999999Pi", None),
            ("1.2.3", None),
        ] {
            assert_eq!(bytes(text), expected.map(Bytes), "{text}");
        }
        let two = PageSize::new(2 << 20).unwrap();
        assert_eq!((of_pages(two, Pages(512)), of_pages(two, Pages(556))), ("1Gi".to_owned(), "1112Mi".to_owned()));
        assert_eq!(
            (page_size("hugepages-1Gi").unwrap().bytes(), resource(two).as_str()),
            (Bytes(1 << 30), "hugepages-2Mi")
        );
        assert_eq!(page_size("memory"), None);
    }
}
