//! Files that this program keeps on a host between its runs.

use std::path::{Path, PathBuf};

use hugepage_core::collect::instances::{Instance, InstanceKind, InstancePlace};
use hugepage_core::history::record::InstanceIdentity;

/// The default directory of these files.
pub const DIRECTORY: &str = "/var/lib/hugepage-sidecar";

/// The history file of one instance: `postgresql-var-lib-postgresql-15-main.26.history`, with the uid of its process, and in a
/// container with its directory's device and inode. So no server of another user or container adds to it or answers for it,
/// whatever it calls itself. Characters that a file name cannot have become hyphens. Two instances could still share a
/// file, so each record names its instance.
pub fn history_file(directory: &Path, instance: &Instance) -> PathBuf {
    file_name(directory, &instance.kind.to_string(), &instance.name, &instance.place)
}

fn file_name(directory: &Path, kind: &str, name: &str, place: &InstancePlace) -> PathBuf {
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '+') { c } else { '-' };
    let name: String = name.trim_matches('/').chars().map(plain).collect();
    // File names have at most 255 bytes (NAME_MAX); the end of a long path is more specific than its beginning.
    let tail = &name[name.len().saturating_sub(150)..];
    let uid = place.uid.map_or_else(String::new, |uid| format!(".{uid}"));
    let container = place.container.as_ref().map_or_else(String::new, |container| format!(".in-{container}"));
    directory.join(format!("{kind}-{tail}{uid}{container}.history"))
}

/// Whether [`history_file`] gives such a name.
pub fn is_history_file(name: &str) -> bool {
    name.ends_with(".history")
        && name
            .split_once('-')
            .is_some_and(|(kind, _)| ["postgresql", "oracle", "asm", "mgmtdb", "apx", "ios"].contains(&kind))
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
    fn keep_users_and_containers_apart() {
        let of = |uid, container: Option<&str>| {
            let place = InstancePlace { uid, container: container.map(str::to_owned), ..InstancePlace::default() };
            let file = file_name(Path::new("/s"), "postgresql", "/data", &place);
            file.file_name().unwrap().to_str().unwrap().to_owned()
        };
        assert_eq!(of(None, None), "postgresql-data.history");
        assert_eq!(of(Some(26), None), "postgresql-data.26.history");
        assert_eq!(of(Some(26), Some("0.45-131")), "postgresql-data.26.in-0.45-131.history");
        assert!(is_history_file(&of(Some(26), Some("0.45-131"))));
    }

    #[test]
    fn name_history_files() {
        let place = InstancePlace::default();
        let of = |kind, name: &str| file_name(Path::new("/s"), kind, name, &place).to_string_lossy().into_owned();
        assert_eq!(of("postgresql", "/var/lib/postgresql/15/main"), "/s/postgresql-var-lib-postgresql-15-main.history");
        assert_eq!(of("asm", "+ASM1"), "/s/asm-+ASM1.history");
        assert_eq!(of("postgresql", "/a/../..//é\n"), "/s/postgresql-a-..-..----.history");
        let inside = InstancePlace {
            uid: Some(u32::MAX),
            container: Some("4294967295.1048575-18446744073709551615".to_owned()),
            host_name: None,
        };
        let long = file_name(Path::new("/s"), "postgresql", &"/long".repeat(100), &inside);
        assert!(long.file_name().unwrap().len() <= 255);
    }
}
