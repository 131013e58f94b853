//! The captured tree: for each look the survey took, what may be shown of the file, at the same place.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::symlink;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, bail};
use hugepage_core::ReadError;
use hugepage_core::read::access_log::{Again, How, Look, Record};
use hugepage_core::read::oracle::alert_log;
use hugepage_core::read::root::REFUSED;
use hugepage_core::read::{Root, maps, procmap_query};

use super::{process, redact};
use rustix::io::Errno;

use crate::signals::Interrupt;

/// No file but an alert log is nearly as long.
const LONGEST: u64 = 16 << 20;
/// Of an alert log so much is taken, from above its last start on.
const BLOCK: u64 = 1 << 20;

/// What was left out, and why.
#[derive(Debug, Default)]
pub struct Left {
    /// Files that no rule knows.
    pub unknown: BTreeSet<String>,
    /// What the host refused to show, with its error number.
    pub refused: BTreeMap<String, i32>,
}

/// Writes what the looks at `root` saw below `into`, an empty directory.
pub fn write(root: &Root, record: &Record, into: &Path, interrupt: &Interrupt) -> anyhow::Result<Left> {
    let looks = record.looks();
    let mut tree = Tree { root, record, into, left: Left::default(), servers: BTreeMap::new() };
    // Links first: a file below one comes to lie where it points.
    for how in [How::Link, How::Content, How::Names, How::Existence] {
        for look in looks.iter().filter(|look| look.how == how) {
            if interrupt.came() {
                bail!("interrupted");
            }
            if tree.may_be_shown(&look.path) {
                tree.take(look)?;
            }
        }
    }
    let refused: String = tree.left.refused.iter().map(|(path, errno)| format!("{errno} {path}\n")).collect();
    put(&into.join(REFUSED), refused.as_bytes())?;
    Ok(tree.left)
}

struct Tree<'a> {
    root: &'a Root,
    record: &'a Record,
    into: &'a Path,
    left: Left,
    /// Whether a process is one of a database server.
    servers: BTreeMap<String, bool>,
}

