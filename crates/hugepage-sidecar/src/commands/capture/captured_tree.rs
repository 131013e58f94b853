//! The captured tree: every file that the survey accessed, redacted, at the same path.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::time::SystemTime;

use anyhow::{Context, bail};
use hugepage_kernel::mapping::procmap_query;
use hugepage_kernel::source::access_log::{AccessKind, AccessLog, FileAccess};
use hugepage_kernel::source::repeated_access::RepeatedAccess;
use hugepage_kernel::source::source_tree::{CHANGED, REFUSED};
use hugepage_kernel::{ReadError, Root, escape};
use hugepage_oracle::readers::alert_log;
use rustix::io::Errno;

use super::copy::{Copy, README};
use super::{redact, redact_process};
use crate::signals::Interrupt;

/// Files are read up to this size; only alert logs are longer.
const MAX_FILE_BYTES: u64 = 16 << 20;
/// Bytes that are read of an alert log, from shortly before its last start on.
const MAX_START_BYTES: u64 = 1 << 20;

/// Files that were omitted, and why.
#[derive(Debug, Default)]
pub struct Omitted {
    /// Files without a redaction rule.
    pub unknown: BTreeSet<String>,
    /// Files that could not be read, with the error number.
    pub refused: BTreeMap<String, i32>,
}

/// Writes the accessed files of `root` into the empty directory `into`, and the text of `readme`.
pub fn write(
    root: &Root,
    log: &AccessLog,
    into: &Path,
    readme: fn(&Omitted) -> String,
    interrupt: &Interrupt,
) -> anyhow::Result<Omitted> {
    let accesses = log.accesses();
    let copy = Copy::into(into).with_context(|| could_not("open", into))?;
    let mut tree =
        Tree { root, log, copy, omitted: Omitted::default(), changed: BTreeMap::new(), servers: BTreeMap::new() };
    // Links first: a file below a link is written to its target.
    use AccessKind::{Change, Content, Existence, Link, Names};
    for kind in [Link, Content, Names, Existence, Change] {
        // A link may change between two reads. It must not put another file in the place of one that has its own path.
        for is_below_link in [false, true] {
            for access in accesses.iter().filter(|access| access.kind == kind) {
                if interrupt.is_set() {
                    bail!("interrupted");
                }
                if (kind == Link || tree.copy.is_below_link(&access.path) == is_below_link)
                    && tree.is_allowed(&access.path)
                {
                    tree.take(access)?;
                }
            }
        }
    }
    let refused = tree.omitted.refused.iter();
    let refused: String = refused.map(|(path, errno)| format!("{errno} {}\n", escape::reversible(path))).collect();
    tree.copy.own_file(REFUSED, refused.as_bytes())?;
    let changed = tree.changed.iter().filter_map(|(path, at)| {
        let since = at.duration_since(SystemTime::UNIX_EPOCH).ok()?;
        Some(format!("{}.{} {}\n", since.as_secs(), since.subsec_nanos(), escape::reversible(path)))
    });
    tree.copy.own_file(CHANGED, changed.collect::<String>().as_bytes())?;
    tree.copy.own_file(README, readme(&tree.omitted).as_bytes())?;
    tree.copy.finish()?;
    Ok(tree.omitted)
}

struct Tree<'a> {
    root: &'a Root,
    log: &'a AccessLog,
    copy: Copy,
    omitted: Omitted,
    /// The time when each file of a server has changed last, by path.
    changed: BTreeMap<String, SystemTime>,
    /// Whether a process belongs to a database server, by process ID.
    servers: BTreeMap<String, bool>,
}

