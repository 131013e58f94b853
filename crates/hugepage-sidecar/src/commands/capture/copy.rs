//! The new directory of a capture, written by descriptor. Whatever the names and links of a host are, nothing is written
//! outside of the directory: links are followed as text, and created after everything else.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::{self, Write};
use std::path::Path;
use std::time::SystemTime;

use hugepage_kernel::SafeDirectory;
use hugepage_kernel::source::source_tree::{CHANGED, REFUSED};
use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::privileges;

/// The files that this program writes into the top of a capture: no file of the host gets their names.
const OWN_FILES: [&str; 3] = [README, REFUSED, CHANGED];
pub const README: &str = "README";
/// As many links as the kernel follows (path_resolution(7)).
const MAX_LINKS: usize = 40;
/// The most components of a path (PATH_MAX is 4096 bytes).
const MAX_COMPONENTS: usize = 2048;

/// A directory that only this process writes to.
#[derive(Debug)]
pub struct Copy {
    top: SafeDirectory,
    /// The targets of symbolic links by the names of the way to each, all without links.
    links: BTreeMap<Vec<String>, String>,
}

impl Copy {
    /// The empty directory `directory`, which no other user can write to.
    pub fn into(directory: &Path) -> io::Result<Self> {
        Ok(Self { top: SafeDirectory::open(directory, OFlags::PATH | OFlags::NOFOLLOW)?, links: BTreeMap::new() })
    }

    /// Notes a symbolic link, which [`Copy::finish`] creates. Files below its path are written to its target.
    pub fn link(&mut self, path: &str, target: &str) {
        if let Some(place) = self.place(path, false) {
            self.links.entry(place).or_insert_with(|| target.to_owned());
        }
    }

    /// Whether a link leads to another place than the path names.
    pub fn is_below_link(&self, path: &str) -> bool {
        self.place(path, true) != place(&BTreeMap::new(), path, true)
    }

    /// Writes a regular file unless something is at `path`; returns whether it was written.
    pub fn file(&self, path: &str, content: &[u8], modified: Option<SystemTime>) -> io::Result<bool> {
        let place = self.place(path, true).filter(|place| !is_own(place));
        let Some((name, above)) = place.as_deref().and_then(<[String]>::split_last) else { return Ok(false) };
        privileges::write(|| self.create(above, name, content, modified))
    }

    /// Writes a file of this program's own into the top directory.
    pub fn own_file(&self, name: &str, content: &[u8]) -> io::Result<()> {
        match privileges::write(|| self.create(&[], name, content, None))? {
            true => Ok(()),
            false => Err(Errno::EXIST.into()),
        }
    }

    /// Creates a directory and those above it; returns false if something else is there.
    pub fn directory(&self, path: &str) -> io::Result<bool> {
        match self.place(path, true) {
            Some(place) if !is_own(&place) => Ok(privileges::write(|| self.open(&place))?.is_some()),
            _ => Ok(false),
        }
    }

    /// Whether a link was noted at `path`.
    pub fn is_link(&self, path: &str) -> bool {
        self.place(path, false).is_some_and(|place| self.links.contains_key(&place))
    }

    /// Creates the links.
    pub fn finish(&self) -> io::Result<()> {
        privileges::write(|| self.create_links())
    }

    fn create_links(&self) -> io::Result<()> {
        for (place, target) in &self.links {
            let Some((name, above)) = place.split_last() else { continue };
            let Some(directory) = self.open(above)? else { continue };
            skip_hostile(directory.link(target, name))?;
        }
        Ok(())
    }

    fn create(&self, above: &[String], name: &str, content: &[u8], modified: Option<SystemTime>) -> io::Result<bool> {
        let Some(directory) = self.open(above)? else { return Ok(false) };
        let Some(mut file) = skip_hostile(directory.create_file(name, 0o644))? else { return Ok(false) };
        file.write_all(content)?;
        modified.map_or(Ok(()), |at| file.set_modified(at))?;
        Ok(true)
    }

    /// The directory at `place`, created if it does not exist; `None` if something else is there.
    fn open(&self, place: &[String]) -> io::Result<Option<SafeDirectory>> {
        let mut directory = self.top.directory(".", OFlags::PATH)?;
        for name in place {
            let next = directory.create_directory(OsStr::new(name), 0o755, OFlags::PATH);
            let Some(next) = skip_hostile(next)? else { return Ok(None) };
            directory = next;
        }
        Ok(Some(directory))
    }

