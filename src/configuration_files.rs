//! The configuration files of this server, as far as this process knows them by looking where a look waits for nobody.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use hugepage_kernel::found_if_there;
use hugepage_kernel::host::local_path::{Link, Resolved};
use pgrx::pg_sys;

use crate::guc::LoadedFiles;
use crate::{server, shared};

/// Microseconds from 1970 to 2000, where the server's time begins (datatype/timestamp.h).
const YEAR_2000: i64 = 946_684_800_000_000;

thread_local! {
    static LOADED: RefCell<Option<Rc<ConfigurationFiles>>> = const { RefCell::new(None) };
}

/// Identifies a file and its content.
#[derive(Clone, Copy, Hash, PartialEq, Eq)]
pub struct FileStamp {
    file: (u64, u64),
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

/// What stays the same between two reloads.
pub struct ConfigurationFiles {
    /// The last reload of this process, the files that the asker has found, and whether these are all.
    of: (pg_sys::TimestampTz, (Vec<PathBuf>, bool)),
    /// All that are known.
    pub files: Vec<ConfigurationFile>,
    /// Whether the asker has found all, and shared memory had room for them.
    pub is_complete: bool,
    /// Parameters of which the files have a value that the server has refused.
    pub refused: Vec<String>,
    /// The symbolic links on the way to the files.
    links: BTreeSet<Link>,
}

/// A file, directory or symbolic link of the configuration.
pub struct ConfigurationFile {
    /// The path, of which only the last part may be a link; the error is why a look at it may wait.
    pub place: Result<Resolved, String>,
    /// The path as the configuration has it.
    pub name: PathBuf,
    /// Whether parameters come from it, or it has to be there.
    pub is_needed: bool,
}

impl ConfigurationFiles {
    /// Those of the last reload of this process, at `reloaded`.
    pub fn loaded(reloaded: pg_sys::TimestampTz) -> Rc<Self> {
        let of = (reloaded, shared::included_files());
        let is_same = |known: &&Rc<Self>| known.of == of && known.links.iter().all(leads_there);
        let known = LOADED.with_borrow(|known| known.as_ref().filter(is_same).map(Rc::clone));
        known.unwrap_or_else(|| {
            let loaded = Rc::new(Self::of_process(of));
            LOADED.set(Some(loaded.clone()));
            loaded
        })
    }

    fn of_process(of: (pg_sys::TimestampTz, (Vec<PathBuf>, bool))) -> Self {
        let (main, data) = (server::config_file(), server::data_directory());
        let LoadedFiles {
            mut sources,
            refused,
        } = LoadedFiles::of_parameters();
        sources.insert(main.clone());
        let mut names = BTreeSet::from([main.clone(), data.join("postgresql.auto.conf")]);
        let (found, is_complete) = &of.1;
        if found.is_empty() {
            // Debian's directory of includes, which may be empty, and those that parameters come from. The directories of the
            // main file and of ALTER SYSTEM have other files, too, which change.
            let not_of_includes = [main.parent(), Some(&*data)];
            let directories = sources.iter().filter_map(|file| file.parent());
            names.extend(
                directories
                    .filter(|one| !not_of_includes.contains(&Some(one)))
                    .map(Path::to_owned),
            );
            names.insert(main.with_file_name("conf.d"));
            names.extend(sources.iter().cloned());
        } else {
            // The same for all processes, each of which may have reloaded at another time.
            names.extend(found.iter().cloned());
        }
        let local = server::local_paths();
        let (mut files, mut links) = (Vec::new(), BTreeSet::new());
        for name in names {
            let local = local.as_ref().map_err(String::clone);
            let place = local.and_then(|local| local.resolve(&name));
            links.extend(place.iter().flat_map(|place| place.links.clone()));
            files.push(ConfigurationFile {
                place,
                is_needed: sources.contains(&name),
                name,
            });
        }
        let of_link = |link: &Link| ConfigurationFile {
            place: Ok(Resolved {
                path: link.path.clone(),
                ..Resolved::default()
            }),
            is_needed: true,
            name: link.path.clone(),
        };
        files.extend(links.iter().map(of_link));
        // The first doubt is told: not that of a directory that may never have been there.
        files.sort_by_key(|file| !file.is_needed);
        Self {
            is_complete: *is_complete,
            of,
            files,
            refused,
            links,
        }
    }
}

/// Whether a symbolic link has what it had.
#[expect(
    clippy::disallowed_methods,
    reason = "a link that was found on a local file system"
)]
fn leads_there(link: &Link) -> bool {
    std::fs::read_link(&link.path).is_ok_and(|target| target == link.target)
}

impl ConfigurationFile {
    /// The stamp of the file now, `None` if it does not exist; the error is why it can't be looked at.
    pub fn stamp(&self) -> Result<Option<FileStamp>, String> {
        let place = self.place.as_ref().map_err(String::clone)?;
        stamp(&place.path).map_err(|error| error.to_string())
    }
}

impl FileStamp {
    /// Whether this is what lies at `path`, by whatever name or mount it is reached.
    #[expect(
        clippy::disallowed_methods,
        reason = "the server's own directory is looked at, not opened"
    )]
    pub fn is_at(&self, path: &Path) -> bool {
        std::fs::metadata(path).is_ok_and(|found| (found.dev(), found.ino()) == self.file)
    }

    /// The time of the last change, in microseconds since 2000.
    pub fn changed_at(&self) -> i64 {
        let (seconds, nanoseconds) = self.changed;
        seconds
            .saturating_mul(1_000_000)
            .saturating_add(nanoseconds / 1000)
            .saturating_sub(YEAR_2000)
    }

    /// Whether the last change of a directory was that of its own name, owner or mode, and not of a name in it.
    pub fn is_renamed(&self) -> bool {
        self.modified != self.changed
    }
}

/// The stamp of a file, or of a symbolic link; `None` if it does not exist.
#[expect(
    clippy::disallowed_methods,
    reason = "the server's own files are looked at, not opened"
)]
pub fn stamp(path: &Path) -> io::Result<Option<FileStamp>> {
    let of = |file: Metadata| FileStamp {
        file: (file.dev(), file.ino()),
        size: file.size(),
        modified: (file.mtime(), file.mtime_nsec()),
        changed: (file.ctime(), file.ctime_nsec()),
    };
    Ok(found_if_there(std::fs::symlink_metadata(path))?.map(of))
}
