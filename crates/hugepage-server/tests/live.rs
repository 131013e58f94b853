//! The running kernel: both ways to ask about a mapping agree on real shared memory of every kind.

#![allow(clippy::disallowed_methods)]

use std::sync::atomic::{AtomicBool, Ordering};
use std::{io, ptr};

use hugepage_assess::model::{PoolFact, landing_of};
use hugepage_facts::{Landing, TransparentPages};
use hugepage_kernel::mapping::maps::{self, Mapping};
use hugepage_kernel::mapping::{own_mapping, procmap_query, smaps};
use hugepage_kernel::memory::meminfo::Meminfo;
use hugepage_kernel::memory::pool;
use hugepage_kernel::{Bytes, Notes, PageSize, Pages, Root};
use hugepage_server::segments::{self, SegmentRole};
use hugepage_server::server::pool_of_size;
use hugepage_server::transparent::transparent_pages;

/// Shared memory of this process, gone when dropped.
struct Shared {
    address: *mut libc::c_void,
    length: usize,
    /// The id of a System V segment; `None` for a mapping.
    id: Option<libc::c_int>,
}

impl Shared {
    /// Anonymous memory as PostgreSQL maps it (sysv_shmem.c), in huge pages of `huge` if given.
    fn mmap(length: usize, huge: Option<PageSize>) -> io::Result<Self> {
        Self::map(length, huge, 0)
    }

    #[allow(unsafe_code)]
    fn map(length: usize, huge: Option<PageSize>, flags: libc::c_int) -> io::Result<Self> {
        let flags = flags
            | libc::MAP_SHARED
            | libc::MAP_ANONYMOUS
            | huge.map_or(0, |size| {
                libc::MAP_HUGETLB | log2(size) << libc::MAP_HUGE_SHIFT
            });
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory of ours.
        let address = unsafe {
            libc::mmap(
                ptr::null_mut(),
                length,
                libc::PROT_READ | libc::PROT_WRITE,
                flags,
                -1,
                0,
            )
        };
        if address == libc::MAP_FAILED {
            Err(io::Error::last_os_error())
        } else {
            Ok(Self {
                address,
                length,
                id: None,
            })
        }
    }

    /// Reserves address space for memory, of which nothing is promised.
    fn reserve(length: usize, huge: Option<PageSize>) -> io::Result<Self> {
        Self::map(length, huge, libc::MAP_NORESERVE)
    }

    /// A System V segment, removed by the kernel when the last process detaches.
    #[allow(unsafe_code)]
    fn sysv(length: usize, huge: Option<PageSize>) -> io::Result<Self> {
        let flags = 0o600
            | libc::IPC_CREAT
            | huge.map_or(0, |size| {
                libc::SHM_HUGETLB | log2(size) << libc::MAP_HUGE_SHIFT
            });
        // SAFETY: a new segment, attached at an address of the kernel's choice, touches no memory of ours.
        unsafe {
            let id = libc::shmget(libc::IPC_PRIVATE, length, flags);
            if id < 0 {
                return Err(io::Error::last_os_error());
            }
            let address = libc::shmat(id, ptr::null(), 0);
            let attached = if address as isize == -1 {
                Err(io::Error::last_os_error())
            } else {
                Ok(address)
            };
            libc::shmctl(id, libc::IPC_RMID, ptr::null_mut());
            attached.map(|address| Self {
                address,
                length,
                id: Some(id),
            })
        }
    }

    /// Writes to the first byte, so that a page is there.
    #[allow(unsafe_code)]
    fn touch(&self) {
        // SAFETY: the memory is mapped, writable, ours alone, and at least a page long.
        unsafe { self.address.cast::<u8>().write_volatile(1) }
    }

    fn address(&self) -> u64 {
        self.address as u64
    }
}

impl Drop for Shared {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        // SAFETY: this very memory was mapped or attached by us, and nothing refers to it any more.
        unsafe {
            match self.id {
                Some(_) => libc::shmdt(self.address),
                None => libc::munmap(self.address, self.length),
            };
        }
    }
}

/// How MAP_HUGE_SHIFT wants a page size (mmap(2)).
fn log2(size: PageSize) -> libc::c_int {
    size.bytes().0.trailing_zeros().try_into().unwrap()
}