    fn place(&self, path: &str, follows_last: bool) -> Option<Vec<String>> {
        place(&self.links, path, follows_last)
    }
}

/// The names of the way from the top to `path` without links: those of the host are followed here, never by the kernel.
/// `None` if there are too many.
fn place(links: &BTreeMap<Vec<String>, String>, path: &str, follows_last: bool) -> Option<Vec<String>> {
    let mut place: Vec<String> = Vec::new();
    let mut rest: Vec<String> = path.split('/').rev().map(str::to_owned).collect();
    let mut followed = 0;
    while let Some(name) = rest.pop() {
        match name.as_str() {
            "" | "." => continue,
            ".." => {
                place.pop();
                continue;
            }
            _ => place.push(name),
        }
        let target = links.get(&place).filter(|_| follows_last || rest.iter().any(|name| !name.is_empty()));
        if let Some(target) = target {
            followed += 1;
            place.pop();
            if target.starts_with('/') {
                place.clear();
            }
            rest.extend(target.split('/').rev().map(str::to_owned));
        }
        if followed > MAX_LINKS || rest.len() + place.len() > MAX_COMPONENTS {
            return None;
        }
    }
    Some(place)
}

fn is_own(place: &[String]) -> bool {
    place.first().is_some_and(|name| OWN_FILES.contains(&name.as_str()))
}

/// `None` for errors that a name of the host can cause: it is omitted, and the rest is captured.
fn skip_hostile<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) => match Errno::from_io_error(&error) {
            Some(Errno::EXIST | Errno::NOTDIR | Errno::LOOP | Errno::NAMETOOLONG | Errno::INVAL | Errno::NOENT) => {
                Ok(None)
            }
            _ => Err(error),
        },
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A capture in the directory `in`, beside a directory of the host that links lead to.
    fn capture() -> (tempfile::TempDir, Copy) {
        let above = tempfile::tempdir().unwrap();
        fs::create_dir(above.path().join("in")).unwrap();
        fs::create_dir(above.path().join("host")).unwrap();
        let copy = Copy::into(&above.path().join("in")).unwrap();
        (above, copy)
    }

    #[test]
    fn write_below_a_link_to_its_target_in_the_capture() {
        let (above, mut copy) = capture();
        let host = above.path().join("host");
        for (path, target) in [
            ("/proc/7/cwd", host.to_str().unwrap()),
            ("/proc/8/cwd", "../../../../../host"),
            ("/a", "/b"),
            ("/b", "c/d"),
            ("/loop", "/loop/x"),
        ] {
            copy.link(path, target);
        }
        for path in ["/proc/7/cwd/auxv", "/proc/8/cwd/auxv", "/a/file", "/../../host/up", "/proc/7/../../../host/up2"] {
            assert!(copy.file(path, b"x", None).unwrap(), "{path}");
        }
        assert!(!copy.file("/loop/file", b"x", None).unwrap());
        copy.finish().unwrap();
        assert_eq!(fs::read_dir(&host).unwrap().count(), 0, "nothing outside");
        let at = |path: &str| above.path().join("in").join(path.trim_start_matches('/'));
        for path in [&format!("{}/auxv", host.display()), "/host/auxv", "/c/d/file", "/host/up", "/host/up2"] {
            assert_eq!(fs::read(at(path)).unwrap(), b"x", "{path}");
        }
        assert_eq!(fs::read_link(at("/proc/7/cwd")).unwrap(), host);
        assert!(copy.is_link("/b") && copy.is_below_link("/a/file") && !copy.is_below_link("/c/d/file"));
    }

    #[test]
    fn replace_nothing() {
        let (above, mut copy) = capture();
        assert!(copy.file("/x", b"first", None).unwrap());
        assert!(!copy.file("/x", b"second", None).unwrap());
        assert!(!copy.file("/x/below", b"", None).unwrap() && !copy.directory("/x").unwrap());
        assert!(!copy.file(&"/n".repeat(3000), b"", None).unwrap());
        assert!(!copy.file(&format!("/{}", "n".repeat(300)), b"", None).unwrap());
        for path in ["/README", "/refused", "/README/x", "/", ""] {
            assert!(!copy.file(path, b"host", None).unwrap(), "{path}");
        }
        copy.link("/x", "/etc");
        copy.own_file("README", b"own").unwrap();
        assert!(copy.own_file("README", b"again").is_err());
        copy.finish().unwrap();
        assert_eq!(fs::read(above.path().join("in/x")).unwrap(), b"first");
    }
}
