//! Libraries of `shared_preload_libraries`, which have shared memory of their own.

/// Libraries whose own shared memory depends on settings alone, or on nothing.
const LIBRARIES: [&str; 15] = [
    "auth_delay",
    "auto_explain",
    "basic_archive",
    "passwordcheck",
    "pgaudit",
    "pgextwlist",
    "set_user",
    "test_decoding",
    "pg_failover_slots",
    "pg_hugepages",
    "pg_prewarm",
    "pg_cron",
    "bg_mon",
    "pg_auth_mon",
    "pg_stat_statements",
];

/// Whether a library of this name has the same shared memory in a data directory without data.
pub fn is_known(name: &str) -> bool {
    let name = name.strip_suffix(".so").unwrap_or(name);
    LIBRARIES.contains(&name)
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
}
