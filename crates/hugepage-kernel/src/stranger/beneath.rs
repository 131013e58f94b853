//! Finds what a path names below a directory, one step after the other and by descriptors: no link, no `..` and no rename
//! meanwhile leads out of it.
//!
//! openat2(2) with RESOLVE_IN_ROOT confines a path as well, from Linux 5.6 on and where no seccomp filter refuses it. It
//! does not tell which directories and links it went through, and those decide on where something may be written. So every
//! kernel takes this way. Nothing is opened here but with O_PATH, which has no effect on what is there (open(2)).

use std::borrow::Cow;
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rustix::fs::{CWD, Dir, Mode, OFlags, fstatfs, getxattr, openat, readlinkat};
use rustix::io::Errno;

/// The most symbolic links that are followed, as many as the kernel does (path_resolution(7)).
const MAX_LINKS: usize = 40;
/// The most steps of a path, links included: more than any path of a server has (PostgreSQL's MAXPGPATH is 1024 bytes).
const MAX_STEPS: usize = 512;
/// The most levels of directories: each keeps a descriptor until the end.
const MAX_DEPTH: usize = 100;
/// The number of levels that room is made for at once.
const USUAL_DEPTH: usize = 16;

/// A directory, or something in one, that a path leads to.
#[derive(Debug)]
pub struct Place {
    /// The descriptor, opened with O_PATH.
    descriptor: File,
    /// The result of fstat(2).
    metadata: Metadata,
}

/// What a path names.
#[derive(Debug)]
pub struct BeneathFile {
    place: Arc<Place>,
    /// The directory that holds it, and the name there; `None` for the top.
    parent: Option<(Arc<Place>, Vec<u8>)>,
    /// The result of fstat(2).
    pub metadata: Metadata,
    /// Every directory that something was looked up in.
    searched: Vec<Arc<Place>>,
    /// The owner of every symbolic link on the way.
    pub link_owners: Vec<u32>,
    /// When the newest of those links was made or renamed; `None` if there are none.
    pub link_changed: Option<SystemTime>,
    /// The path without links, below the directory; bytes that are not UTF-8 are replaced.
    pub path: String,
}

pub(crate) fn directory(path: &Path) -> io::Result<Arc<Place>> {
    Place::open(CWD, path.as_os_str().as_bytes(), OFlags::DIRECTORY)
}

/// What `path` names on this host, links followed.
pub fn on_this_host(path: &Path) -> io::Result<BeneathFile> {
    find(directory(Path::new("/"))?, &path.to_string_lossy(), true)
}

/// What `path` names below `top`, where absolute links begin as well; with `follow` what a link at its end points to.
pub(crate) fn find(top: Arc<Place>, path: &str, follow: bool) -> io::Result<BeneathFile> {
    let mut way = Way::new(top, path.len());
    let (mut searched, mut link_owners, mut link_changed) = (Vec::with_capacity(USUAL_DEPTH), Vec::new(), None);
    let mut rest: Vec<Cow<'_, [u8]>> = Vec::with_capacity(USUAL_DEPTH);
    rest.extend(parts(path.as_bytes()).map(Cow::Borrowed));
    while let Some(name) = rest.pop() {
        let here = Arc::clone(way.here()?);
        if !here.metadata.is_dir() {
            return Err(Errno::NOTDIR.into());
        }
        searched.push(Arc::clone(&here));
        match &*name {
            b"" | b"." => continue,
            b".." => {
                way.up();
                continue;
            }
            _ => {}
        }
        let place = Place::open(&here.descriptor, &name, OFlags::NOFOLLOW)?;
        if place.metadata.is_symlink() && (follow || !rest.is_empty()) {
            link_owners.push(place.metadata.uid());
            link_changed = link_changed.max(Some(changed(&place.metadata)));
            if link_owners.len() > MAX_LINKS {
                return Err(Errno::LOOP.into());
            }
            let target = target(&place.descriptor)?;
            if target.starts_with(b"/") {
                way.back_to_top();
            }
            rest.extend(parts(&target).map(|name| Cow::Owned(name.to_vec())));
        } else {
            way.down(&name, place)?;
        }
    }
    let path = way.path();
    let place = way.levels.pop().ok_or(Errno::NOENT)?.place;
    let parent = way.levels.pop().map(|parent| (parent.place, way.path[parent.end + 1..].to_vec()));
    let metadata = place.metadata.clone();
    Ok(BeneathFile { place, parent, metadata, searched, link_owners, link_changed, path })
}