/// The mapping at `memory`, on which the ioctl (where this kernel has it), maps and smaps must agree.
fn asked_both_ways(memory: &Shared, what: &str) -> Mapping {
    let root = Root::live();
    let inside = memory.address() + u64::try_from(memory.length).unwrap() / 2;
    let text = own_mapping::by_text(&root, inside).unwrap().unwrap();
    match procmap_query::holding(&root, inside) {
        Some(requested) => assert_eq!(requested.unwrap().unwrap(), text, "{what}"),
        None => eprintln!("not exercised: this kernel has no PROCMAP_QUERY to compare with"),
    }
    assert_eq!(
        own_mapping::at(&root, inside).unwrap().unwrap(),
        text,
        "{what}"
    );
    assert_eq!(
        (text.start, text.size()),
        (memory.address(), Bytes(memory.length.try_into().unwrap())),
        "{what}"
    );
    assert!(text.shared, "{what}");
    let usage = smaps::usage_of(&root, &text).unwrap().unwrap();
    assert_eq!(usage.kernel_page_size, text.page_size, "{what}");
    text
}

#[test]
fn base_pages() {
    let base = PageSize::base();
    let length = 64 * usize::try_from(base.bytes().0).unwrap();
    let anonymous = Shared::mmap(length, None).unwrap();
    let sysv = Shared::sysv(length, None).unwrap();
    for (memory, name) in [(&anonymous, "zero"), (&sysv, "SYSV00000000")] {
        memory.touch();
        let mapping = asked_both_ways(memory, name);
        assert_eq!((mapping.name(), mapping.page_size), (name, Some(base)));
        let seen = own_transparent_pages(&mapping);
        assert_eq!(landing_of(&mapping, base, true, Some(&seen)), Landing::Base);
        let usage = smaps::usage_of(&Root::live(), &mapping).unwrap().unwrap();
        assert!(
            usage.resident >= base.bytes() && usage.hugetlb == Bytes(0),
            "{name}: {usage:?}"
        );
    }
    let id = u64::try_from(sysv.id.unwrap()).unwrap();
    assert_eq!(
        asked_both_ways(&sysv, "sysv").inode,
        id,
        "the inode of a System V segment is its shmid"
    );
}

/// What a postmaster would tell of its mapping.
fn own_transparent_pages(mapping: &Mapping) -> TransparentPages {
    let root = Root::live();
    let meminfo = Meminfo::read(&root).unwrap();
    transparent_pages(&root, "self", mapping, Bytes(0), &meminfo)
        .unwrap()
        .unwrap()
}

/// Two pages of every size whose pool has them to spare; the pool is not changed.
#[test]
fn huge_pages_of_every_size() {
    let root = Root::live();
    for size in pool::sizes(&root).unwrap() {
        let length = usize::try_from(size.times(Pages(2)).0).unwrap();
        type Make = fn(usize, Option<PageSize>) -> io::Result<Shared>;
        let kinds: [(&str, Make); 2] = [
            ("anon_hugepage", Shared::mmap),
            ("SYSV00000000", Shared::sysv),
        ];
        for (name, make) in kinds {
            let what = format!("{name} of {size}");
            let available = pool::pool(&root, size).unwrap().available().unwrap();
            if available < Pages(2) {
                eprintln!(
                    "not exercised: {what}, because the pool has {available} pages to spare (scenarios cover it)"
                );
                continue;
            }
            // Others share the pool, and may have been faster, or a cgroup may not allow it.
            let memory = match make(length, Some(size)) {
                Ok(memory) => memory,
                Err(error) => {
                    eprintln!("not exercised: {what}: {error}");
                    continue;
                }
            };
            let mapping = asked_both_ways(&memory, &what);
            assert_eq!((mapping.name(), mapping.page_size), (name, Some(size)));
            assert_eq!(
                landing_of(&mapping, PageSize::base(), true, None),
                Landing::Hugetlb,
                "{what}"
            );
            assert_eq!(
                smaps::usage_of(&root, &mapping).unwrap().unwrap().hugetlb,
                Bytes(0),
                "{what}: promised, not touched"
            );
            memory.touch();
            assert_eq!(
                smaps::usage_of(&root, &mapping).unwrap().unwrap().hugetlb,
                size.bytes(),
                "{what}: one page touched"
            );
        }
    }
}

/// mprotect(2) splits a mapping into three in the kernel's list; it stays one segment for us.
#[test]
#[allow(unsafe_code)]
fn a_split_segment_is_one() {
    let base = usize::try_from(PageSize::base().bytes().0).unwrap();
    let memory = Shared::mmap(16 * base, None).unwrap();
    // SAFETY: the page is part of our own mapping, and nobody reads or writes it.
    assert_eq!(
        unsafe { libc::mprotect(memory.address.byte_add(4 * base), base, libc::PROT_NONE) },
        0
    );
    let mapping = asked_both_ways(&memory, "split");
    let lines = std::fs::read_to_string("/proc/self/maps").unwrap();
    let pieces = lines
        .lines()
        .filter_map(maps::parse)
        .filter(|piece| piece.inode == mapping.inode && piece.device == mapping.device);
    assert_eq!(pieces.count(), 3);
}