impl Tree<'_> {
    /// Of processes only those of database servers, and this one.
    fn may_be_shown(&mut self, path: &str) -> bool {
        let Some(pid) = path.strip_prefix("/proc/").and_then(|rest| rest.split('/').next()) else { return true };
        if pid.parse::<u32>().is_err() {
            return true;
        }
        let root = self.root;
        let known = self.servers.entry(pid.to_owned());
        *known.or_insert_with(|| {
            root.read(&format!("/proc/{pid}/cmdline")).is_ok_and(|text| process::is_of_server(&text))
        })
    }

    fn take(&mut self, look: &Look) -> anyhow::Result<()> {
        let Look { path, how } = look;
        // A server's file is looked at again as the same user.
        let again = self.record.again(self.root, look);
        match how {
            How::Link => {
                if let Some(target) = self.seen(path, again.read_link()) {
                    let place = self.place(path)?;
                    if is_free(&place) {
                        symlink(target, &place).with_context(|| could_not("link", &place))?;
                    }
                }
            }
            How::Content => self.content(path, &again)?,
            How::Names => {
                if let Some(names) = self.seen(path, again.list()) {
                    self.names(path, &names, &again)?;
                }
            }
            How::Existence => {
                if again.exists() {
                    self.stand_in(path, &again)?;
                }
            }
        }
        Ok(())
    }

    fn content(&mut self, path: &str, again: &Again) -> anyhow::Result<()> {
        if let Some(text) = smaps(self.root, path) {
            return self.keep(path, text.as_bytes(), again);
        }
        let found = again.open().and_then(|mut file| {
            let wanted = if is_alert_log(path) { last_start(&mut file) } else { all(&mut file) };
            wanted.map_err(|source| self.root.error("read", path, source))
        });
        let Some(bytes) = self.seen(path, found) else { return Ok(()) };
        match (redact::bytes_shown(path), redact::rule(path)) {
            (Some(shown), _) => self.keep(path, &bytes[..shown.min(bytes.len())], again),
            (None, Some(rule)) => self.keep(path, rule(&String::from_utf8_lossy(&bytes)).as_bytes(), again),
            (None, None) => {
                self.left.unknown.insert(path.to_owned());
                Ok(())
            }
        }
    }

    /// Puts a file into the tree, as old as the one that it stands for.
    fn keep(&self, path: &str, content: &[u8], again: &Again) -> anyhow::Result<()> {
        let place = self.place(path)?;
        if !is_free(&place) {
            return Ok(());
        }
        put(&place, content)?;
        // What a kernel makes up when it is read is as old as the reading; /proc/uptime is what tells when that was.
        if self.root.is_live() && redact::is_of_kernel(path) {
            return Ok(());
        }
        let modified = again.modified();
        let set = modified.map(|at| fs::File::options().write(true).open(&place)?.set_modified(at));
        set.unwrap_or(Ok(())).with_context(|| could_not("write", &place))
    }

    /// A name counts even if nobody looked at what it is. Of /proc only what was looked at is shown.
    fn names(&mut self, path: &str, names: &[String], again: &Again) -> anyhow::Result<()> {
        self.directory(path)?;
        if redact::is_of_kernel(path) && !path.starts_with("/sys/") {
            return Ok(());
        }
        for name in names {
            self.stand_in(&format!("{path}/{name}"), &again.at(name))?;
        }
        Ok(())
    }

    /// An empty file or directory where nothing is yet.
    fn stand_in(&mut self, path: &str, again: &Again) -> anyhow::Result<()> {
        let place = self.place(path)?;
        if !is_free(&place) {
            return Ok(());
        }
        if again.is_directory() { self.directory(path) } else { self.keep(path, b"", again) }
    }

    fn directory(&self, path: &str) -> anyhow::Result<()> {
        let place = self.place(path)?;
        fs::create_dir_all(&place).with_context(|| could_not("make", &place))
    }

    /// The value, or a note of the refusal. What is not there, or gone by now, is not there in the tree either.
    fn seen<T>(&mut self, path: &str, result: Result<T, ReadError>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(ReadError::Io { source, .. }) => {
                let errno = source.raw_os_error().filter(|errno| !not_there().contains(errno));
                self.left.refused.extend(errno.map(|errno| (path.to_owned(), errno)));
                None
            }
            Err(ReadError::Content { .. } | ReadError::Refused { .. }) => {
                self.left.unknown.insert(path.to_owned());
                None
            }
        }
    }

    /// The place of `path` in the tree, with all directories that it goes through; never outside.
    fn place(&self, path: &str) -> anyhow::Result<PathBuf> {
        let mut place = self.into.to_owned();
        let mut components = Path::new(path).components().peekable();
        while let Some(component) = components.next() {
            match component {
                Component::Normal(name) => place.push(name),
                Component::ParentDir if place != self.into => {
                    place.pop();
                }
                _ => {}
            }
            if components.peek().is_some() && !place.is_dir() {
                fs::create_dir_all(&place).with_context(|| could_not("make", &place))?;
            }
        }
        Ok(place)
    }
}

fn not_there() -> [i32; 2] {
    [Errno::NOENT, Errno::SRCH].map(Errno::raw_os_error)
}

fn is_free(place: &Path) -> bool {
    place.symlink_metadata().is_err()
}

fn put(place: &Path, content: &[u8]) -> anyhow::Result<()> {
    fs::write(place, content).with_context(|| could_not("write", place))
}

fn could_not(what: &str, place: &Path) -> String {
    format!("could not {what} {}", place.display())
}

/// The page sizes of a live process's shared mappings from the kernel (Linux 6.11 on): reading smaps itself would walk
/// all of its page tables. `None` for all else.
fn smaps(root: &Root, path: &str) -> Option<String> {
    let pid = path.strip_prefix("/proc/")?.strip_suffix("/smaps")?.parse().ok()?;
    let mappings = maps::read(root, &maps::path(pid), |mapping| mapping.shared).ok()?;
    let starts: Vec<_> = mappings.iter().map(|mapping| mapping.start).collect();
    let sizes = procmap_query::page_sizes(root, pid, &starts)?.ok()?;
    Some(process::smaps_of(&mappings.into_iter().zip(sizes).collect::<Vec<_>>()))
}

fn is_alert_log(path: &str) -> bool {
    path.ends_with("/log.xml") || (path.contains("/alert_") && path.ends_with(".log"))
}

