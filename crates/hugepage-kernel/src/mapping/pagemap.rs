//! /proc/PID/pagemap: which pages of a process are mapped, with 8 bytes for each page of its address space (proc(5)).
//!
//! Whoever may trace a process may read it. Where the pages are is hidden without CAP_SYS_ADMIN, whether they are is not
//! (since Linux 4.2). The kernel holds the process's mmap lock for the pages that one call reads.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use crate::proc::process::unless_gone;
use crate::{PageSize, ReadError, Root};

const ENTRY: usize = 8;
const PRESENT: u64 = 1 << 63;
const SWAPPED: u64 = 1 << 62;
/// Few, because the pages of a table that has any are usually the first ones.
const AT_ONCE: usize = 64 * ENTRY;

/// The open file of a process. It stays that of this process, whatever has its pid later.
#[derive(Debug)]
pub struct PageMap<'a> {
    root: &'a Root,
    path: String,
    file: File,
    base: PageSize,
}

impl<'a> PageMap<'a> {
    /// Opens the page map of `pid`, on a kernel with base pages of size `base`; `Ok(None)` if the process does not exist (any more).
    pub fn open(root: &'a Root, pid: i32, base: PageSize) -> Result<Option<Self>, ReadError> {
        let path = format!("/proc/{pid}/pagemap");
        let file = unless_gone(root.open(&path))?;
        Ok(file.map(|file| Self { root, path, file, base }))
    }

    /// Whether any page at `addresses` is mapped or in swap, so that there is a page table; `Ok(None)` if the process has
    /// ended.
    pub fn has_page(&self, addresses: &Range<u64>) -> Result<Option<bool>, ReadError> {
        let offset = |pages: u64| pages.saturating_mul(ENTRY as u64);
        let base = self.base.bytes().0;
        let (mut at, end) = (offset(addresses.start / base), offset(addresses.end.div_ceil(base)));
        let mut entries = [0; AT_ONCE];
        while at < end {
            let most = usize::try_from(end - at).unwrap_or(AT_ONCE).min(AT_ONCE);
            match self.file.read_at(&mut entries[..most], at) {
                Ok(0) => return Ok(None),
                Ok(count) if any_page(&entries[..count]) => return Ok(Some(true)),
                Ok(count) => at += count as u64,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => return Err(self.root.error("read", &self.path, source)),
            }
        }
        Ok(Some(false))
    }
}

/// Whether `entries` have a page, present or swapped.
fn any_page(entries: &[u8]) -> bool {
    entries.as_chunks::<ENTRY>().0.iter().any(|entry| u64::from_ne_bytes(*entry) & (PRESENT | SWAPPED) != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_of_pages() {
        let bytes = |entries: &[u64]| entries.iter().flat_map(|entry| entry.to_ne_bytes()).collect::<Vec<_>>();
        for (entries, expected) in [
            (&[][..], false),
            (&[0, 0], false),
            (&[0, PRESENT], true),
            (&[SWAPPED | 5, 0], true),
            // Bit 55, soft-dirty, is set of pages that are not there.
            (&[1 << 55], false),
        ] {
            assert_eq!(any_page(&bytes(entries)), expected, "{entries:x?}");
        }
        assert!(!any_page(&[0xff; 7]), "an entry that is not whole");
    }

    #[test]
    fn pages_of_a_tree() {
        let tree = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(tree.path().join("proc/7")).unwrap();
        let file = File::create(tree.path().join("proc/7/pagemap")).unwrap();
        file.set_len(8 * 5000).unwrap();
        file.write_all_at(&PRESENT.to_ne_bytes(), 8 * 2000).unwrap();
        let root = Root::at(tree.path());
        let map = PageMap::open(&root, 7, PageSize::from_kib(4).unwrap()).unwrap().unwrap();
        let has_page = |pages: Range<u64>| map.has_page(&(pages.start * 4096..pages.end * 4096)).unwrap();
        assert_eq!(has_page(0..2000), Some(false));
        assert_eq!(has_page(0..2001), Some(true));
        assert_eq!(has_page(2000..2001), Some(true));
        assert_eq!(has_page(2001..5000), Some(false));
        assert_eq!(has_page(4000..5001), None, "behind the end");
        assert!(PageMap::open(&root, 8, PageSize::base()).unwrap().is_none());
    }
}
