//! Files that this program keeps on a host between its runs.

use std::path::{Path, PathBuf};

use hugepage_core::collect::instances::{Instance, InstanceKind};
use hugepage_core::history::record::InstanceIdentity;

/// The default directory of these files.
pub const DIRECTORY: &str = "/var/lib/hugepage-sidecar";

/// The history file of one instance: `postgresql-var-lib-postgresql-15-main.history`. Characters that a file name cannot
/// have become hyphens. Two instances could share a file, so each record names its instance.
pub fn history_file(directory: &Path, kind: &str, name: &str) -> PathBuf {
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '+') { c } else { '-' };
    let name: String = name.trim_matches('/').chars().map(plain).collect();
    // File names have at most 255 bytes (NAME_MAX); the end of a long path is more specific than its beginning.
    let tail = &name[name.len().saturating_sub(200)..];
    directory.join(format!("{kind}-{tail}.history"))
}

/// Identity that the records of an instance on `machine` speak of. An Oracle instance stays what it is when it moves to another
/// ORACLE_HOME, as patches make it do.
pub fn instance_identity(instance: &Instance, machine: String) -> InstanceIdentity {
    let major = instance.version.as_deref().and_then(|version| version.split('.').next()?.parse::<u32>().ok());
    let directory = instance.directory.clone().filter(|_| instance.kind == InstanceKind::PostgreSql);
    InstanceIdentity {
        machine,
        directory: directory.unwrap_or_else(|| instance.name.clone()),
        system_identifier: instance.system_identifier.clone().unwrap_or_else(|| instance.name.clone()),
        server_version_num: major.unwrap_or(0).saturating_mul(10_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_history_files() {
        let of = |kind, name: &str| history_file(Path::new("/s"), kind, name).to_string_lossy().into_owned();
        assert_eq!(of("postgresql", "/var/lib/postgresql/15/main"), "/s/postgresql-var-lib-postgresql-15-main.history");
        assert_eq!(of("asm", "+ASM1"), "/s/asm-+ASM1.history");
        assert_eq!(of("postgresql", "/a/../..//é\n"), "/s/postgresql-a-..-..----.history");
        let long = history_file(Path::new("/s"), "postgresql", &"/long".repeat(100));
        assert!(long.file_name().unwrap().len() <= 255);
    }
}
