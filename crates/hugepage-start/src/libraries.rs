//! Libraries of `shared_preload_libraries`, which have shared memory of their own.

/// Libraries whose own shared memory is known, and at most how much it is in bytes: none, or some entries. That of
/// `pg_stat_statements` depends on a setting.
pub const LIBRARIES: [(&str, u64); 15] = [
    ("auth_delay", 0),
    ("auto_explain", 0),
    ("basic_archive", 0),
    ("passwordcheck", 0),
    ("pgaudit", 0),
    ("pgextwlist", 0),
    ("set_user", 0),
    ("test_decoding", 0),
    ("pg_failover_slots", 1 << 20),
    ("pg_hugepages", 1 << 20),
    ("pg_prewarm", 1 << 20),
    ("pg_cron", 1 << 20),
    ("bg_mon", 4 << 20),
    ("pg_auth_mon", 4 << 20),
    ("pg_stat_statements", 0),
];

/// Whether a library of this name has the same shared memory in a data directory without data.
pub fn is_known(name: &str) -> bool {
    let name = name.strip_suffix(".so").unwrap_or(name);
    LIBRARIES.iter().any(|(known, _)| *known == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_by_their_names() {
        for (name, expected) in [
            ("pg_cron", true),
            ("pg_cron.so", true),
            ("$libdir/pg_cron", false),
            ("pg_cro", false),
            ("timescaledb", false),
        ] {
            assert_eq!(is_known(name), expected, "{name}");
        }
    }

    #[test]
    fn sizes_are_whole_megabytes() {
        let of_library = |name| LIBRARIES.iter().find(|(known, _)| *known == name).unwrap().1;
        assert_eq!(["pg_failover_slots", "pg_hugepages", "pg_prewarm", "pg_cron"].map(of_library), [1 << 20; 4]);
        assert_eq!(["bg_mon", "pg_auth_mon", "auto_explain"].map(of_library), [4 << 20, 4 << 20, 0]);
    }
}
