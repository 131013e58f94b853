//! Redacts PostgreSQL configurations: keeps settings about shared memory. Other settings may contain passwords
//! (`primary_conninfo`, `ssl_passphrase_command`, `archive_command`, those of extensions).

use hugepage_kernel::postgresql::{conf_line, postmaster_opts};

/// Settings that the size of shared memory, its pages, its processes or file locations depend on (guc_tables.c, ipci.c).
const SETTINGS: &[&str] = &[
    "autovacuum_max_workers",
    "autovacuum_worker_slots",
    "cluster_name",
    "commit_timestamp_buffers",
    "config_file",
    "data_directory",
    "dynamic_shared_memory_type",
    "hash_mem_multiplier",
    "hot_standby",
    "huge_page_size",
    "huge_pages",
    "include",
    "include_dir",
    "include_if_exists",
    "io_max_combine_limit",
    "io_max_concurrency",
    "io_method",
    "io_workers",
    "max_connections",
    "max_locks_per_transaction",
    "max_logical_replication_workers",
    "max_parallel_workers",
    "max_parallel_workers_per_gather",
    "max_pred_locks_per_transaction",
    "max_prepared_transactions",
    "max_replication_slots",
    "max_wal_senders",
    "max_worker_processes",
    "min_dynamic_shared_memory",
    "multixact_member_buffers",
    "multixact_offset_buffers",
    "notify_buffers",
    "port",
    "reserved_connections",
    "serializable_buffers",
    "shared_buffers",
    "shared_memory_type",
    "shared_preload_libraries",
    "subtransaction_buffers",
    "superuser_reserved_connections",
    "track_activity_query_size",
    "transaction_buffers",
    "wal_buffers",
    "wal_segment_size",
    "work_mem",
];

fn is_shown(name: &str) -> bool {
    name.starts_with("pg_hugepages.") || SETTINGS.contains(&name)
}

/// The kept settings of postgresql.conf and similar files, without comments.
pub fn settings(text: &str) -> String {
    let shown = text.lines().filter_map(conf_line::parse).filter(|(name, _)| is_shown(name));
    shown.map(|(name, value)| format!("{name} = '{}'\n", value.replace('\\', "\\\\").replace('\'', "''"))).collect()
}

/// The kept arguments of postmaster.opts.
pub fn options(text: &str) -> String {
    let program = text.split(" \"").next().unwrap_or_default().trim_end();
    let words = arguments(&postmaster_opts::arguments(text));
    program.to_owned() + &words.iter().map(|word| format!(" \"{word}\"")).collect::<String>() + "\n"
}

/// The kept arguments of a postmaster: file locations and kept settings.
pub fn arguments(arguments: &[String]) -> Vec<String> {
    let mut left = Vec::new();
    let mut words = arguments.iter().peekable();
    while let Some(word) = words.next() {
        let assigned = |text: &str| {
            text.split_once('=').is_some_and(|(name, _)| is_shown(&name.replace('-', "_").to_ascii_lowercase()))
        };
        if let Some(long) = word.strip_prefix("--") {
            if assigned(long) {
                left.push(word.clone());
            }
        } else if let Some(attached) =
            word.strip_prefix("-c").or_else(|| word.strip_prefix("-D")).filter(|rest| !rest.is_empty())
        {
            if word.starts_with("-D") || assigned(attached) {
                left.push(word.clone());
            }
        } else if matches!(word.as_str(), "-D" | "-B" | "-N" | "-p") {
            left.extend([Some(word.clone()), words.next().cloned()].into_iter().flatten());
        } else if word == "-c" {
            if let Some(value) = words.next().filter(|value| assigned(value)) {
                left.extend([word.clone(), value.clone()]);
            }
        } else if ["-B", "-N", "-p"].iter().any(|letter| word.starts_with(letter)) {
            left.push(word.clone());
        } else if word.len() == 2 && words.peek().is_some_and(|next| !next.starts_with('-')) {
            // Skip the value of an option that is not kept.
            words.next();
        }
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remove_passwords() {
        let text = "# shared_buffers = 1GB, the password is x\nshared_buffers = 128MB # secret\n\
                    primary_conninfo = 'host=a password=x'\nHuge_Pages = on\ninclude_dir 'conf.d'\n\
                    archive_command = 'curl -u me:x'\npg_hugepages.ask_server_program = off\ncluster_name = 'it''s'\n";
        let left = "shared_buffers = '128MB'\nhuge_pages = 'on'\ninclude_dir = 'conf.d'\npg_hugepages.ask_server_program = 'off'\n\
                    cluster_name = 'it''s'\n";
        assert_eq!(settings(text), left);
        assert_eq!(settings(left), left, "redaction is idempotent");
    }

    #[test]
    fn redact_all_forms_of_arguments() {
        for (text, left) in [
            (
                "/bin/postgres \"-D\" \"/data\" \"-c\" \"config_file=/etc/p.conf\"\n",
                "/bin/postgres \"-D\" \"/data\" \"-c\" \"config_file=/etc/p.conf\"\n",
            ),
            (
                "/bin/postgres \"-D\" \"/d a\" \"-c\" \"primary_conninfo=x\" \"--huge-pages=on\" \"--archive_command=x\"\n",
                "/bin/postgres \"-D\" \"/d a\" \"--huge-pages=on\"\n",
            ),
            (
                "/bin/postgres \"-k\" \"/tmp\" \"-B\" \"100\" \"-i\" \"-cshared_buffers=1GB\" \"-cx=y\" \"-p5433\"\n",
                "/bin/postgres \"-B\" \"100\" \"-cshared_buffers=1GB\" \"-p5433\"\n",
            ),
            ("/bin/postgres\n", "/bin/postgres\n"),
        ] {
            assert_eq!(options(text), left);
        }
    }
}