/// The time of the last change of what `metadata` is of, its name included: no program can set it (inode(7), ctime).
pub fn changed(metadata: &Metadata) -> SystemTime {
    let seconds = Duration::from_secs(u64::try_from(metadata.ctime()).unwrap_or(0));
    let rest = Duration::from_nanos(u64::try_from(metadata.ctime_nsec()).unwrap_or(0));
    SystemTime::UNIX_EPOCH.checked_add(seconds.saturating_add(rest)).unwrap_or(SystemTime::UNIX_EPOCH)
}

/// The text of the symbolic link that `link` is; what the kernel's own links below /proc stand for is never followed.
fn target(link: &File) -> io::Result<Vec<u8>> {
    Ok(readlinkat(link, c"", Vec::new())?.into_bytes())
}

/// The parts of `path`, the last one first. A slash at the end asks for a directory.
fn parts(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    let path = path.strip_prefix(b"/").unwrap_or(path);
    path.split(|&byte| byte == b'/').rev().filter(move |_| !path.is_empty())
}

impl Place {
    /// Opens `name` in the directory `at`.
    fn open(at: impl AsFd, name: &[u8], flags: OFlags) -> io::Result<Arc<Self>> {
        let flags = OFlags::PATH | OFlags::CLOEXEC | flags;
        let descriptor = File::from(openat(at, name, flags, Mode::empty())?);
        let metadata = descriptor.metadata()?;
        Ok(Arc::new(Self { descriptor, metadata }))
    }

    /// Whether the place is a directory.
    pub fn is_directory(&self) -> bool {
        self.metadata.is_dir()
    }

    /// Whether nobody but the owner, the group and all others has rights (acl(5)).
    pub fn is_without_acl(&self) -> bool {
        let path = format!("/proc/self/fd/{}", self.descriptor.as_raw_fd());
        let found = getxattr(path, c"system.posix_acl_access", &mut [0; 0]);
        matches!(found, Err(Errno::NODATA | Errno::OPNOTSUPP | Errno::NOENT))
    }

    /// The result of fstat(2) when it was opened.
    pub const fn metadata(&self) -> &Metadata {
        &self.metadata
    }
}

impl BeneathFile {
    /// Every directory that something was looked up in.
    pub fn searched(&self) -> impl Iterator<Item = &Place> {
        self.searched.iter().map(|place| &**place)
    }

    /// The place of the file.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// Opens it for reading. It is what was looked at: the descriptor leads there whatever has been renamed since.
    /// Nothing waits: neither for the other end of a pipe nor for the end of a lease (fcntl(2)).
    pub fn open(&self) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let place = format!("/proc/self/fd/{}", self.place.descriptor.as_raw_fd());
        let file: File = match (openat(CWD, place, flags, Mode::empty()), &self.parent) {
            // Without /proc, as in an empty root directory: by its name, where it may have been replaced.
            (Err(Errno::NOENT), Some((parent, name))) => {
                openat(&parent.descriptor, name.as_slice(), flags | OFlags::NOFOLLOW, Mode::empty())?.into()
            }
            (opened, _) => opened?.into(),
        };
        let metadata = file.metadata()?;
        match (metadata.dev(), metadata.ino()) == (self.metadata.dev(), self.metadata.ino()) {
            true => Ok(file),
            // Replaced, or what is mounted on /proc is not the kernel's.
            false => Err(Errno::STALE.into()),
        }
    }

    /// The text of a symbolic link that was not followed.
    pub fn target(&self) -> io::Result<Vec<u8>> {
        if self.metadata.is_symlink() { target(&self.place.descriptor) } else { Err(Errno::INVAL.into()) }
    }

    /// Whether the kernel makes the file up when it is read, as those of /proc: reading some of them has effects.
    pub fn is_of_kernel(&self) -> bool {
        /// PROC_SUPER_MAGIC, SYSFS_MAGIC, CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC, DEBUGFS_MAGIC, TRACEFS_MAGIC (magic.h).
        const KERNEL: [u64; 6] = [0x9fa0, 0x6265_6572, 0x0027_e0eb, 0x6367_7270, 0x6462_6720, 0x7472_6163];
        // What can't be told is not opened.
        self.file_system().is_none_or(|kind| KERNEL.contains(&kind))
    }

    /// The type of its file system (statfs(2)); `None` if unknown.
    pub fn file_system(&self) -> Option<u64> {
        fstatfs(&self.place.descriptor).ok().and_then(|system| u64::try_from(system.f_type).ok())
    }

    /// The names in it, if it is a directory, without `.` and `..`; bytes that are not UTF-8 are replaced.
    pub fn names(&self) -> io::Result<impl Iterator<Item = io::Result<String>>> {
        let name = |entry: rustix::io::Result<rustix::fs::DirEntry>| match entry {
            Ok(entry) if matches!(entry.file_name().to_bytes(), b"." | b"..") => None,
            Ok(entry) => Some(Ok(entry.file_name().to_string_lossy().into_owned())),
            Err(error) => Some(Err(error.into())),
        };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = openat(&self.place.descriptor, c".", flags, Mode::empty())?;
        Ok(Dir::new(directory)?.filter_map(name))
    }

    /// The place of the file, from which files below it are found.
    pub fn into_place(self) -> Arc<Place> {
        self.place
    }
}

