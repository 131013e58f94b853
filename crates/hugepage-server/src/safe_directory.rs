//! A directory that this program writes to. It stays open, so that every step is in it; and no step follows a link.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, mkdirat, openat, renameat, unlinkat};
use rustix::io::{Errno, retry_on_intr};
use rustix::path::Arg;
use rustix::process::geteuid;

/// The most symbolic links that are followed, as many as the kernel does (path_resolution(7)).
const MAX_LINKS: usize = 40;

/// An open directory, and what this program does in it.
#[derive(Debug)]
pub struct SafeDirectory {
    descriptor: File,
}

/// A file that is removed unless it gets its lasting name.
#[derive(Debug)]
pub struct NewFile<'a> {
    directory: &'a SafeDirectory,
    /// The name until then; `None` once the file has the lasting one.
    name: Option<OsString>,
    /// The file, open for writing.
    pub file: File,
}

#[expect(
    clippy::disallowed_methods,
    reason = "what this program writes, by descriptors"
)]
impl SafeDirectory {
    /// Opens `path`, whose steps are the caller's to trust. `flags`: such as O_NOFOLLOW, or O_PATH to look up names in it.
    pub fn open(path: &Path, flags: OFlags) -> io::Result<Self> {
        Self::open_at(CWD, path, flags)
    }

    /// Opens the directory that the file `path` is in, as [`SafeDirectory::open`] does, and tells the name of the file there.
    pub fn open_above(path: &Path, flags: OFlags) -> io::Result<(Self, &OsStr)> {
        let above = path
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty());
        let name = path.file_name().ok_or(Errno::ISDIR)?;
        Ok((Self::open(above.unwrap_or(Path::new(".")), flags)?, name))
    }

    /// Opens the absolute `path`, if no step of it is a link, and only root and the current user can change any or write there.
    pub fn open_without_links(path: &Path) -> io::Result<Self> {
        const LINK: &str = "a symbolic link, or not a directory; Oracle refuses links (KUP-03037): use the real path";
        let refused = |at: &Path, why: &str| io::Error::other(format!("{}: {why}", at.display()));
        let closed = |error: io::Error| match Errno::from_io_error(&error) {
            Some(Errno::NOTDIR) => refused(path, LINK),
            _ => refused(path, &format!("could not be opened: {error}")),
        };
        if !path.is_absolute() {
            return Err(refused(path, "the path must be absolute"));
        }
        if fs::canonicalize(path).map_err(closed)? != path {
            return Err(refused(path, LINK));
        }
        // From the top on: what was found nobody can change any more.
        match other_writer(path, |uid| uid == 0 || uid == geteuid().as_raw()).map_err(closed)? {
            Some((at, Some(owner))) => {
                return Err(refused(
                    &at,
                    &format!("the directory belongs to uid {owner}, not to root"),
                ));
            }
            Some((at, None)) => {
                return Err(refused(
                    &at,
                    "the group or other users may write to the directory: run chmod go-w",
                ));
            }
            None => {}
        }
        let directory = Self::open(path, OFlags::NOFOLLOW).map_err(closed)?;
        if others_may_write(&directory.metadata().map_err(closed)?) {
            Err(refused(
                path,
                "every user may write to the directory: use a directory of root's alone",
            ))
        } else {
            Ok(directory)
        }
    }

    fn open_at(at: impl AsFd, name: impl Arg + Copy, flags: OFlags) -> io::Result<Self> {
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC | flags;
        Ok(Self {
            descriptor: retry_on_intr(|| openat(&at, name, flags, Mode::empty()))?.into(),
        })
    }

    /// Owner and mode of the directory.
    pub fn metadata(&self) -> io::Result<Metadata> {
        self.descriptor.metadata()
    }

    /// Opens the directory `name` in this one, which is not a link; creates it first if nothing is there.
    pub fn create_directory(&self, name: &OsStr, mode: u32, flags: OFlags) -> io::Result<Self> {
        match mkdirat(&self.descriptor, name, Mode::from_raw_mode(mode)) {
            Ok(()) | Err(Errno::EXIST) => {
                Self::open_at(&self.descriptor, name, OFlags::NOFOLLOW | flags)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Opens `name`, which is not a link, with `flags`; a new file has `mode`. Whatever is there, this does not wait for it.
    pub fn open_file(&self, name: impl Arg + Copy, flags: OFlags, mode: u32) -> io::Result<File> {
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC | flags;
        Ok(
            retry_on_intr(|| openat(&self.descriptor, name, flags, Mode::from_raw_mode(mode)))?
                .into(),
        )
    }

    /// Opens the file `name` to be locked; creates it, empty and for the current user alone, if nothing is there.
    pub fn open_lock(&self, name: impl Arg + Copy) -> io::Result<File> {
        self.open_file(name, OFlags::RDWR | OFlags::CREATE, 0o600)
    }

    /// Creates a file that [`NewFile::put`] gives its lasting name; an error if anything is there.
    pub fn new_file(&self, name: impl Into<OsString>, mode: u32) -> io::Result<NewFile<'_>> {
        let name = name.into();
        let file = self.open_file(
            name.as_os_str(),
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL,
            mode,
        )?;
        Ok(NewFile {
            directory: self,
            name: Some(name),
            file,
        })
    }

    /// Creates a file as [`SafeDirectory::new_file`] does, under a name that begins with `prefix` and that nobody foresees.
    pub fn temporary_file(&self, prefix: &str) -> io::Result<NewFile<'_>> {
        // Each has keys of its own, from the kernel's random numbers: nobody else can make something of that name first.
        let random = || RandomState::new().build_hasher().finish();
        let names = (0..100).map(|_| format!("{prefix}-{:016x}", random()));
        let is_taken = |new: &io::Result<_>| {
            new.as_ref()
                .is_err_and(|error| error.kind() == io::ErrorKind::AlreadyExists)
        };
        let mut created = names
            .map(|name| self.new_file(name, 0o600))
            .skip_while(is_taken);
        created.next().unwrap_or_else(|| Err(Errno::EXIST.into()))
    }

    fn rename(&self, from: impl Arg, to: impl Arg) -> io::Result<()> {
        Ok(renameat(&self.descriptor, from, &self.descriptor, to)?)
    }

    /// Removes the file `name` if it exists.
    pub fn remove(&self, name: impl Arg + Copy) -> io::Result<()> {
        match unlinkat(&self.descriptor, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Writes the names in it to the disk, where the file system does so for a directory.
    pub fn sync(&self) -> io::Result<()> {
        match self.descriptor.sync_all() {
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
            done => done,
        }
    }
}

impl NewFile<'_> {
    /// Puts the file in the place of `name`: others see the old file or this one, after a crash of the machine too.
    pub fn put(mut self, name: impl Arg + Copy) -> io::Result<()> {
        self.file.sync_all()?;
        if let Some(new) = &self.name {
            self.directory.rename(new.as_os_str(), name)?;
        }
        self.name = None;
        self.directory.sync()
    }
}

impl Drop for NewFile<'_> {
    fn drop(&mut self) {
        // After `put` the name may be that of another writer's new file.
        if let Some(name) = &self.name {
            let _ = self.directory.remove(name.as_os_str());
        }
    }
}