impl Tree<'_> {
    /// Whether the path may be captured: of processes only database servers, and who calls itself one.
    fn is_allowed(&mut self, path: &str) -> bool {
        let Some(pid) = path.strip_prefix("/proc/").and_then(|rest| rest.split('/').next()) else { return true };
        if pid.parse::<u32>().is_err() {
            return true;
        }
        let (root, log) = (self.root, self.log);
        let known = self.servers.entry(pid.to_owned());
        *known.or_insert_with(|| {
            let title = format!("/proc/{pid}/cmdline");
            // Of who does not count the survey has not read the title.
            let is_read = log.has(&title);
            !is_read || root.read(&title).is_ok_and(|text| redact_process::is_of_server(&text))
        })
    }

    fn take(&mut self, access: &FileAccess) -> anyhow::Result<()> {
        let FileAccess { path, kind } = access;
        // A server's file is read again as the same user.
        let again = RepeatedAccess::new(self.root, self.log, access);
        match kind {
            AccessKind::Link => match again.read_link() {
                // What is no link is none in the tree, too.
                Err(ReadError::Io { source, .. }) if source.raw_os_error() == Some(Errno::INVAL.raw_os_error()) => {}
                target => self.or_refused(path, target).iter().for_each(|target| self.copy.link(path, target)),
            },
            AccessKind::Content => self.content(path, &again)?,
            AccessKind::Names => {
                if let Some(names) = self.or_refused(path, again.list()) {
                    self.names(path, &names, &again)?;
                }
            }
            AccessKind::Change => self.changed.extend(again.changed().map(|at| (path.clone(), at))),
            AccessKind::Existence => {
                if again.exists() {
                    self.placeholder(path, &again)?;
                }
            }
        }
        Ok(())
    }

    fn content(&mut self, path: &str, again: &RepeatedAccess) -> anyhow::Result<()> {
        if let Some(text) = smaps(self.root, path) {
            return self.keep(path, text.as_bytes(), again);
        }
        let found = again.open().and_then(|mut file| {
            let content = if is_alert_log(path) { last_start(&mut file) } else { all(&mut file) };
            content.map_err(|source| self.root.error("read", path, source))
        });
        let Some(bytes) = self.or_refused(path, found) else { return Ok(()) };
        match (redact::bytes_shown(path), redact::rule(path)) {
            (Some(shown), _) => self.keep(path, &bytes[..shown.min(bytes.len())], again),
            (None, Some(rule)) => self.keep(path, rule(&String::from_utf8_lossy(&bytes)).as_bytes(), again),
            (None, None) => {
                self.omitted.unknown.insert(path.to_owned());
                Ok(())
            }
        }
    }

    /// Writes a file into the tree, with the modification time of the original.
    fn keep(&self, path: &str, content: &[u8], again: &RepeatedAccess) -> anyhow::Result<()> {
        // Files that the kernel generates have the time of reading, which /proc/uptime also needs.
        let is_of_now = self.root.is_live() && redact::is_of_kernel(path);
        let modified = if is_of_now { None } else { again.modified() };
        self.copy.file(path, content, modified).with_context(|| could_not("write", Path::new(path)))?;
        Ok(())
    }

    /// Writes placeholders for the names in a directory. Of /proc only accessed files are captured.
    fn names(&mut self, path: &str, names: &[String], again: &RepeatedAccess) -> anyhow::Result<()> {
        self.directory(path)?;
        if redact::is_of_kernel(path) && !path.starts_with("/sys/") {
            return Ok(());
        }
        for name in names {
            self.placeholder(&format!("{path}/{name}"), &again.at(name))?;
        }
        Ok(())
    }

    /// Writes an empty file or directory if the path does not exist in the tree.
    fn placeholder(&mut self, path: &str, again: &RepeatedAccess) -> anyhow::Result<()> {
        if self.copy.is_link(path) {
            return Ok(());
        }
        if again.is_directory() { self.directory(path) } else { self.keep(path, b"", again) }
    }

    fn directory(&self, path: &str) -> anyhow::Result<()> {
        self.copy.directory(path).with_context(|| could_not("create", Path::new(path)))?;
        Ok(())
    }

    /// The value; a refusal is recorded. A missing file is missing in the tree, too.
    fn or_refused<T>(&mut self, path: &str, result: Result<T, ReadError>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(ReadError::Io { source, .. }) => {
                let errno = source.raw_os_error().filter(|errno| !not_there().contains(errno));
                self.omitted.refused.extend(errno.map(|errno| (path.to_owned(), errno)));
                None
            }
            Err(ReadError::Content { .. } | ReadError::Refused { .. }) => {
                self.omitted.unknown.insert(path.to_owned());
                None
            }
        }
    }
}

fn not_there() -> [i32; 2] {
    [Errno::NOENT, Errno::SRCH].map(Errno::raw_os_error)
}

fn could_not(what: &str, place: &Path) -> String {
    format!("could not {what} {}", place.display())
}

/// The smaps of a live process, from page sizes that the kernel reports (PROCMAP_QUERY, Linux 6.11). Reading smaps would
/// walk all page tables. `None` for other files, and on other kernels.
fn smaps(root: &Root, path: &str) -> Option<String> {
    let pid = path.strip_prefix("/proc/")?.strip_suffix("/smaps")?.parse().ok()?;
    let (mappings, is_sized) = procmap_query::with_page_sizes(root, pid, |mapping| mapping.shared).ok()?;
    is_sized.then(|| redact_process::smaps_of(&mappings))
}

fn is_alert_log(path: &str) -> bool {
    path.ends_with("/log.xml") || (path.contains("/alert_") && path.ends_with(".log"))
}

fn all(file: &mut fs::File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(MAX_FILE_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The part of an alert log that begins shortly before its last start; empty if it has none.
fn last_start(file: &mut impl alert_log::Log) -> io::Result<Vec<u8>> {
    match alert_log::find_last(file)? {
        Some(start) => piece(file, start.saturating_sub(4 << 10), MAX_START_BYTES),
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
    use std::os::unix::fs::symlink;

    use super::*;

    /// A host with a server (pid 7), an editor (pid 8) and a configuration that includes a file of its parent directory.
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
    fn capture_what_the_host_answers_without_secrets() {
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
        let omitted =
            write(&Root::at(host.path()), &record, into.path(), |_| String::new(), &Interrupt::default()).unwrap();
        assert_eq!(ask(&Root::at(into.path())), answer);
        assert_eq!(omitted.unknown.iter().collect::<Vec<_>>(), ["/data/server.key"]);
        let shown = everything(into.path());
        assert!(shown.contains("include = '../shared.conf'"), "{shown}");
        assert!(!shown.contains("secret") && !into.path().join("proc/8").exists(), "{shown}");
    }

    #[test]
    fn find_the_last_start_of_a_long_log() {
        let start = "Tue Jan 06 11:22:33 2015\nStarting ORACLE instance (normal)\n";
        let noise = "x\n".repeat(3 << 20);
        let mut log = io::Cursor::new(format!("{start}{noise}{start}{noise}"));
        let piece = String::from_utf8(last_start(&mut log).unwrap()).unwrap();
        assert!(piece.contains(start) && piece.len() <= 1 << 20);
        assert_eq!(last_start(&mut io::Cursor::new(noise)).unwrap(), b"");
    }
}
