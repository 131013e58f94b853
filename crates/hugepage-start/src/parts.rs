//! What has a part in the size of shared memory: options of a postmaster's command line, which `pg_ctl restart` repeats and other starts
//! do not, and libraries of `shared_preload_libraries`.

/// Options that have no part in the size of shared memory, or that only say where the server is.
const WITHOUT_EFFECT: [&str; 11] = [
    "cluster_name",
    "config_file",
    "data_directory",
    "external_pid_file",
    "hba_file",
    "ident_file",
    "listen_addresses",
    "logging_collector",
    "port",
    "unix_socket_directories",
    "unix_socket_permissions",
];
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

/// Whether a start may need another size of shared memory without this option.
pub fn has_effect(name: &str) -> bool {
    !WITHOUT_EFFECT.contains(&name) && !name.starts_with("log_") && !name.starts_with("ssl")
}

/// Whether a library of this name has the same shared memory in a data directory without data.
pub fn is_known_library(name: &str) -> bool {
    LIBRARIES.contains(&name.strip_suffix(".so").unwrap_or(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_with_an_effect() {
        for (name, expected) in [
            ("shared_buffers", true),
            ("wal_level", true),
            ("port", false),
            ("log_destination", false),
            ("logical_decoding_work_mem", true),
            ("ssl_cert_file", false),
        ] {
            assert_eq!(has_effect(name), expected, "{name}");
        }
    }

    #[test]
    fn libraries_by_their_names() {
        for (name, expected) in [
            ("pg_cron", true),
            ("pg_cron.so", true),
            ("$libdir/pg_cron", false),
            ("pg_cro", false),
            ("timescaledb", false),
        ] {
            assert_eq!(is_known_library(name), expected, "{name}");
        }
    }
}
