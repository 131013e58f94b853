//! Finds what a path names below a directory, one step after the other and by descriptors: no link, no `..` and no rename
//! meanwhile leads out of it, and no link of the kernel's below /proc is followed.
//!
//! openat2(2) confines a path as well, from Linux 5.6 on and where no seccomp filter refuses it; this way every kernel can take.
//! Nothing is opened here but with O_PATH, which has no effect on what is there (open(2)).

use std::borrow::Cow;
use std::fs::{self, File, Metadata};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::{Dir, Mode, OFlags, fstatfs, openat, readlinkat};
use rustix::io::Errno;

use crate::source::failures::noted;
use crate::source::live_files::{self, of_descriptor};

/// The most symbolic links that are followed, as many as the kernel does (path_resolution(7)).
const MAX_LINKS: usize = 40;
/// The most steps of a path, links included: more than any path of a server has. Each directory keeps a descriptor until the end.
const MAX_STEPS: usize = 200;

/// What a path names.
#[derive(Debug)]
pub struct BeneathFile {
    /// The descriptor, opened with O_PATH.
    descriptor: File,
    /// The result of fstat(2).
    pub metadata: Metadata,
    /// The last change of it or of a link on the way, the name included: no program can set it (inode(7), ctime).
    pub changed: SystemTime,
    /// The users of the links on the way, any of whom can have it lead elsewhere.
    pub link_owners: Vec<u32>,
}

pub(crate) fn directory(path: &Path) -> io::Result<BeneathFile> {
    BeneathFile::of(live_files::directory(path)?.into())
}

/// What `path` names below `top`, where absolute links begin as well; with `follow` what a link at its end points to.
pub(crate) fn find(top: BeneathFile, path: &str, follow: bool) -> io::Result<BeneathFile> {
    let mut way = vec![top];
    let mut steps = 0;
    let mut links = 0;
    let mut link_changed = SystemTime::UNIX_EPOCH;
    let mut link_owners = Vec::new();
    let mut rest: Vec<_> = parts(path.as_bytes()).map(Cow::Borrowed).collect();
    while let (Some(name), Some(here)) = (rest.pop(), way.last()) {
        steps += 1;
        if steps > MAX_STEPS {
            return Err(Errno::NAMETOOLONG.into());
        }
        if !here.metadata.is_dir() {
            return Err(Errno::NOTDIR.into());
        }
        match &*name {
            b"" | b"." => continue,
            // As in `/`, nothing is above the top.
            b".." => {
                way.truncate(way.len().saturating_sub(1).max(1));
                continue;
            }
            _ => {}
        }
        let found = BeneathFile::at(&here.descriptor, &name, OFlags::NOFOLLOW)?;
        if !found.metadata.is_symlink() || !follow && rest.is_empty() {
            way.push(found);
            continue;
        }
        links += 1;
        if links > MAX_LINKS {
            return Err(Errno::LOOP.into());
        }
        link_changed = link_changed.max(found.changed);
        link_owners.push(found.metadata.uid());
        let target = found.target()?;
        if target.starts_with(b"/") {
            way.truncate(1);
        }
        rest.extend(parts(&target).map(|name| Cow::Owned(name.to_vec())));
    }
    let found = way.pop().ok_or(Errno::NOENT)?;
    Ok(BeneathFile {
        changed: found.changed.max(link_changed),
        link_owners,
        ..found
    })
}

/// The parts of `path`, the last one first. A slash at the end asks for a directory.
fn parts(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    let path = path.strip_prefix(b"/").unwrap_or(path);
    path.split(|&byte| byte == b'/')
        .rev()
        .filter(move |_| !path.is_empty())
}

