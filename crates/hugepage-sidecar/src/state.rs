//! Files that this program keeps on a host between its runs.

use std::collections::BTreeSet;
use std::fs::{self, DirEntry};
use std::path::{Path, PathBuf};
use std::time::Duration;

use hugepage_facts::{InstanceKey, ServerIdentity};

use hugepage_assess::history::record::InstanceIdentity;

use crate::privileges;

pub use hugepage_server::history::boots::DIRECTORY;

/// History files that are kept besides those of running instances: those written to last, none of them longer ago than this.
const MAX_HISTORIES: usize = 1000;
const MAX_HISTORY_AGE: Duration = Duration::from_secs(400 * 24 * 60 * 60);

/// The history file of the instance with this key: `postgresql-var-lib-postgresql-15-main.26.history`, with the uid of its process, and in a
/// container with its directory's device and inode. So no server of another user or container adds to it or answers for it,
/// whatever it calls itself. A SID is unique within an ORACLE_HOME, so for Oracle it has that, too:
/// `oracle-ORCL.54321.home-u01-app-oracle-product-19.0.0-dbhome_1.history`. Characters that a file name cannot have become
/// hyphens. Two instances could still share a file, so each record names its instance.
pub fn history_file(directory: &Path, key: &InstanceKey) -> PathBuf {
    let InstanceKey {
        kind,
        uid,
        container,
        name,
        home,
    } = key;
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '+') {
            c
        } else {
            '-'
        }
    };
    let plain = |path: &str| {
        path.trim_matches('/')
            .chars()
            .map(plain)
            .collect::<String>()
    };
    let name = plain(name);
    // File names have at most 255 bytes (NAME_MAX); the end of a long path is more specific than its beginning.
    let tail = &name[name
        .len()
        .saturating_sub(if home.is_some() { 64 } else { 150 })..];
    let home = home.as_deref().map(plain).map_or_else(String::new, |home| {
        format!(".home-{}", &home[home.len().saturating_sub(100)..])
    });
    let uid = uid.map_or_else(String::new, |uid| format!(".{uid}"));
    let container = container
        .as_ref()
        .map_or_else(String::new, |container| format!(".in-{container}"));
    directory.join(format!("{kind}-{tail}{uid}{container}{home}.history"))
}

/// Whether [`history_file`] gives such a name.
pub fn is_history_file(name: &str) -> bool {
    name.ends_with(".history")
        && name.split_once('-').is_some_and(|(kind, _)| {
            ["postgresql", "oracle", "asm", "mgmtdb", "apx", "ios"].contains(&kind)
        })
}

/// Removes the history files of instances that are long gone. An instance can be created and dropped any number of times.
#[expect(
    clippy::disallowed_methods,
    reason = "this program's directory of histories"
)]
pub fn prune(directory: &Path, of_running: &BTreeSet<PathBuf>) {
    let is_of_gone = |entry: &DirEntry| {
        entry.file_name().to_str().is_some_and(is_history_file)
            && entry.file_type().is_ok_and(|kind| kind.is_file())
            && !of_running.contains(&entry.path())
    };
    let written = |entry: DirEntry| Some((entry.metadata().ok()?.modified().ok()?, entry.path()));
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut newest_first: Vec<_> = entries.filter(is_of_gone).filter_map(written).collect();
    newest_first.sort_unstable_by(|one, other| other.cmp(one));
    for (index, (modified, path)) in newest_first.iter().enumerate() {
        if index >= MAX_HISTORIES || modified.elapsed().is_ok_and(|age| age > MAX_HISTORY_AGE) {
            // One that remains is tried again after the next survey.
            let _ = privileges::write(|| fs::remove_file(path));
        }
    }
}