fn all(file: &mut fs::File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(LONGEST).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Of an alert log, which may be of any length, a piece that begins above its last start; nothing if it has none.
fn last_start(file: &mut impl alert_log::Log) -> io::Result<Vec<u8>> {
    match alert_log::find_last(file)? {
        Some(start) => piece(file, start.saturating_sub(4 << 10), BLOCK),
        None => Ok(Vec::new()),
    }
}

fn piece(file: &mut (impl Read + Seek), from: u64, length: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(from))?;
    file.take(length).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A host with a server (pid 7), somebody's editor (pid 8) and a configuration that includes from above itself.
    fn host() -> tempfile::TempDir {
        let host = tempfile::tempdir().unwrap();
        for (path, text) in [
            ("proc/7/cmdline", "postgres\0-D\0/data\0-c\0archive_command=secret\0"),
            ("proc/7/status", "VmPTE: 4 kB\n"),
            ("proc/8/cmdline", "vi\0/secret\0"),
            ("proc/8/status", "VmPTE: 4 kB\n"),
            ("data/postgresql.conf", "include = '../shared.conf'\nprimary_conninfo = 'secret'\n"),
            ("shared.conf", "huge_pages = on\n"),
            ("data/server.key", "secret"),
            ("etc/sysctl.d/README", "secret"),
        ] {
            let path = host.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        symlink("/data", host.path().join("proc/7/cwd")).unwrap();
        host
    }

    fn everything(tree: &Path) -> String {
        let mut found = String::new();
        for entry in fs::read_dir(tree).unwrap().map(|entry| entry.unwrap()) {
            found += &format!("{}\n", entry.path().display());
            if entry.file_type().unwrap().is_dir() {
                found += &everything(&entry.path());
            } else if entry.file_type().unwrap().is_file() {
                found += &fs::read_to_string(entry.path()).unwrap();
            }
        }
        found
    }

    #[test]
    fn the_tree_answers_as_the_host_and_tells_nothing_else() {
        let host = host();
        let into = tempfile::tempdir().unwrap();
        let ask = |root: &Root| {
            (
                root.read("/proc/7/status").ok(),
                root.read_link("/proc/7/cwd").ok(),
                root.read("/data/../shared.conf").ok().map(|text| text.contains("on")),
                root.read("/data/none").is_err_and(|error| error.is_not_found()),
                root.list("/etc/sysctl.d").unwrap(),
                root.exists("/data"),
            )
        };
        let (root, record) = Root::at(host.path()).recording();
        let answer = ask(&root);
        for path in
            ["/proc/7/cmdline", "/proc/8/cmdline", "/proc/8/status", "/data/postgresql.conf", "/data/server.key"]
        {
            let _ = root.read(path);
        }
        let left = write(&Root::at(host.path()), &record, into.path(), &Interrupt::default()).unwrap();
        assert_eq!(ask(&Root::at(into.path())), answer);
        assert_eq!(left.unknown.iter().collect::<Vec<_>>(), ["/data/server.key"]);
        let shown = everything(into.path());
        assert!(shown.contains("include = '../shared.conf'"), "{shown}");
        assert!(!shown.contains("secret") && !into.path().join("proc/8").exists(), "{shown}");
    }

    #[test]
    fn nothing_is_written_outside() {
        let into = tempfile::tempdir().unwrap();
        let root = Root::live();
        let record = Record::default();
        let tree =
            Tree { root: &root, record: &record, into: into.path(), left: Left::default(), servers: BTreeMap::new() };
        for path in ["/../../etc/x", "/a/../../../b", "/a/b/../c"] {
            assert!(tree.place(path).unwrap().starts_with(into.path()), "{path}");
        }
    }

    #[test]
    fn the_last_start_of_a_long_log_is_found() {
        let start = "Tue Jan 06 11:22:33 2015\nStarting ORACLE instance (normal)\n";
        let noise = "x\n".repeat(3 << 20);
        let mut log = io::Cursor::new(format!("{start}{noise}{start}{noise}"));
        let piece = String::from_utf8(last_start(&mut log).unwrap()).unwrap();
        assert!(piece.contains(start) && piece.len() <= 1 << 20);
        assert_eq!(last_start(&mut io::Cursor::new(noise)).unwrap(), b"");
    }
}