/// The directories from the top to where the search is.
struct Way {
    levels: Vec<Level>,
    /// The path from the top without links: each directory's name behind a slash.
    path: Vec<u8>,
    steps: usize,
}

struct Level {
    place: Arc<Place>,
    /// How much of the path leads to it.
    end: usize,
}

impl Way {
    fn new(top: Arc<Place>, length: usize) -> Self {
        let mut levels = Vec::with_capacity(USUAL_DEPTH);
        levels.push(Level { place: top, end: 0 });
        Self { levels, path: Vec::with_capacity(length + 1), steps: 0 }
    }

    fn here(&mut self) -> io::Result<&Arc<Place>> {
        self.steps += 1;
        if self.steps > MAX_STEPS {
            return Err(Errno::NAMETOOLONG.into());
        }
        self.levels.last().map(|level| &level.place).ok_or_else(|| Errno::NOENT.into())
    }

    fn down(&mut self, name: &[u8], place: Arc<Place>) -> io::Result<()> {
        if self.levels.len() > MAX_DEPTH {
            return Err(Errno::NAMETOOLONG.into());
        }
        self.path.push(b'/');
        self.path.extend_from_slice(name);
        self.levels.push(Level { place, end: self.path.len() });
        Ok(())
    }

    /// Goes up one level. As in `/`, nothing is above the top.
    fn up(&mut self) {
        self.keep(self.levels.len().saturating_sub(1).max(1));
    }

    fn back_to_top(&mut self) {
        self.keep(1);
    }

    fn keep(&mut self, levels: usize) {
        self.levels.truncate(levels);
        self.path.truncate(self.levels.last().map_or(0, |level| level.end));
    }

    fn path(&self) -> String {
        if self.path.is_empty() { "/".to_owned() } else { String::from_utf8_lossy(&self.path).into_owned() }
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
            assert_eq!(found.path, "/a/b/file", "{path}");
            assert_eq!(io::read_to_string(found.open().unwrap()).unwrap(), "inside", "{path}");
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
            let error = found(&top, path).map(|found| found.path).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(errno.raw_os_error()), "{path}: {error}");
        }
        assert_eq!(found(&top, "/").unwrap().path, "/");
        let link = find(directory(&top).unwrap(), "/up", false).unwrap();
        assert_eq!(link.target().unwrap(), b"../../../../../../../secret");
        assert_eq!(found(&top, "/a").unwrap().target().unwrap_err().raw_os_error(), Some(libc::EINVAL));
    }

    #[test]
    fn the_way_is_told() {
        let tree = tree();
        let found = found(&tree.path().join("in"), "/a/above/directory_again/file").unwrap();
        assert_eq!(found.link_owners.len(), 3);
        assert!(found.searched().count() >= 4 && found.searched().all(Place::is_directory));
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
            symlink(format!("x{0}/../x{0}", level - 1), top.join(format!("x{level}"))).unwrap();
        }
        let error = found(&top, "/x29").unwrap_err();
        assert!([libc::ELOOP, libc::ENAMETOOLONG].contains(&error.raw_os_error().unwrap()), "{error}");
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
