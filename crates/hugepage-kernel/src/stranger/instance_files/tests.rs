//! What the door opens. Files of other users can only be made by root; elsewhere those tests say that they
//! were left out.

use std::cell::RefCell;
use std::fs::{self, Permissions};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use proptest::prelude::*;
use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};

use super::*;
use crate::Notes;
use crate::postgresql::postgresql_conf::Configuration;

#[path = "../../../tests/most_resident/mod.rs"]
mod most_resident;

use most_resident::most_resident;

const SERVER: u32 = 4711;
const OTHER: u32 = 4712;

thread_local! {
    static OPENED: RefCell<Vec<Metadata>> = const { RefCell::new(Vec::new()) };
}

/// What every opening of this thread was of.
pub(crate) fn note_opened(metadata: &Metadata) {
    OPENED.with_borrow_mut(|opened| opened.push(metadata.clone()));
}

/// A directory that everybody may search, and the files of a server below it.
fn server() -> Option<(tempfile::TempDir, InstanceFiles)> {
    if !rustix::process::geteuid().is_root() {
        eprintln!("left out: only root can make files of other users");
        return None;
    }
    let directory = tempfile::tempdir().unwrap();
    fs::set_permissions(&directory, Permissions::from_mode(0o755)).unwrap();
    Some((directory, InstanceFiles::own(&Root::live())))
}

