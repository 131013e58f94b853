//! The pool of the next larger page size, whose unused pages the kernel can split (`demote`, admin-guide/mm/hugetlbpage,
//! Linux 5.16).

use anyhow::bail;
use hugepage_kernel::memory::pool::{self, Pool};
use hugepage_kernel::{Bytes, PageSize, Pages, Root};

use super::kernel_file::{POOLS, write};

/// A pool whose pages can be split into pages of another size.
pub struct LargerPool<'a> {
    root: &'a Root,
    size: PageSize,
    /// The size of the pages that a page is split into.
    into: PageSize,
    before: Pages,
    /// The pages that no server of this host needs.
    spare: Pages,
    split: Pages,
    /// `demote_size` as it was, if it had to be changed.
    demote_size: Option<String>,
}

impl<'a> LargerPool<'a> {
    /// The pool whose pages can be split into pages of `into`, the one with the smallest pages of those that have unused
    /// ones. `needed`: the pages of a size that the servers of this host need, `None` if unknown. The error says why there
    /// is none.
    pub fn find(root: &'a Root, into: PageSize, needed: impl Fn(PageSize) -> Option<Pages>) -> anyhow::Result<Self> {
        let mut larger = pool::sizes(root)?;
        larger.retain(|size| *size > into);
        for size in larger {
            if !root.exists(&file(size, "demote")) {
                bail!("this kernel cannot split pages of {size}: Linux 5.16 and newer can");
            }
            let pool = pool::pool(root, size)?;
            let idle = idle(&pool);
            if idle == Pages(0) {
                continue;
            }
            let Some(needed) = needed(size) else {
                bail!("the need of the servers of this host for pages of {size} is unknown, so none of them is split")
            };
            let before = pool.persistent();
            let spare = idle.min(before.saturating_sub(needed));
            if spare > Pages(0) {
                return Ok(Self { root, size, into, before, spare, split: Pages(0), demote_size: None });
            }
        }
        bail!("no larger huge page is unused, so none can be split")
    }

    /// The memory of the first `pages` that the pool can give.
    pub fn memory(&self, pages: Pages) -> Bytes {
        self.size.times(pages)
    }

    /// The pages that may be split.
    pub fn spare(&self) -> Pages {
        self.spare
    }

    /// The page size of the pool, and how many of the pages were split.
    pub fn split(&self) -> (PageSize, Pages) {
        (self.size, self.split)
    }

    /// Splits one page that is neither in use nor reserved; returns whether the kernel did, which checks that again.
    pub fn demote(&mut self) -> anyhow::Result<bool> {
        let before = pool::pool(self.root, self.size)?;
        if self.split >= self.spare || idle(&before) == Pages(0) {
            return Ok(false);
        }
        self.choose_size()?;
        write(&self.root.path(&file(self.size, "demote")), "1")?;
        let is_split = pool::pool(self.root, self.size)?.persistent() < before.persistent();
        self.split = self.split.saturating_add(Pages(u64::from(is_split)));
        Ok(is_split)
    }

    fn choose_size(&mut self) -> anyhow::Result<()> {
        let path = file(self.size, "demote_size");
        let now = self.root.read(&path)?.trim().to_owned();
        let wanted = format!("{}kB", self.into.bytes().0 / 1024);
        if now != wanted {
            write(&self.root.path(&path), &wanted)?;
            self.demote_size.get_or_insert(now);
        }
        Ok(())
    }

    /// Puts `demote_size` back as it was.
    pub fn restore_size(&self) -> anyhow::Result<()> {
        match &self.demote_size {
            Some(size) => write(&self.root.path(&file(self.size, "demote_size")), size),
            None => Ok(()),
        }
    }

    /// Asks the kernel to put the split pages together again, once the smaller ones are free. The error has the number of
    /// those that it did not.
    pub fn restore(&mut self) -> anyhow::Result<()> {
        if self.split == Pages(0) {
            return Ok(());
        }
        write(&self.root.path(&file(self.size, "nr_hugepages")), &self.before.to_string())?;
        let now = pool::pool(self.root, self.size)?.persistent();
        if now < self.before {
            bail!("the pool of {} keeps {now} pages; before it kept {}", self.size, self.before);
        }
        self.split = Pages(0);
        Ok(())
    }
}

/// Pages that are neither in use nor reserved, nor surplus.
fn idle(pool: &Pool) -> Pages {
    pool.available().unwrap_or_default().min(pool.persistent())
}

fn file(size: PageSize, name: &str) -> String {
    format!("{POOLS}/{}/{name}", size.sysfs_name())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    fn size(kib: u64) -> PageSize {
        PageSize::from_kib(kib).unwrap()
    }

    /// A host with a pool of 2 MB, and one of 1 GB with these numbers: nr, free, resv.
    fn host(top: &Path, [nr, free, resv]: [u64; 3]) -> Root {
        for (kib, numbers) in [(2048, [0, 0, 0]), (1 << 20, [nr, free, resv])] {
            let directory = top.join(format!("sys/kernel/mm/hugepages/hugepages-{kib}kB"));
            fs::create_dir_all(&directory).unwrap();
            for (name, number) in ["nr_hugepages", "free_hugepages", "resv_hugepages"].into_iter().zip(numbers) {
                fs::write(directory.join(name), format!("{number}\n")).unwrap();
            }
            fs::write(directory.join("surplus_hugepages"), "0\n").unwrap();
        }
        fs::write(top.join(format!("sys/kernel/mm/hugepages/hugepages-{}kB/demote", 1 << 20)), "").unwrap();
        Root::at(top)
    }

    #[test]
    fn only_pages_that_nobody_has_or_needs() {
        for (pool, needed, spare) in [
            ([4, 4, 0], Some(0), Some(4)),
            ([4, 3, 2], Some(0), Some(1)),
            ([4, 4, 0], Some(3), Some(1)),
            ([4, 2, 2], Some(0), None),
            ([0, 0, 0], Some(0), None),
            ([4, 4, 0], Some(4), None),
            ([4, 4, 0], None, None),
        ] {
            let top = tempfile::tempdir().unwrap();
            let root = host(top.path(), pool);
            let found = LargerPool::find(&root, size(2048), |_| needed.map(Pages));
            assert_eq!(found.ok().map(|found| found.spare()), spare.map(Pages), "{pool:?}");
            assert!(LargerPool::find(&root, size(1 << 20), |_| Some(Pages(0))).is_err(), "there is no larger one");
            fs::remove_file(top.path().join(format!("sys/kernel/mm/hugepages/hugepages-{}kB/demote", 1 << 20)))
                .unwrap();
            assert!(LargerPool::find(&root, size(2048), |_| Some(Pages(0))).is_err(), "the kernel can't split");
        }
    }
}
