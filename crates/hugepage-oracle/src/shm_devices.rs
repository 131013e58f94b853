//! The page size of an SGA by its device number. The kernel keeps memory without a file on internal file systems, one for base
//! pages and one for each huge page size, and /proc/PID/maps shows their device numbers.
//!
//! The numbers differ from boot to boot. This maps memory, neither touched nor reserved, and reads its device in /proc/self/maps.

use std::ptr;

use hugepage_kernel::host::mounts::{self, Mount};
use hugepage_kernel::mapping::maps;
use hugepage_kernel::memory::pool;
use hugepage_kernel::{Meminfo, PageSize, ReadError, Root, if_there};

/// A device number, major and minor.
type Device = (u32, u32);

/// Devices of shared memory with the size of its pages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Devices(Vec<(Device, PageSize)>);

impl Devices {
    /// The devices of this host; for a tree of files only the mounted ones.
    pub fn find(root: &Root) -> Result<Self, ReadError> {
        let mut found = Self::default();
        let sizes = pool::sizes(root).unwrap_or_default();
        if root.is_live() {
            let base = PageSize::base();
            for size in std::iter::once(base).chain(sizes) {
                found
                    .0
                    .extend(probe(root, size, size != base)?.map(|device| (device, size)));
            }
        }
        found.add_mounts(root, mounts::PATH)?;
        Ok(found)
    }

    /// The devices with those of each hugetlbfs that is mounted for the process `pid`, as in its own container.
    pub fn with_mounts_of(&self, root: &Root, pid: i32) -> Result<Self, ReadError> {
        let mut found = self.clone();
        found.add_mounts(root, &format!("/proc/{pid}/mountinfo"))?;
        Ok(found)
    }

    fn add_mounts(&mut self, root: &Root, path: &str) -> Result<(), ReadError> {
        let default = Meminfo::read(root)?.huge_page_size;
        let mounts = if_there(root.read(path))?.unwrap_or_default();
        self.0
            .extend(mounts::parse(&mounts).filter_map(|mount| hugetlbfs(&mount, default)));
        Ok(())
    }

    /// The page size of memory on `device`; `None` if unknown.
    pub fn page_size(&self, device: Device) -> Option<PageSize> {
        self.0
            .iter()
            .find(|(known, _)| *known == device)
            .map(|(_, size)| *size)
    }
}

/// The device of shared anonymous memory on pages of `size`; `None` if the kernel refuses to map it.
fn probe(root: &Root, size: PageSize, huge: bool) -> Result<Option<Device>, ReadError> {
    let Ok(length) = usize::try_from(size.bytes().0) else {
        return Ok(None);
    };
    let encoded = i32::try_from(length.trailing_zeros()).unwrap_or(0) << libc::MAP_HUGE_SHIFT;
    let huge = if huge { libc::MAP_HUGETLB | encoded } else { 0 };
    let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | huge;
    // SAFETY: a new mapping at an address of the kernel's choice, which no pointer refers to and which takes no page.
    #[allow(unsafe_code)]
    let address = unsafe { libc::mmap(ptr::null_mut(), length, libc::PROT_NONE, flags, -1, 0) };
    if address == libc::MAP_FAILED {
        return Ok(None);
    }
    let found = maps::read(root, maps::SELF, |mapping| mapping.holds(address as u64));
    // SAFETY: the mapping made above, which no pointer refers to.
    #[allow(unsafe_code)]
    unsafe {
        libc::munmap(address, length)
    };
    Ok(found?.first().map(|mapping| mapping.device))
}

/// The device of a hugetlbfs and its page size; `None` for another file system.
fn hugetlbfs(mount: &Mount, default: Option<PageSize>) -> Option<(Device, PageSize)> {
    let option = mount
        .options
        .iter()
        .find_map(|option| option.strip_prefix("pagesize="));
    let size = option.map_or(default, PageSize::of_kernel_text)?;
    (mount.kind == "hugetlbfs").then_some((mount.device, size))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts() {
        let (huge, gigantic) = (PageSize::from_kib(2048), PageSize::from_kib(1 << 20));
        for (line, expected) in [
            (
                "30 23 0:26 / /dev/hugepages rw,relatime shared:15 - hugetlbfs hugetlbfs rw,pagesize=2M",
                huge,
            ),
            (
                "30 23 0:26 / /mnt/huge rw - hugetlbfs none rw,gid=54321,pagesize=1024M,size=4G",
                gigantic,
            ),
            ("30 23 0:26 / /mnt/huge rw - hugetlbfs none rw", huge),
            ("30 23 0:26 / /dev/shm rw - tmpfs tmpfs rw", None),
            ("garbage", None),
        ] {
            let found = Mount::parse(line).and_then(|mount| hugetlbfs(&mount, huge));
            assert_eq!(found, expected.map(|size| ((0, 26), size)), "{line}");
        }
    }

    #[test]
    fn this_kernel_keeps_base_and_huge_pages_apart() {
        let root = Root::live();
        let base = probe(&root, PageSize::base(), false).unwrap().unwrap();
        assert_eq!(
            Devices::find(&root).unwrap().page_size(base),
            Some(PageSize::base())
        );
        for size in pool::sizes(&root).unwrap() {
            let device = probe(&root, size, true)
                .unwrap()
                .expect("a mapping that takes no page");
            assert_ne!(device, base);
            assert_eq!(Devices::find(&root).unwrap().page_size(device), Some(size));
        }
    }
}