/// Whether the mode lets the group or other users write.
pub fn others_may_write(found: &Metadata) -> bool {
    Mode::from_raw_mode(found.mode()).intersects(Mode::WGRP | Mode::WOTH)
}

/// Who could put something else in the place of the absolute `path`, or of a part of it or a link that leads there: the first step
/// with an owner for whom `is_trusted` does not hold, and that owner, or without one where the mode lets a group or all users write,
/// as it does with an access control list. `None` if nobody: in a sticky directory such as /tmp nobody replaces what is another's.
#[expect(
    clippy::disallowed_methods,
    reason = "what this program writes to or runs"
)]
pub fn other_writer(
    path: &Path,
    is_trusted: impl Fn(u32) -> bool,
) -> io::Result<Option<(PathBuf, Option<u32>)>> {
    let mut path = path.to_owned();
    'links: for _ in 0..=MAX_LINKS {
        // Without a slash at the end, which would follow a link.
        path = path.components().collect();
        let mut steps: Vec<_> = path.ancestors().map(Path::to_owned).collect();
        while let Some(step) = steps.pop() {
            let found = fs::symlink_metadata(&step)?;
            if !is_trusted(found.uid()) {
                return Ok(Some((step, Some(found.uid()))));
            }
            if found.is_symlink() {
                let target = fs::read_link(&step)?;
                let rest = path.strip_prefix(&step).unwrap_or(Path::new("")).to_owned();
                path = step.parent().unwrap_or(&step).join(target).join(rest);
                continue 'links;
            }
            if others_may_write(&found) && found.mode() & Mode::SVTX.as_raw_mode() == 0 {
                return Ok(Some((step, None)));
            }
        }
        return Ok(None);
    }
    Err(Errno::LOOP.into())
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    use super::*;

    #[test]
    fn no_step_is_a_link_or_another_users() {
        let top = tempfile::tempdir().unwrap();
        let path = top.path().canonicalize().unwrap().join("a/b");
        fs::create_dir_all(&path).unwrap();
        symlink("a", path.parent().unwrap().with_file_name("link")).unwrap();
        let error = |path: &Path| {
            SafeDirectory::open_without_links(path)
                .unwrap_err()
                .to_string()
        };
        let set = |path: &Path, mode: u32| {
            fs::set_permissions(path, Permissions::from_mode(mode)).unwrap()
        };
        SafeDirectory::open_without_links(&path).unwrap();
        let link = path.parent().unwrap().with_file_name("link");
        assert!(error(&link.join("b")).contains("link/b: a symbolic link, or not a directory"));
        assert!(error(&path.join("none")).ends_with("No such file or directory (os error 2)"));
        assert!(
            error(Path::new("a/b")).contains("absolute")
                && error(&path.join("..")).contains("symbolic link")
        );

        set(&path, 0o775);
        assert!(error(&path).contains("may write to the directory"));
        set(&path, 0o1777);
        assert!(
            error(&path).ends_with("may write to the directory: use a directory of root's alone")
        );
        fs::create_dir(path.join("c")).unwrap();
        SafeDirectory::open_without_links(&path.join("c")).unwrap();
        set(&path, 0o757);
        assert!(error(&path.join("c")).starts_with(&format!(
            "{}: the group or other users may write",
            path.display()
        )));
        set(&path, 0o755);
        if geteuid().is_root() {
            chown(path.parent().unwrap(), Some(12345), None).unwrap();
            let text = error(&path);
            assert!(
                text.ends_with("/a: the directory belongs to uid 12345, not to root"),
                "{text}"
            );
        }
    }

    #[test]
    fn strangers_on_the_way() {
        let top = tempfile::tempdir().unwrap();
        let path = top.path().canonicalize().unwrap().join("a/b");
        fs::create_dir_all(&path).unwrap();
        let above = path.parent().unwrap();
        symlink(&path, above.join("link")).unwrap();
        symlink("../a/link/", above.join("again")).unwrap();
        symlink("loop", above.join("loop")).unwrap();
        let stranger =
            |path: &Path| other_writer(path, |uid| uid == 0 || uid == geteuid().as_raw()).unwrap();
        let set = |path: &Path, mode: u32| {
            fs::set_permissions(path, Permissions::from_mode(mode)).unwrap()
        };
        let links = [
            above.join("link"),
            above.join("again"),
            above.join("again/../b"),
        ];
        assert!(
            links
                .iter()
                .chain([&path])
                .all(|path| stranger(path).is_none())
        );
        for (mode, is_shared) in [(0o777, true), (0o1777, false), (0o775, true), (0o757, true)] {
            set(above, mode);
            assert_eq!(
                stranger(&path),
                is_shared.then(|| (above.to_owned(), None)),
                "{mode:o}"
            );
        }
        set(above, 0o755);
        if geteuid().is_root() {
            chown(above, Some(4711), None).unwrap();
            assert_eq!(stranger(&path), Some((above.to_owned(), Some(4711))));
            chown(above, Some(0), Some(0)).unwrap();
            std::os::unix::fs::lchown(&links[0], Some(4711), None).unwrap();
            assert!(
                links
                    .iter()
                    .all(|path| stranger(path).is_some_and(|(_, owner)| owner == Some(4711)))
            );
        }
        let error = |name: &str| other_writer(&above.join(name), |_| true).unwrap_err();
        assert_eq!(error("none").kind(), io::ErrorKind::NotFound);
        assert_eq!(error("loop").raw_os_error(), Some(libc::ELOOP));
    }

    #[test]
    fn a_new_file_is_put_or_removed() {
        let top = tempfile::tempdir().unwrap();
        let names = || {
            fs::read_dir(top.path())
                .unwrap()
                .map(|entry| entry.unwrap().file_name())
                .collect::<Vec<_>>()
        };
        let path = top.path().join("file");
        let (directory, name) = SafeDirectory::open_above(&path, OFlags::empty()).unwrap();
        let (first, second) = (
            directory.temporary_file(".new").unwrap(),
            directory.temporary_file(".new").unwrap(),
        );
        assert_eq!(names().len(), 2);
        drop(second);
        first.put(name).unwrap();
        assert_eq!(names(), ["file"]);
        // Nothing is removed any more by the name that a new file had.
        directory
            .new_file("same", 0o600)
            .unwrap()
            .put("same")
            .unwrap();
        assert_eq!(names().len(), 2);
        fs::remove_file(top.path().join("same")).unwrap();
        symlink("file", top.path().join("link")).unwrap();
        directory.open_lock("link").unwrap_err();
        directory.new_file("link", 0o600).unwrap_err();
        directory.new_file("file", 0o600).unwrap_err();
        directory
            .create_directory(OsStr::new("link"), 0o755, OFlags::PATH)
            .unwrap_err();
    }
}