fn put(path: &Path, uid: u32, gid: u32, mode: u32) {
    fs::write(path, "content").unwrap();
    chown(path, Some(uid), Some(gid)).unwrap();
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

#[test]
fn what_is_no_plain_file_is_never_opened() {
    let Some((directory, files)) = server() else {
        return;
    };
    let path = |name: &str| directory.path().join(name);
    let make = |name: &str, kind, device| {
        mknodat(CWD, path(name), kind, Mode::from(0o666), device)
            .map(|()| chown(path(name), Some(SERVER), None).unwrap())
    };
    make("fifo", FileType::Fifo, 0).unwrap();
    // Containers may not make devices.
    let _ = make("zero", FileType::CharacterDevice, makedev(1, 5));
    let _socket = UnixListener::bind(path("socket")).unwrap();
    symlink("/dev/zero", path("to_zero")).unwrap();
    symlink("/proc/self/environ", path("environment")).unwrap();
    OPENED.take();
    for name in ["fifo", "zero", "socket", "to_zero", "environment", "none"] {
        assert!(
            files.read(path(name).to_str().unwrap(), 100).is_err(),
            "{name}"
        );
    }
    for path in [
        "/dev/zero",
        "/dev/tty",
        "/proc/kmsg",
        "/proc/self/mem",
        "/proc/cpuinfo",
        "/sys/kernel/mm",
        "/",
    ] {
        assert!(files.read(path, 100).is_err(), "{path}");
    }
    assert!(OPENED.take().is_empty());
    // A link to /dev/null keeps ALTER SYSTEM from its file.
    symlink("/dev/null", path("nothing")).unwrap();
    assert_eq!(
        files.read(path("nothing").to_str().unwrap(), 100).unwrap(),
        b""
    );
    assert!(OPENED.take().is_empty());
}

#[test]
fn versions_are_numbers() {
    let directory = tempfile::tempdir().unwrap();
    let files = InstanceFiles::own(&Root::at(directory.path()));
    for (text, version) in [
        ("15\n", Some("15")),
        ("9.6\n", Some("9.6")),
        ("root:$6$x\n", None),
        ("", None),
        ("12345678901234567\n", None),
    ] {
        fs::write(directory.path().join("PG_VERSION"), text).unwrap();
        assert_eq!(
            files.version("/PG_VERSION").ok().as_deref(),
            version,
            "{text:?}"
        );
    }
}

/// A tree that a user hands to root may have a second name of a file of root's: that file is not read.
#[test]
fn a_tree_of_another_user() {
    if server().is_none() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let tree = directory.path().join("tree");
    fs::create_dir(&tree).unwrap();
    chown(&tree, Some(OTHER), None).unwrap();
    put(&tree.join("own"), OTHER, 0, 0o600);
    put(&tree.join("of_root"), 0, 0, 0o644);
    put(&directory.path().join("secret"), 0, 0, 0o600);
    fs::hard_link(directory.path().join("secret"), tree.join("hard")).unwrap();
    symlink("../secret", tree.join("soft")).unwrap();
    let root = Root::at(&tree);
    let files = InstanceFiles::of_process(&root, 7);
    for (name, is_read) in [
        ("/own", true),
        ("/of_root", true),
        ("/hard", false),
        ("/soft", false),
    ] {
        assert_eq!(files.read(name, 100).is_ok(), is_read, "{name}");
        assert_eq!(root.read(name).is_ok(), is_read, "{name}");
    }
}

/// One entry of a tree that its owner made to do harm.
#[derive(Clone, Debug)]
enum Entry {
    File {
        uid: u32,
        mode: u32,
        length: u64,
        text: String,
    },
    HardLink(usize),
    Link(String),
    Fifo,
    Device,
    Directory,
}

fn name() -> impl Strategy<Value = Vec<u8>> {
    let odd = proptest::collection::vec(prop_oneof![1u8..47, 48u8..=255], 1..12);
    let usual = prop_oneof![
        Just("PG_VERSION"),
        Just("postgresql.conf"),
        Just("a.conf"),
        Just("b.conf"),
        Just("c"),
        Just("d"),
        Just("e")
    ];
    prop_oneof![1 => odd, 4 => usual.prop_map(|name| name.as_bytes().to_vec())]
}

fn target() -> impl Strategy<Value = String> {
    let parts = prop_oneof![
        Just(".."),
        Just("."),
        Just("c"),
        Just("d"),
        Just("e"),
        Just("a.conf"),
        Just("b.conf"),
        Just("postgresql.conf")
    ];
    let inside = proptest::collection::vec(parts, 1..5).prop_map(|parts| parts.join("/"));
    let outside = prop_oneof![
        Just("/etc/shadow"),
        Just("/dev/zero"),
        Just("/dev/tty"),
        Just("/proc/kmsg"),
        Just("/proc/self/mem"),
        Just("/"),
        Just("/proc/self/fd/0"),
        Just("/proc/self/root/etc/shadow"),
        Just("/proc/self/cwd"),
        Just("/sys"),
        Just("/etc")
    ];
    prop_oneof![2 => inside, 1 => outside.prop_map(str::to_owned)]
}

fn entry() -> impl Strategy<Value = Entry> {
    let line = (
        prop_oneof![
            Just("include"),
            Just("include_dir"),
            Just("include_if_exists"),
            Just("huge_pages")
        ],
        target(),
    );
    let text = proptest::collection::vec(
        line.prop_map(|(name, value)| format!("{name} = '{value}'\n")),
        0..20,
    );
    let length = prop_oneof![Just(0u64), Just(100 << 10), Just(1 << 30), Just(4 << 40)];
    let uid = prop_oneof![4 => Just(SERVER), 1 => Just(OTHER), 1 => Just(0)];
    prop_oneof![
        6 => (uid, prop_oneof![Just(0o600), Just(0o644)], length, text)
            .prop_map(|(uid, mode, length, text)| Entry::File { uid, mode, length, text: text.concat() }),
        1 => (0usize..20).prop_map(Entry::HardLink),
        4 => target().prop_map(Entry::Link),
        1 => Just(Entry::Fifo),
        1 => Just(Entry::Device),
        2 => Just(Entry::Directory),
    ]
}

/// Makes what it can of the entries in directories of the server's user; returns their paths.
fn make(top: &Path, entries: &[(usize, Vec<u8>, Entry)]) -> Vec<PathBuf> {
    let mut directories = vec![top.to_owned()];
    let mut paths: Vec<PathBuf> = Vec::new();
    for (within, name, entry) in entries {
        let path = directories[within % directories.len()].join(std::ffi::OsStr::from_bytes(name));
        let special = |kind, device| {
            mknodat(CWD, &path, kind, Mode::from(0o666), device).map_err(io::Error::from)
        };
        let made = match entry {
            // Never through a link that is there already: those lead out of the tree.
            Entry::File {
                uid,
                mode,
                length,
                text,
            } => File::create_new(&path).and_then(|mut file| {
                file.write_all(text.as_bytes())?;
                file.set_len((*length).max(u64::try_from(text.len()).unwrap()))?;
                std::os::unix::fs::fchown(&file, Some(*uid), Some(0))?;
                file.set_permissions(Permissions::from_mode(*mode))
            }),
            Entry::HardLink(to) => match paths.get(*to) {
                Some(to) => fs::hard_link(to, &path),
                None => continue,
            },
            Entry::Link(to) => symlink(to, &path),
            Entry::Fifo => special(FileType::Fifo, 0),
            Entry::Device => special(FileType::CharacterDevice, makedev(1, 5)),
            Entry::Directory => fs::create_dir(&path).map(|()| directories.push(path.clone())),
        };
        if made.is_ok() {
            if matches!(
                entry,
                Entry::Link(_) | Entry::Fifo | Entry::Device | Entry::Directory
            ) {
                std::os::unix::fs::lchown(&path, Some(SERVER), None).unwrap();
            }
            paths.push(path);
        }
    }
    paths
}

/// As many as `PROPTEST_CASES` says, 200 without it.
#[test]
fn hostile_trees() {
    if server().is_none() {
        return;
    }
    let cases = std::env::var("PROPTEST_CASES")
        .ok()
        .and_then(|cases| cases.parse().ok())
        .unwrap_or(200);
    let before = most_resident();
    let entries = proptest::collection::vec((0usize..8, name(), entry()), 1..30);
    let config = ProptestConfig {
        cases,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    proptest!(config, |(entries in entries)| {
        let (directory, files) = server().unwrap();
        let top = directory.path().to_str().unwrap();
        let paths = make(directory.path(), &entries);
        OPENED.take();
        let begun = Instant::now();
        let (mut configuration, mut notes) = (Configuration::default(), Notes::default());
        configuration.add(&files, &directory.path().join("postgresql.conf"), &mut notes);
        let _ = files.version(&format!("{top}/PG_VERSION"));
        for path in paths.iter().filter_map(|path| path.to_str()) {
            let _ = (files.read_first(path, 8), files.open(path), files.list(path), files.read_link(path));
            let _ = (files.root().exists(path), files.root().modified(path), files.last_change(Path::new(path)));
        }
        let elapsed = begun.elapsed();
        prop_assert!(elapsed < Duration::from_secs(10), "{elapsed:?}");
        for opened in OPENED.take() {
            prop_assert!(opened.is_file());
        }
    });
    let more = most_resident().saturating_sub(before);
    assert!(more < 64 << 20, "{more} bytes more were resident");
}

/// A file keeps the time that a program gives it, and whoever switches a link does not touch what it leads to.
#[test]
fn changes_that_the_time_of_writing_hides() {
    let tree = tempfile::tempdir().unwrap();
    let path = |name: &str| tree.path().join(name).to_str().unwrap().to_owned();
    let (old, link) = (path("old.conf"), path("link.conf"));
    let files = InstanceFiles::own(&Root::live());
    let changed = |path: &str| files.last_change(Path::new(path)).unwrap().unwrap().0;
    fs::write(&old, "").unwrap();
    File::open(&old)
        .unwrap()
        .set_modified(SystemTime::UNIX_EPOCH)
        .unwrap();
    let written = changed(&old);
    assert_eq!(files.root().modified(&old), Some(SystemTime::UNIX_EPOCH));
    assert!(written > SystemTime::UNIX_EPOCH);
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        let _ = fs::remove_file(&link);
        symlink("old.conf", &link).unwrap();
        // The file system's clock goes in steps.
        if changed(&link) > written {
            break;
        }
        assert!(Instant::now() < deadline);
    }
    assert_eq!(changed(&old), written);
}

/// A file that is not there may have been removed: from its directory, from where a link leads to, or with its directory.
#[test]
fn changes_that_leave_nothing_behind() {
    let tree = tempfile::tempdir().unwrap();
    let path = |name: &str| tree.path().join(name);
    let files = InstanceFiles::own(&Root::live());
    let of = |name: &str| files.last_change(&path(name)).unwrap().unwrap();
    fs::create_dir_all(path("conf/d")).unwrap();
    fs::create_dir(path("elsewhere")).unwrap();
    fs::write(path("conf/a.conf"), "").unwrap();
    symlink("../elsewhere/gone.conf", path("conf/link.conf")).unwrap();
    symlink("nonesuch", path("conf/link.d")).unwrap();
    symlink("loop.conf", path("conf/loop.conf")).unwrap();
    assert_eq!(of("conf/a.conf").1, path("conf/a.conf"));
    let (written, at) = of("conf/b.conf");
    assert_eq!(
        (at, of("conf/link.d/b.conf").1),
        (path("conf"), path("conf"))
    );
    assert_eq!(of("conf/link.conf").1, path("conf/../elsewhere"));
    assert_eq!(of("conf/none/d/b.conf").1, path("conf"));
    for unseen in ["conf/loop.conf", "conf/a.conf/b.conf"] {
        assert!(files.last_change(&path(unseen)).is_err(), "{unseen}");
    }
    let deadline = Instant::now() + Duration::from_secs(10);
    while of("conf/b.conf").0 <= written {
        fs::write(path("conf/b.conf"), "").unwrap();
        fs::remove_file(path("conf/b.conf")).unwrap();
        assert!(Instant::now() < deadline);
    }
}

/// A tree that was copied has the times of the contents alone.
#[test]
fn changes_that_a_tree_tells() {
    let tree = tempfile::tempdir().unwrap();
    let file = File::create(tree.path().join("a.conf")).unwrap();
    let then = SystemTime::UNIX_EPOCH + Duration::from_secs(1);
    file.set_modified(then).unwrap();
    let files = InstanceFiles::own(&Root::at(tree.path()));
    assert_eq!(
        files.last_change(Path::new("/a.conf")).unwrap().unwrap(),
        (then, "/a.conf".into())
    );
}