impl BeneathFile {
    /// Opens `name` in the directory `at`.
    fn at(at: impl AsFd, name: &[u8], flags: OFlags) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::CLOEXEC | flags;
        Self::of(File::from(
            openat(at, name, flags, Mode::empty()).map_err(noted)?,
        ))
    }

    fn of(descriptor: File) -> io::Result<Self> {
        let metadata = descriptor.metadata().map_err(noted)?;
        let part = |number: i64| u64::try_from(number).unwrap_or(0);
        let since = Duration::from_secs(part(metadata.ctime()))
            + Duration::from_nanos(part(metadata.ctime_nsec()));
        Ok(Self {
            descriptor,
            metadata,
            changed: SystemTime::UNIX_EPOCH
                .checked_add(since)
                .unwrap_or(SystemTime::UNIX_EPOCH),
            link_owners: Vec::new(),
        })
    }

    /// Opens it for reading. It is what was looked at: the descriptor leads there whatever has been renamed since.
    /// Nothing waits: neither for the other end of a pipe nor for the end of a lease (fcntl(2)).
    pub fn open(&self) -> io::Result<File> {
        let file = live_files::open(&of_descriptor(&self.descriptor))?;
        let metadata = file.metadata().map_err(noted)?;
        match (metadata.dev(), metadata.ino()) == (self.metadata.dev(), self.metadata.ino()) {
            true => Ok(file),
            // What is mounted on /proc is not the kernel's.
            false => Err(Errno::STALE.into()),
        }
    }

    /// Its path on this host, without links.
    pub fn path(&self) -> io::Result<PathBuf> {
        fs::read_link(of_descriptor(&self.descriptor)).map_err(noted)
    }

    /// The text of a symbolic link that was not followed.
    pub fn target(&self) -> io::Result<Vec<u8>> {
        if self.metadata.is_symlink() {
            let target = readlinkat(&self.descriptor, c"", Vec::new());
            Ok(target.map_err(noted)?.into_bytes())
        } else {
            Err(Errno::INVAL.into())
        }
    }

    /// Whether the kernel makes the file up when it is read, as those of /proc: reading some of them has effects.
    pub fn is_of_kernel(&self) -> io::Result<bool> {
        /// PROC_SUPER_MAGIC, SYSFS_MAGIC, CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC, DEBUGFS_MAGIC, TRACEFS_MAGIC (magic.h).
        const KERNEL: [u64; 6] = [
            0x9fa0,
            0x6265_6572,
            0x0027_e0eb,
            0x6367_7270,
            0x6462_6720,
            0x7472_6163,
        ];
        let system = fstatfs(&self.descriptor).map_err(noted)?;
        Ok(u64::try_from(system.f_type).is_ok_and(|kind| KERNEL.contains(&kind)))
    }

    /// The names in it, if it is a directory, without `.` and `..`; bytes that are not UTF-8 are replaced.
    pub fn names(&self) -> io::Result<impl Iterator<Item = io::Result<String>>> {
        let name = |entry: rustix::io::Result<rustix::fs::DirEntry>| match entry {
            Ok(entry) if matches!(entry.file_name().to_bytes(), b"." | b"..") => None,
            Ok(entry) => Some(Ok(entry.file_name().to_string_lossy().into_owned())),
            Err(error) => Some(Err(noted(error))),
        };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = openat(&self.descriptor, c".", flags, Mode::empty()).map_err(noted)?;
        Ok(Dir::new(directory).map_err(noted)?.filter_map(name))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    use super::*;

    fn found(top: &Path, path: &str) -> io::Result<BeneathFile> {
        find(directory(top).unwrap(), path, true)
    }

    /// A tree `in` beside a secret, with a link of each kind.
    fn tree() -> tempfile::TempDir {
        let tree = tempfile::tempdir().unwrap();
        fs::create_dir_all(tree.path().join("in/a/b")).unwrap();
        fs::write(tree.path().join("in/a/b/file"), "inside").unwrap();
        fs::write(tree.path().join("secret"), "outside").unwrap();
        for (link, to) in [
            ("absolute", "/a/b/file"),
            ("relative", "a/b/file"),
            ("up", "../../../../../../../secret"),
            ("out", "/secret"),
            ("directory", "a/b"),
            ("directory_again", "/directory/"),
            ("loop", "loop"),
            ("to", "fro"),
            ("fro", "/to"),
            ("lost", "nowhere"),
            ("own", "/proc/self/exe"),
            ("a/above", ".."),
        ] {
            symlink(to, tree.path().join("in").join(link)).unwrap();
        }
        symlink(tree.path().join("secret"), tree.path().join("in/by_name")).unwrap();
        tree
    }

    #[test]
    fn links_stay_below_the_top() {
        let tree = tree();
        let top = tree.path().join("in");
        for path in [
            "/a/b/file",
            "a//b/./file",
            "/absolute",
            "relative",
            "/directory/file",
            "/directory_again/file",
            "/a/above/a/b/file",
            "/../../a/../../a/b/file",
        ] {
            let found = found(&top, path).unwrap();
            assert_eq!(
                found.path().unwrap(),
                top.canonicalize().unwrap().join("a/b/file"),
                "{path}"
            );
            assert_eq!(
                io::read_to_string(found.open().unwrap()).unwrap(),
                "inside",
                "{path}"
            );
        }
        for (path, errno) in [
            ("/up", Errno::NOENT),
            ("/out", Errno::NOENT),
            ("/by_name", Errno::NOENT),
            ("/lost", Errno::NOENT),
            ("/own", Errno::NOENT),
            ("/loop", Errno::LOOP),
            ("/to", Errno::LOOP),
            ("/a/b/file/", Errno::NOTDIR),
            ("/a/b/file/..", Errno::NOTDIR),
            ("/relative/x", Errno::NOTDIR),
        ] {
            let error = found(&top, path).unwrap_err();
            assert_eq!(
                error.raw_os_error(),
                Some(errno.raw_os_error()),
                "{path}: {error}"
            );
        }
        assert_eq!(
            found(&top, "/").unwrap().path().unwrap(),
            top.canonicalize().unwrap()
        );
        let link = find(directory(&top).unwrap(), "/up", false).unwrap();
        assert_eq!(link.target().unwrap(), b"../../../../../../../secret");
        assert_eq!(
            found(&top, "/a")
                .unwrap()
                .target()
                .unwrap_err()
                .raw_os_error(),
            Some(libc::EINVAL)
        );
    }

    #[test]
    fn long_ways_end() {
        let tree = tree();
        let top = tree.path().join("in");
        let error = found(&top, &"a/../".repeat(1000)).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENAMETOOLONG));
        // Links that each double the way.
        symlink("a/../a/..", top.join("x0")).unwrap();
        for level in 1..30 {
            symlink(
                format!("x{0}/../x{0}", level - 1),
                top.join(format!("x{level}")),
            )
            .unwrap();
        }
        let error = found(&top, "/x29").unwrap_err();
        assert!(
            [libc::ELOOP, libc::ENAMETOOLONG].contains(&error.raw_os_error().unwrap()),
            "{error}"
        );
    }

    /// A file that is renamed between lookup and opening is opened all the same, and not what took its place.
    #[test]
    fn a_swap_changes_nothing() {
        let tree = tree();
        let top = tree.path().join("in");
        let found = found(&top, "/relative").unwrap();
        fs::rename(top.join("a/b/file"), top.join("moved")).unwrap();
        symlink("/dev/zero", top.join("a/b/file")).unwrap();
        assert_eq!(io::read_to_string(found.open().unwrap()).unwrap(), "inside");
    }
}