/// Identity that the records of an instance on `machine` speak of. An Oracle instance keeps it in another ORACLE_HOME.
pub fn instance_identity(instance: &ServerIdentity, machine: String) -> InstanceIdentity {
    let named = |own: Option<&String>| own.unwrap_or(&instance.name).clone();
    let server = instance.postgresql();
    InstanceIdentity {
        machine,
        directory: named(server.and_then(|server| server.directory.as_ref())),
        system_identifier: named(server.and_then(|server| server.system_identifier.as_ref())),
        server_version_num: instance.major().unwrap_or(0).saturating_mul(10_000),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::time::SystemTime;

    use super::*;

    fn key(kind: &str, name: &str) -> InstanceKey {
        InstanceKey {
            kind: kind.to_owned(),
            name: name.to_owned(),
            ..InstanceKey::default()
        }
    }

    #[test]
    fn keep_users_and_containers_apart() {
        let of = |uid, container: Option<&str>| {
            let file = history_file(
                Path::new("/s"),
                &InstanceKey {
                    uid,
                    container: container.map(str::to_owned),
                    ..key("postgresql", "/data")
                },
            );
            file.file_name().unwrap().to_str().unwrap().to_owned()
        };
        assert_eq!(of(None, None), "postgresql-data.history");
        assert_eq!(of(Some(26), None), "postgresql-data.26.history");
        assert_eq!(
            of(Some(26), Some("0.45-131")),
            "postgresql-data.26.in-0.45-131.history"
        );
        assert!(is_history_file(&of(Some(26), Some("0.45-131"))));
    }

    #[test]
    fn name_history_files() {
        let of = |kind, name: &str| {
            history_file(Path::new("/s"), &key(kind, name))
                .to_string_lossy()
                .into_owned()
        };
        assert_eq!(
            of("postgresql", "/var/lib/postgresql/15/main"),
            "/s/postgresql-var-lib-postgresql-15-main.history"
        );
        assert_eq!(of("asm", "+ASM1"), "/s/asm-+ASM1.history");
        assert_eq!(
            of("postgresql", "/a/../..//é\n"),
            "/s/postgresql-a-..-..----.history"
        );
        let inside = |key| InstanceKey {
            uid: Some(u32::MAX),
            container: Some("4294967295.1048575-18446744073709551615".to_owned()),
            ..key
        };
        let long = history_file(
            Path::new("/s"),
            &inside(key("postgresql", &"/long".repeat(100))),
        );
        assert!(long.file_name().unwrap().len() <= 255);
        let instance = InstanceKey {
            home: Some("/home".repeat(100)),
            ..inside(key("mgmtdb", &"S".repeat(64)))
        };
        let long = history_file(Path::new("/s"), &instance);
        assert!(long.file_name().unwrap().len() <= 255);
    }

    /// Two homes with one SID are two histories.
    #[test]
    fn keep_homes_apart() {
        let directory = tempfile::tempdir().unwrap();
        let of = |home: Option<&str>| {
            let instance = InstanceKey {
                uid: Some(54321),
                home: home.map(str::to_owned),
                ..key("oracle", "orcl")
            };
            history_file(directory.path(), &instance)
        };
        let names = [None, Some("/u01/19"), Some("/u01/12")].map(of);
        let name = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
        let expected = [
            "oracle-orcl.54321.history",
            "oracle-orcl.54321.home-u01-19.history",
        ];
        assert_eq!(
            [name(&names[0]), name(&names[1])],
            expected.map(str::to_owned)
        );
        assert!(names.iter().all(|path| is_history_file(&name(path))));
    }

    #[test]
    fn keep_a_bounded_number_of_histories() {
        let directory = tempfile::tempdir().unwrap();
        let now = SystemTime::now();
        let create = |name: &str, age: u64| {
            let file = File::create(directory.path().join(name)).unwrap();
            file.set_modified(now - Duration::from_secs(age)).unwrap();
        };
        let day = 24 * 60 * 60;
        create("oracle-ancient.history", 401 * day);
        create("00000002.history", 401 * day);
        for index in 0..MAX_HISTORIES as u64 + 3 {
            create(&format!("postgresql-{index}.history"), index);
        }
        create("oracle-running.history", 500 * day);
        prune(
            directory.path(),
            &BTreeSet::from([directory.path().join("oracle-running.history")]),
        );
        let is_kept = |name: &str| directory.path().join(name).exists();
        assert!(is_kept("oracle-running.history"));
        assert!(!is_kept("oracle-ancient.history") && is_kept("00000002.history"));
        assert!(
            is_kept("postgresql-0.history")
                && is_kept("postgresql-999.history")
                && !is_kept("postgresql-1000.history")
                && !is_kept("postgresql-1002.history")
        );
        assert_eq!(
            fs::read_dir(directory.path()).unwrap().count(),
            MAX_HISTORIES + 2
        );
    }
}
