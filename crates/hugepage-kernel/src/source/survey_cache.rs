//! What one survey of a host has opened and read before, so that the fiftieth server of a home costs less than the first.
//!
//! The cache lives as long as one survey, which takes the host for one moment: a directory is the one that was there when
//! it was gone through first, and what was not there is not looked for again. Whose a file is, and whether it may be
//! read, is asked each time, and of a process that has gone nothing is kept for the next one of its number.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};

use crate::stranger::limit;

/// The most directories that are kept: each has a descriptor, of the 1024 that a process may have by default.
const MAX_PLACES: usize = 128;
/// The most files whose content is kept.
const MAX_TEXTS: usize = 64;

/// What was opened and read; `P` is a directory that is open.
#[derive(Debug)]
pub(crate) struct SurveyCache<P> {
    /// The open directories by their paths; `None` for a path that does not exist.
    places: Mutex<BTreeMap<Vec<u8>, Option<Arc<P>>>>,
    /// The content of files, and where links point to.
    texts: Mutex<BTreeMap<String, Arc<str>>>,
    /// What may still be read of logs, in bytes.
    pub logs_left: AtomicU64,
}

impl<P> Default for SurveyCache<P> {
    fn default() -> Self {
        Self { places: Mutex::default(), texts: Mutex::default(), logs_left: AtomicU64::new(limit::ALERT_LOGS) }
    }
}

impl<P> SurveyCache<P> {
    /// The place `key`, opened with `open` if it is not known. What is no directory is opened each time.
    pub fn place(
        &self,
        key: Vec<u8>,
        is_directory: impl FnOnce(&P) -> bool,
        open: impl FnOnce() -> io::Result<Arc<P>>,
    ) -> io::Result<Arc<P>> {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = places.get(&key) {
            return known.clone().ok_or_else(|| io::Error::from_raw_os_error(libc::ENOENT));
        }
        let opened = open();
        let known = match &opened {
            Ok(place) if is_directory(place) => Some(Arc::clone(place)),
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => None,
            _ => return opened,
        };
        if places.len() == MAX_PLACES {
            places.clear();
        }
        places.insert(key, known);
        opened
    }

    /// The text at `path`, read with `read` if it is not known.
    pub fn text<E>(&self, path: String, read: impl FnOnce() -> Result<Arc<str>, E>) -> Result<Arc<str>, E> {
        let mut texts = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(text) = texts.get(&path) {
            return Ok(Arc::clone(text));
        }
        let text = read()?;
        if texts.len() == MAX_TEXTS {
            texts.clear();
        }
        texts.insert(path, Arc::clone(&text));
        Ok(text)
    }

    /// Forgets what is of processes: their files, and what their containers have.
    pub fn forget_processes(&self) {
        let is_of_process = |path: &[u8]| {
            path.strip_prefix(b"/proc/").is_some_and(|process| process.first().is_some_and(u8::is_ascii_digit))
        };
        self.places.lock().unwrap_or_else(PoisonError::into_inner).retain(|key, _| !is_of_process(key));
        self.texts.lock().unwrap_or_else(PoisonError::into_inner).retain(|path, _| !is_of_process(path.as_bytes()));
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt, symlink};
    use std::path::Path;

    use super::*;
    use crate::Root;
    use crate::stranger::beneath;
    use crate::stranger::beneath::{BeneathFile, Known, Place};

    fn find(cache: &SurveyCache<Place>, top: &Path, path: &str) -> io::Result<BeneathFile> {
        beneath::find(beneath::directory(top)?, path, true, Some(Known { cache, top: "" }))
    }

    /// What takes the place of a directory meanwhile is not gone into; a file in it is looked up each time.
    #[test]
    fn directories_are_gone_through_once() {
        let tree = tempfile::tempdir().unwrap();
        let of = |path: &str| tree.path().join(path);
        fs::create_dir_all(of("home/dbs")).unwrap();
        fs::write(of("home/dbs/file"), "first").unwrap();
        fs::create_dir(of("other")).unwrap();
        symlink("/home", of("link")).unwrap();
        let cache = SurveyCache::default();
        let inode = |path: &str| find(&cache, tree.path(), path).map(|found| found.metadata.ino());
        let (directory, file) = (inode("/home/dbs").unwrap(), inode("/link/dbs/file").unwrap());
        assert_eq!(inode("/other/late").unwrap_err().kind(), io::ErrorKind::NotFound);

        fs::rename(of("home"), of("moved")).unwrap();
        fs::create_dir_all(of("home/dbs")).unwrap();
        fs::write(of("home/dbs/file"), "second").unwrap();
        fs::write(of("other/late"), "").unwrap();
        assert_eq!((inode("/home/dbs").unwrap(), inode("/link/dbs/file").unwrap()), (directory, file));
        let found = find(&cache, tree.path(), "/link/dbs/file").unwrap();
        assert_eq!(io::read_to_string(found.open().unwrap()).unwrap(), "first");
        assert_eq!((found.link_owners.len(), found.searched().count()), (1, 4), "the way is told each time");
        assert_eq!(inode("/other/late").unwrap_err().kind(), io::ErrorKind::NotFound);
        fs::remove_file(of("moved/dbs/file")).unwrap();
        fs::write(of("moved/dbs/file"), "third").unwrap();
        let text = io::read_to_string(find(&cache, tree.path(), "/home/dbs/file").unwrap().open().unwrap());
        assert_eq!(text.unwrap(), "third");
        // Another survey sees what is there now.
        assert_ne!(find(&SurveyCache::default(), tree.path(), "/home/dbs").unwrap().metadata.ino(), directory);
    }

    #[test]
    fn descriptors_are_bounded() {
        let tree = tempfile::tempdir().unwrap();
        let cache = SurveyCache::default();
        for number in 0..3 * MAX_PLACES {
            fs::create_dir(tree.path().join(number.to_string())).unwrap();
            find(&cache, tree.path(), &format!("/{number}")).unwrap();
            assert!(cache.places.lock().unwrap().len() <= MAX_PLACES);
        }
    }

    #[test]
    fn a_process_is_forgotten_before_the_next_one() {
        let tree = tempfile::tempdir().unwrap();
        let of = |path: &str| tree.path().join(path);
        fs::create_dir_all(of("proc/7/root/etc")).unwrap();
        fs::create_dir_all(of("proc/sys")).unwrap();
        let root = Root::at(tree.path()).for_survey();
        let container = root.below("/proc/7/root");
        let write = |text: &str| {
            for path in ["proc/7/status", "proc/sys/value", "proc/7/root/etc/name"] {
                fs::write(of(path), text).unwrap();
            }
        };
        let read = |path: &str| root.read_once(path, str::to_owned).unwrap();
        write("first");
        assert_eq!([read("/proc/7/status"), read("/proc/sys/value")], ["first", "first"]);
        assert!(container.exists("/etc/name") && !container.exists("/etc/late"));
        fs::rename(of("proc/7/root"), of("gone")).unwrap();
        fs::create_dir_all(of("proc/7/root/etc")).unwrap();
        write("second");
        fs::write(of("proc/7/root/etc/late"), "").unwrap();
        assert_eq!([read("/proc/7/status"), read("/proc/sys/value")], ["first", "first"]);
        assert!(!container.exists("/etc/late"));
        root.forget_processes();
        assert_eq!([read("/proc/7/status"), read("/proc/sys/value")], ["second", "first"]);
        assert!(container.exists("/etc/late"));
    }
}
