//! The settings of a PostgreSQL server, as its files and its command line have them, and what they ask for.

use std::collections::BTreeMap;

use hugepage_assess::model::{HugePages, Product, Requested};
use hugepage_facts::Configured;
use hugepage_kernel::postgresql::size_setting;
use hugepage_kernel::{Bytes, Notes, PageSize};
use hugepage_start::parts;

/// The settings that decide on huge pages and on whether a start is possible. Others of the files may be secrets.
const DECIDING: [&str; 13] = [
    "hot_standby",
    "huge_page_size",
    "huge_pages",
    "io_method",
    "max_connections",
    "max_locks_per_transaction",
    "max_prepared_transactions",
    "max_replication_slots",
    "max_wal_senders",
    "max_worker_processes",
    "shared_buffers",
    "shared_memory_type",
    "wal_level",
];

/// What a capture may have of it: no setting of the files but those that decide, and those that the command line repeats.
pub fn without_others(configured: &mut Configured) {
    let Configured { files, options, .. } = configured;
    let is_repeated = |name: &str, value: &str| {
        let mut repeats = options.iter();
        repeats.any(|(of, with)| of == name && with.eq_ignore_ascii_case(value))
    };
    files.retain(|name, value| DECIDING.contains(&name.as_str()) || is_repeated(name, value));
}

/// An option without which a start may need another size of shared memory.
pub fn option_with_effect(configured: &Configured) -> Option<&str> {
    let all = configured.effective();
    let alone = configured.with(&[]);
    let value = |of: &BTreeMap<&str, &str>, name: &str| {
        of.get(name).map(|value| value.to_ascii_lowercase())
    };
    let mut names = configured.options.iter().map(|(name, _)| name.as_str());
    names.find(|name| parts::has_effect(name) && value(&all, name) != value(&alone, name))
}

/// The server's error on a value of `huge_pages` that it does not have; `None` if there is none, or the value is not certain.
pub fn invalid(configured: &Configured) -> Option<String> {
    let value = *configured.effective().get("huge_pages")?;
    let error = || format!("invalid value for parameter \"huge_pages\": \"{value}\"");
    let is_certain = configured.unclear.is_none() && HugePages::parse(value).is_none();
    is_certain.then(error)
}

/// What effective settings ask for, and the server's defaults for those that it does not have.
pub fn requested_by_settings(settings: &BTreeMap<&str, &str>, notes: &mut Notes) -> Requested {
    let huge_pages = understood(
        settings,
        "huge_pages",
        "on, off or try",
        HugePages::parse,
        notes,
    );
    let mut size = |name, unit| {
        let parse = |text: &str| size_setting(text, unit);
        understood(settings, name, "a size", parse, notes)
    };
    let page_size = size("huge_page_size", 1 << 10);
    let buffers = size("shared_buffers", 8 << 10);
    Requested {
        product: Product::PostgreSql,
        huge_pages: huge_pages.unwrap_or(HugePages::Try),
        huge_page_size: page_size.and_then(|size| PageSize::new(size.0)),
        sysv: settings
            .get("shared_memory_type")
            .is_some_and(|text| text.eq_ignore_ascii_case("sysv")),
        shared_buffers: buffers.unwrap_or(Bytes(128 << 20)),
        io_uring: settings
            .get("io_method")
            .is_some_and(|text| text.trim().eq_ignore_ascii_case("io_uring")),
    }
}

/// A setting; `None` if it is not there, or if a note says that it is no such value.
fn understood<T>(
    settings: &BTreeMap<&str, &str>,
    name: &str,
    kind: &str,
    parse: impl Fn(&str) -> Option<T>,
    notes: &mut Notes,
) -> Option<T> {
    let text = settings.get(name)?;
    notes.keep(parse(text).ok_or_else(|| format!("{name} = '{text}' is not {kind}")))
}

/// `max_connections` of effective settings.
pub fn max_connections(settings: &BTreeMap<&str, &str>) -> u64 {
    settings
        .get("max_connections")
        .and_then(|text| text.trim().parse().ok())
        .unwrap_or(100)
}

#[cfg(test)]
mod tests {
    use hugepage_kernel::Configuration;

    use super::*;

    #[test]
    fn what_a_capture_may_have() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let secret = "host=a password=b";
        let options = [pair("work_mem", "9MB"), pair("primary_conninfo", "host=a")];
        let mut files = Configuration::default();
        files.settings = vec![
            pair("primary_conninfo", secret),
            pair("wal_level", "replica"),
            pair("work_mem", "9mb"),
        ];
        let all = Configured::new(files, options.to_vec());
        let mut kept = all.clone();
        without_others(&mut kept);
        assert_eq!(Vec::from_iter(kept.files.keys()), ["wal_level", "work_mem"]);
        assert_eq!(option_with_effect(&all), Some("primary_conninfo"));
        assert_eq!(option_with_effect(&kept), option_with_effect(&all));
    }

    #[test]
    fn settings_as_the_server_takes_them() {
        let of = |pairs: &'static [(&str, &str)]| {
            let mut notes = Notes::default();
            let requested =
                requested_by_settings(&BTreeMap::from_iter(pairs.iter().copied()), &mut notes);
            let size = requested.huge_page_size.map(|size| size.bytes().0);
            (
                requested.huge_pages.to_string(),
                size,
                requested.sysv,
                requested.shared_buffers.0,
                notes.into_vec().len(),
            )
        };
        assert_eq!(of(&[]), ("try".into(), None, false, 128 << 20, 0));
        let all = [
            ("huge_pages", "ON"),
            ("huge_page_size", "1GB"),
            ("shared_buffers", "16384"),
        ];
        assert_eq!(
            of(Box::leak(Box::new(all))),
            ("on".into(), Some(1 << 30), false, 128 << 20, 0)
        );
        assert_eq!(
            of(&[("huge_page_size", "2048"), ("huge_pages", "1")]).1,
            Some(2 << 20)
        );
        assert_eq!(
            of(&[("huge_page_size", "0"), ("huge_pages", "0")]),
            ("off".into(), None, false, 128 << 20, 0)
        );
        assert_eq!(
            of(&[("shared_memory_type", "SysV"), ("shared_buffers", "1.5 GB")]).3,
            3 << 29
        );
        assert_eq!(
            of(&[("huge_pages", "maybe"), ("shared_buffers", "8 EB")]),
            ("try".into(), None, false, 128 << 20, 2)
        );
    }
}
