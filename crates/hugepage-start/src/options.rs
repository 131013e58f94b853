//! Options of a postmaster's command line, which `pg_ctl restart` repeats and other starts do not.

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

/// Whether a start may need another size of shared memory without this option.
pub fn has_effect(name: &str) -> bool {
    !WITHOUT_EFFECT.contains(&name) && !name.starts_with("log_") && !name.starts_with("ssl")
}

#[cfg(test)]
mod tests {
    use super::has_effect;

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
}
