//! What the settings of a PostgreSQL server ask of the kernel.

use hugepage_kernel::postgresql::size_setting;
use hugepage_kernel::{Bytes, Notes, PageSize};

use crate::model::{HugePages, Product, Requested};

/// The settings that `value` returns as they are written, and the server's defaults for those that it does not have.
pub fn requested_by_settings(value: impl Fn(&str) -> Option<String>, notes: &mut Notes) -> Requested {
    let mut understood = |name: &str, kind: &str, found: Option<bool>| {
        if found == Some(false) {
            notes.add(format!("{name} = '{}' is not {kind}", value(name).unwrap_or_default()));
        }
    };
    let huge_pages = value("huge_pages").map(|text| HugePages::parse(&text));
    understood("huge_pages", "on, off or try", huge_pages.map(|found| found.is_some()));
    let size = |name: &str, unit: u64| value(name).map(|text| size_setting(&text, unit));
    let (page_size, buffers) = (size("huge_page_size", 1 << 10), size("shared_buffers", 8 << 10));
    understood("huge_page_size", "a size", page_size.map(|found| found.is_some()));
    understood("shared_buffers", "a size", buffers.map(|found| found.is_some()));
    Requested {
        product: Product::PostgreSql,
        huge_pages: huge_pages.flatten().unwrap_or(HugePages::Try),
        huge_page_size: page_size.flatten().and_then(|size| PageSize::new(size.0)),
        sysv: value("shared_memory_type").is_some_and(|text| text.eq_ignore_ascii_case("sysv")),
        shared_buffers: buffers.flatten().unwrap_or(Bytes(128 << 20)),
        io_uring: value("io_method").is_some_and(|text| text.trim().eq_ignore_ascii_case("io_uring")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_as_the_server_takes_them() {
        let of = |pairs: &'static [(&str, &str)]| {
            let mut notes = Notes::default();
            let value =
                |name: &str| pairs.iter().find(|(found, _)| *found == name).map(|(_, value)| (*value).to_owned());
            let requested = requested_by_settings(value, &mut notes);
            let size = requested.huge_page_size.map(|size| size.bytes().0);
            (requested.huge_pages.to_string(), size, requested.sysv, requested.shared_buffers.0, notes.into_vec().len())
        };
        assert_eq!(of(&[]), ("try".into(), None, false, 128 << 20, 0));
        let all = [("huge_pages", "ON"), ("huge_page_size", "1GB"), ("shared_buffers", "16384")];
        assert_eq!(of(Box::leak(Box::new(all))), ("on".into(), Some(1 << 30), false, 128 << 20, 0));
        assert_eq!(of(&[("huge_page_size", "2048"), ("huge_pages", "1")]).1, Some(2 << 20));
        assert_eq!(of(&[("huge_page_size", "0"), ("huge_pages", "0")]), ("off".into(), None, false, 128 << 20, 0));
        assert_eq!(of(&[("shared_memory_type", "SysV"), ("shared_buffers", "1.5 GB")]).3, 3 << 29);
        assert_eq!(
            of(&[("huge_pages", "maybe"), ("shared_buffers", "8 EB")]),
            ("try".into(), None, false, 128 << 20, 2)
        );
    }
}