/// Ten resizes of a mapping as the patches for resizable shared memory make it: address space without a reservation
/// (MAP_NORESERVE), of which the part in use is readable and writable and the rest PROT_NONE, with a structure behind it.
/// Another thread writes to it meanwhile. Huge pages are mapped also where the pool has none, and not touched then.
#[test]
#[allow(unsafe_code)]
fn ten_resizes_to_the_page() {
    let root = Root::live();
    let base = PageSize::base();
    let huge = Meminfo::read(&root).unwrap().huge_page_size;
    for size in [Some(base), huge].into_iter().flatten() {
        let page = usize::try_from(size.bytes().0).unwrap();
        let is_huge = size > base;
        let memory = match Shared::reserve(64 * page, is_huge.then_some(size)) {
            Ok(memory) => memory,
            Err(error) => {
                eprintln!("not exercised: address space in pages of {size}: {error}");
                continue;
            }
        };
        let first = usize::try_from(memory.address()).unwrap();
        let protect = |from: usize, to: usize, access| {
            // SAFETY: pages of our own mapping; the other thread touches the first one only, which stays accessible.
            assert_eq!(
                unsafe {
                    libc::mprotect((first + from * page) as *mut _, (to - from) * page, access)
                },
                0
            );
        };
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                // Untouched huge pages of an empty pool would end the process.
                while !is_huge && !done.load(Ordering::Relaxed) {
                    // SAFETY: the first page stays accessible and mapped until the thread has ended.
                    unsafe { (first as *mut u8).write_volatile(1) };
                }
            });
            for pages in [8, 60, 61, 2, 1, 33, 34, 33, 62, 16] {
                protect(0, pages, libc::PROT_READ | libc::PROT_WRITE);
                protect(pages, 62, libc::PROT_NONE);
                let mapping = asked_both_ways(&memory, &format!("{pages} pages of {size}"));
                let in_use = size.times(Pages(u64::try_from(pages + 2).unwrap()));
                assert_eq!(
                    (mapping.memory(), mapping.size()),
                    (in_use, size.times(Pages(64))),
                    "{pages}"
                );
                let usage = smaps::usage_of(&root, &mapping).unwrap().unwrap();
                assert!(
                    usage.resident.saturating_add(usage.hugetlb) <= in_use,
                    "{usage:?}"
                );
            }
            done.store(true, Ordering::Relaxed);
        });
    }
}

#[test]
fn a_process_finds_its_own_segments() {
    let length = usize::try_from(PageSize::base().bytes().0).unwrap() * 8;
    let main = Shared::mmap(length, None).unwrap();
    let interlock = Shared::sysv(length, None).unwrap();
    let mut notes = Notes::default();
    let in_base_pages = TransparentPages::default();
    let rows = segments::rows(
        &Root::live(),
        main.address(),
        interlock.address(),
        Some(&in_base_pages),
        &mut notes,
    );
    for (role, memory) in [
        (SegmentRole::Main, &main),
        (SegmentRole::Interlock, &interlock),
    ] {
        let row = rows.iter().find(|row| row.role == role).unwrap();
        assert_eq!(row.mapping.start, memory.address());
        // Nobody knows those of others, where the host has any.
        assert!(row.landing == Landing::Base || role == SegmentRole::Interlock);
    }
    assert_eq!(notes.into_vec(), [""; 0]);
}

#[test]
fn memory_that_is_gone_is_not_found() {
    let length = usize::try_from(PageSize::base().bytes().0).unwrap() * 8;
    let memory = Shared::mmap(length, None).unwrap();
    let mapping = asked_both_ways(&memory, "before");
    drop(memory);
    // Another thread may map something there at once, but not the same object.
    let found = own_mapping::at(&Root::live(), mapping.start).unwrap();
    assert!(
        found.is_none_or(|found| found.inode != mapping.inode),
        "the mapping is gone"
    );
}

/// One file has what five have, and one file tells whether there are several nodes.
#[test]
fn short_ways_to_the_pool() {
    let (root, mut notes) = (Root::live(), Notes::default());
    let Some(size) = Meminfo::read(&root).unwrap().huge_page_size else {
        eprintln!("this kernel has no huge pages");
        return;
    };
    // Others may change the pool between both.
    let is_same = (0..1000).any(|_| {
        let meminfo = Meminfo::read(&root).unwrap();
        pool_of_size(&root, Some(size), Some(&meminfo), &mut notes)
            == PoolFact::Known(pool::pool(&root, size).unwrap())
    });
    assert!(is_same);
    assert!(notes.into_vec().is_empty());
    assert_eq!(
        pool::has_single_node(&root),
        pool::nodes(&root).unwrap().len() == 1
    );
}
