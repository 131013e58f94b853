//! Redacts processes: keeps database servers, their titles without users and queries, and their shared mappings.

use hugepage_host::is_postgresql as is_of_postgresql;
use hugepage_kernel::mapping::maps::{self, Mapping};
use hugepage_oracle::readers::{OracleProcess, OracleRole};

use super::redact_postgresql;

/// Whether a process with this command line (/proc/PID/cmdline) belongs to a database server. Other processes are omitted.
pub fn is_of_server(command_line: &str) -> bool {
    is_postgresql(program(command_line)) || OracleProcess::parse(command_line).is_some()
}

/// The redacted command line; empty for other processes.
pub fn command_line(text: &str) -> String {
    let program = program(text);
    if let Some(title) = program.strip_prefix("postgres:") {
        return format!("postgres:{}\0", title_of_server(title));
    }
    if is_postgresql(program) {
        let arguments: Vec<_> = text.trim_end_matches('\0').split('\0').skip(1).map(str::to_owned).collect();
        return [program.to_owned()]
            .into_iter()
            .chain(redact_postgresql::arguments(&arguments))
            .map(|word| word + "\0")
            .collect();
    }
    // The arguments of a server process contain the address of its client.
    match OracleProcess::parse(text) {
        Some(process) if process.role == OracleRole::Server => format!("{program}\0(LOCAL=)\0"),
        Some(_) => format!("{program}\0"),
        None => String::new(),
    }
}

/// The program or the process title. A path is cut at its first space, where a user name could follow.
fn program(command_line: &str) -> &str {
    let first = command_line.split('\0').next().unwrap_or_default().trim_end();
    if first.starts_with("postgres:") { first } else { first.split(' ').next().unwrap_or_default() }
}

fn is_postgresql(program: &str) -> bool {
    let name = program.rsplit('/').next().unwrap_or(program);
    program.starts_with("postgres:") || is_of_postgresql(name)
}

/// Titles of background processes. Titles of backends contain users and databases.
const BACKGROUND_PROCESSES: [&str; 14] = [
    "archiver",
    "autovacuum launcher",
    "background writer",
    "checkpointer",
    "io worker",
    "logger",
    "logical replication launcher",
    "slotsync worker",
    "startup",
    "stats collector",
    "walreceiver",
    "walsummarizer",
    "walwriter",
    "wal writer",
];

fn title_of_server(title: &str) -> String {
    // With cluster_name the title is "postgres: NAME: checkpointer ".
    let last = title.rsplit(": ").next().unwrap_or(title).trim();
    match BACKGROUND_PROCESSES.iter().find(|own| last.starts_with(**own)) {
        Some(own) => format!(" {own}"),
        None => " backend".to_owned(),
    }
}

/// The shared mappings of maps or smaps, each with the lines below it.
pub fn shared_mappings(text: &str) -> String {
    let mut shared = false;
    let mut left = String::new();
    for line in text.lines() {
        if let Some(mapping) = maps::parse(line) {
            shared = mapping.shared;
        }
        if shared {
            left.extend([line, "\n"]);
        }
    }
    left
}

/// The text of smaps for mappings with their page sizes. Reading smaps itself would walk all page tables.
pub fn smaps_of(mappings: &[Mapping]) -> String {
    let mut text = String::new();
    for mapping in mappings {
        let Mapping { start, end, access, offset, device: (major, minor), inode, path, page_size, .. } = mapping;
        text += &format!("{start:x}-{end:x} {access}s {offset:08x} {major:02x}:{minor:02x} {inode} {path}\n");
        if let Some(size) = page_size {
            text += &format!("KernelPageSize: {} kB\n", size.bytes().0 >> 10);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use hugepage_kernel::PageSize;

    use super::*;

    #[test]
    fn format_smaps_as_the_kernel() {
        let line = "2000-4000 rw-s 00001000 00:0f 5 /anon_hugepage (deleted)";
        let mapping = Mapping { page_size: PageSize::from_kib(2048), ..maps::parse(line).unwrap() };
        let text = smaps_of(&[mapping]);
        assert_eq!(text, format!("{line}\nKernelPageSize: 2048 kB\n"));
    }

    #[test]
    fn redact_titles_and_arguments() {
        for (line, left) in [
            (
                "/usr/lib/postgresql/15/bin/postgres\0-D\0/data\0-c\0primary_conninfo=password=x\0",
                Some("/usr/lib/postgresql/15/bin/postgres\0-D\0/data\0"),
            ),
            ("postgres: 15/main: checkpointer ", Some("postgres: checkpointer\0")),
            ("postgres: io worker 1\0\0", Some("postgres: io worker\0")),
            ("postgres: alice payroll 10.0.0.1(5432) SELECT", Some("postgres: backend\0")),
            ("ora_pmon_ORCL\0", Some("ora_pmon_ORCL\0")),
            ("mdb_pmon_-MGMTDB\0", Some("mdb_pmon_-MGMTDB\0")),
            ("oracleORCL (DESCRIPTION=(LOCAL=YES)(ADDRESS=(PROTOCOL=beq)))\0", Some("oracleORCL\0(LOCAL=)\0")),
            ("psql\0postgresql://u:secret@h/\0", None),
            ("/usr/bin/vi\0/etc/shadow\0", None),
            ("", None),
        ] {
            assert_eq!(is_of_server(line), left.is_some(), "{line}");
            assert_eq!(command_line(line), left.unwrap_or_default(), "{line}");
        }
    }

    #[test]
    fn remove_private_mappings() {
        let text = "1000-2000 rw-p 00000000 00:00 0 [heap]\nRss: 4 kB\n\
                    2000-4000 rw-s 00000000 00:0f 5 /anon_hugepage (deleted)\nKernelPageSize: 2048 kB\nVmFlags: ht\n\
                    5000-6000 r-xp 00000000 08:01 5 /home/alice/secret.so\nRss: 4 kB\n";
        let left = "2000-4000 rw-s 00000000 00:0f 5 /anon_hugepage (deleted)\nKernelPageSize: 2048 kB\nVmFlags: ht\n";
        assert_eq!(shared_mappings(text), left);
    }
}
