//! The names of settings, by the majors of PostgreSQL that have them.

use std::ops::RangeInclusive;

/// The majors whose settings are known.
pub const MAJORS: RangeInclusive<u32> = 13..=19;
const NAMES: &str = include_str!("setting-names.txt");

/// Whether PostgreSQL of this major has the setting. A name with a dot belongs to a library, and every server accepts it. Without
/// a major: whether any has it.
pub fn exists(name: &str, major: Option<u32>) -> bool {
    let has = |line: &str| {
        let mut words = line.split(' ');
        let is_it = words.next().is_some_and(|known| known.eq_ignore_ascii_case(name));
        let mut bound = || words.next().and_then(|number| number.parse::<u32>().ok());
        let (first, last) = (bound(), bound());
        is_it
            && major
                .is_none_or(|major| first.is_none_or(|first| first <= major) && last.is_none_or(|last| major <= last))
    };
    name.contains('.') || NAMES.lines().filter(|line| !line.starts_with('#')).any(has)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_majors() {
        for (name, major, expected) in [
            ("shared_buffers", Some(13), true),
            ("SHARED_BUFFERS", None, true),
            ("shared_bufers", Some(17), false),
            ("huge_files", None, false),
            ("huge_page_size", Some(13), false),
            ("huge_page_size", Some(14), true),
            ("huge_page_size", None, true),
            ("force_parallel_mode", Some(15), true),
            ("force_parallel_mode", Some(16), false),
            ("io_method", Some(17), false),
            ("timezone", Some(18), true),
            ("pg_stat_statements.max", Some(15), true),
            ("#", None, false),
        ] {
            assert_eq!(exists(name, major), expected, "{name} {major:?}");
        }
    }
}
