//! The pool of this host's kernel: its file in /sys, compaction in /proc/sys/vm (admin-guide/sysctl/vm), and a lock.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use hugepage_assess::assessment::capacity::HostMemory;
use hugepage_kernel::memory::pool;
use hugepage_kernel::{Bytes, Meminfo, PageSize, Pages, Root};
use hugepage_server::SafeDirectory;
use rustix::fs::OFlags;

use super::resize::PoolOperations;
use super::target::HostState;
use crate::privileges::{self, Needs};

const POOLS: &str = "/sys/kernel/mm/hugepages";
const COMPACT_MEMORY: &str = "/proc/sys/vm/compact_memory";
/// The directory of the lock file. Only root can create it, because /run is root's; every user can write to /run/lock.
pub const LOCK_DIRECTORY: &str = "/run/hugepage-sidecar";
const LOCK_FILE: &str = "apply.lock";

/// The files of the kernel that are written, and the directory of the lock.
pub fn needs() -> Needs {
    Needs::default()
        .directory(Path::new(POOLS))
        .directory(Path::new(COMPACT_MEMORY))
        .new_directory(Path::new(LOCK_DIRECTORY))
}

/// Parses a size as PostgreSQL writes it (`2MB`, `64kB`), as the kernel's command line does (`2M`, `2048K`), or in bytes.
pub fn page_size(text: &str) -> Result<PageSize, String> {
    let plain = text.trim_end_matches(['b', 'B']).trim_end_matches('i');
    let unit = plain.trim_start_matches(|c: char| c.is_ascii_digit());
    let size = PageSize::of_kernel_text(plain).filter(|_| ["", "k", "K", "M", "G"].contains(&unit));
    size.ok_or_else(|| "not a page size: give a number and kB, MB or GB".to_owned())
}

/// The pool of one page size.
pub struct KernelPool<'a> {
    root: &'a Root,
    pub size: PageSize,
    reserve_percent: u32,
}

impl<'a> KernelPool<'a> {
    /// The pool of `size`, or of the default size. The error names the supported sizes.
    pub fn new(
        root: &'a Root,
        size: Option<PageSize>,
        reserve_percent: u32,
    ) -> anyhow::Result<Self> {
        let sizes = pool::sizes(root)?;
        let size = match size {
            Some(size) => size,
            None => Meminfo::read(root)?
                .huge_page_size
                .ok_or_else(|| anyhow!("this kernel has no huge pages"))?,
        };
        if !sizes.contains(&size) {
            let names: Vec<_> = sizes.iter().map(|size| size.setting()).collect();
            bail!(
                "this kernel has no huge pages of {size}; it supports {}",
                names.join(", ")
            );
        }
        Ok(Self {
            root,
            size,
            reserve_percent,
        })
    }

    /// The current state of the pool and of the host's memory.
    pub fn state(&self) -> anyhow::Result<HostState> {
        let meminfo = Meminfo::read(self.root)?;
        let pool = pool::of_one_moment(self.root, self.size, Some(&meminfo))?;
        let available = meminfo.mem_available.or(meminfo.mem_free);
        let memory = HostMemory::beside_pool(&meminfo, &pool, Bytes(0), self.reserve_percent);
        Ok(HostState {
            memory: HostMemory {
                elsewhere: pool::memory(self.root)?.saturating_sub(self.size.times(pool.nr)),
                ..memory.context("MemTotal is missing in /proc/meminfo")?
            },
            available: available
                .context("MemAvailable and MemFree are missing in /proc/meminfo")?,
            pool,
        })
    }

    /// Checks that the pool can be changed.
    pub fn check_writable(&self) -> anyhow::Result<()> {
        let path = self.file();
        let opened = privileges::write(|| open(&path).map(|_| ()));
        opened.with_context(|| {
            format!(
                "{} is not writable: run this as root, and on the host itself, not in a container",
                path.display()
            )
        })
    }

    fn file(&self) -> PathBuf {
        self.root
            .path(&format!("{POOLS}/{}/nr_hugepages", self.size.sysfs_name()))
    }
}

impl PoolOperations for KernelPool<'_> {
    type Error = anyhow::Error;

    fn set(&mut self, pages: Pages) -> anyhow::Result<Pages> {
        write(&self.file(), &pages.to_string())?;
        Ok(self.state()?.pool.persistent())
    }

    fn compact(&mut self) -> anyhow::Result<()> {
        // A kernel may be built without compaction.
        if self.root.exists(COMPACT_MEMORY) {
            write(&self.root.path(COMPACT_MEMORY), "1")
        } else {
            Ok(())
        }
    }

    fn has_memory(&mut self) -> anyhow::Result<bool> {
        let state = self.state()?;
        let one_more = state.available.saturating_sub(self.size.bytes());
        // Surplus pages become persistent without using more memory.
        Ok(state.pool.surplus.is_some_and(|surplus| surplus > Pages(0))
            || one_more >= state.min_available())
    }

    fn in_use(&mut self) -> anyhow::Result<Pages> {
        Ok(self.state()?.pool.in_use().unwrap_or_default())
    }
}

/// Opens a file of the kernel for writing.
#[expect(clippy::disallowed_methods, reason = "/proc/sys and /sys")]
fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).open(path)
}

/// Writes a file of the kernel.
fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    let written = open(path).and_then(|mut file| file.write_all(text.as_bytes()));
    written.with_context(|| format!("could not write \"{text}\" to {}", path.display()))
}

/// Allows one `apply` at a time, until the file is closed: two would each count the pages that the kernel gave to the other.
/// The file is in `directory`, which is created if it does not exist.
pub fn lock(directory: &Path) -> anyhow::Result<File> {
    let path = directory.join(LOCK_FILE);
    // The directory is no other user's, who could hold the lock of a file there for ever.
    let opened = SafeDirectory::open_above(directory, OFlags::PATH).and_then(|(parent, name)| {
        parent
            .create_directory(name, 0o755, OFlags::empty())?
            .open_lock(LOCK_FILE)
    });
    let file =
        opened.with_context(|| format!("could not open the lock file {}", path.display()))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            bail!("another \"apply\" is running: it holds {}", path.display())
        }
        Err(TryLockError::Error(error)) => {
            Err(error).with_context(|| format!("could not lock {}", path.display()))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn lock_exclusively() {
        let above = tempfile::tempdir().unwrap();
        let directory = above.path().join("lock");
        let held = lock(&directory).unwrap();
        assert!(
            lock(&directory)
                .unwrap_err()
                .to_string()
                .contains("is running")
        );
        drop(held);
        lock(&directory).unwrap();
        symlink(&directory, above.path().join("link")).unwrap();
        assert!(lock(&above.path().join("link")).is_err());
        fs::remove_file(directory.join(LOCK_FILE)).unwrap();
        symlink("/dev/null", directory.join(LOCK_FILE)).unwrap();
        assert!(lock(&directory).is_err());
    }

    #[test]
    fn page_sizes() {
        for (text, kib) in [
            ("2MB", 2048),
            ("2M", 2048),
            ("2048kB", 2048),
            ("1GiB", 1 << 20),
            ("64kB", 64),
            ("1048576", 1024),
        ] {
            assert_eq!(page_size(text).ok(), PageSize::from_kib(kib), "{text}");
        }
        for text in ["", "MB", "2 TB", "-2MB", "0"] {
            assert!(page_size(text).is_err(), "{text}");
        }
    }
}
