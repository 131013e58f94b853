//! `PROCMAP_QUERY`, an ioctl on /proc/PID/maps since Linux 6.11: the kernel returns the mapping at an address with its
//! page size, without walking page tables (linux/fs.h, `struct procmap_query`).

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use crate::mapping::maps::{self, Mapping, SELF};
use crate::{Bytes, PageSize, ReadError, Root};

/// The kernel's `struct procmap_query`, 104 bytes.
#[repr(C)]
#[derive(Default)]
struct Query {
    size: u64,
    query_flags: u64,
    query_addr: u64,
    vma_start: u64,
    vma_end: u64,
    vma_flags: u64,
    vma_page_size: u64,
    vma_offset: u64,
    inode: u64,
    dev_major: u32,
    dev_minor: u32,
    vma_name_size: u32,
    build_id_size: u32,
    vma_name_addr: u64,
    build_id_addr: u64,
}

/// Readable, writable or executable.
const ACCESSIBLE: u64 = 0x07;
const SHARED: u64 = 0x08;
/// A name is never longer than PATH_MAX.
const NAME_SIZE: u32 = 4096;
type Name = [u8; NAME_SIZE as usize];

/// The mapping of this process at `address`, merged with its neighbours of the same object.
///
/// `None`: this kernel, a seccomp filter or a root of plain files does not answer; read the text instead.
pub fn holding(root: &Root, address: u64) -> Option<Result<Option<Mapping>, ReadError>> {
    if !root.is_live() {
        return None;
    }
    let file = match root.open(SELF) {
        Ok(file) => file,
        Err(error) => return Some(Err(error)),
    };
    match merged(&file, address) {
        Ok(mapping) => Some(Ok(mapping)),
        Err(error) if is_unknown(&error) => None,
        Err(source) => Some(Err(root.error("query", SELF, source))),
    }
}

/// The mappings of `pid` for which `wanted` holds, and whether they have the sizes of their pages; if not, as for [`holding`].
pub fn with_page_sizes(
    root: &Root,
    pid: i32,
    wanted: impl Fn(&Mapping) -> bool,
) -> Result<(Vec<Mapping>, bool), ReadError> {
    let path = maps::path(pid);
    let file = root.open(&path)?;
    let mut mappings = maps::read_from(root, &path, &file, wanted)?;
    if !root.is_live() {
        return Ok((mappings, false));
    }
    for mapping in &mut mappings {
        match query(&file, mapping.start, None) {
            Ok(found) => mapping.page_size = found.and_then(|found| found.page_size),
            Err(error) if is_unknown(&error) => return Ok((mappings, false)),
            Err(source) => return Err(root.error("query", &path, source)),
        }
    }
    Ok((mappings, true))
}

/// ENOTTY before 6.11; the others from seccomp filters and sandboxed kernels without this ioctl.
fn is_unknown(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::ENOTTY | libc::EINVAL | libc::ENOSYS | libc::EPERM)
    )
}

fn merged(file: &File, address: u64) -> io::Result<Option<Mapping>> {
    let mut name = [0; NAME_SIZE as usize];
    let Some(mut mapping) = query(file, address, Some(&mut name))? else {
        return Ok(None);
    };
    // What continues it has its name.
    while let Some(next) = query(file, mapping.end, None)?
        && mapping.continues_in(&next)
    {
        mapping.join(&next);
    }
    // What begins at the start of its object continues nothing.
    while mapping.start > 0
        && mapping.offset > 0
        && let Some(mut previous) = query(file, mapping.start - 1, Some(&mut name))?
        && previous.continues_in(&mapping)
    {
        previous.join(&mapping);
        mapping = previous;
    }
    Ok(Some(mapping))
}

/// One ioctl; `None` if nothing is mapped at `address`. Without a place for the `name` the kernel does a third less.
fn query(file: &File, address: u64, mut name: Option<&mut Name>) -> io::Result<Option<Mapping>> {
    const PROCMAP_QUERY: libc::Ioctl = libc::_IOWR::<Query>(b'f' as u32, 17);
    let mut query = Query {
        size: size_of::<Query>() as u64,
        query_addr: address,
        vma_name_size: if name.is_some() { NAME_SIZE } else { 0 },
        vma_name_addr: name.as_mut().map_or(0, |name| name.as_mut_ptr() as u64),
        ..Query::default()
    };
    // SAFETY: the kernel writes at most query.size bytes to query and at most NAME_SIZE bytes to name; both outlive the call.
    #[allow(unsafe_code)]
    let result = unsafe { libc::ioctl(file.as_raw_fd(), PROCMAP_QUERY, &raw mut query) };
    if result != 0 {
        let error = io::Error::last_os_error();
        return if error.raw_os_error() == Some(libc::ENOENT) {
            Ok(None)
        } else {
            Err(error)
        };
    }
    // The length counts the closing NUL, and is zero for memory without a name.
    let length = usize::try_from(query.vma_name_size)
        .unwrap_or(0)
        .saturating_sub(1);
    let name = name.map_or(&[][..], |name| &name[..length]);
    let may = |flag| query.vma_flags & flag != 0;
    Ok(Some(Mapping {
        start: query.vma_start,
        end: query.vma_end,
        inaccessible: Bytes(if may(ACCESSIBLE) {
            0
        } else {
            query.vma_end - query.vma_start
        }),
        shared: may(SHARED),
        offset: query.vma_offset,
        device: (query.dev_major, query.dev_minor),
        inode: query.inode,
        path: String::from_utf8_lossy(name).replace('\n', "\\012"),
        page_size: PageSize::new(query.vma_page_size),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mapping::maps;

    /// The ioctl and the text agree on every mapping of this very process.
    #[test]
    fn the_kernel_says_the_same_both_ways() {
        let root = Root::live();
        let mappings = maps::read(&root, SELF, |mapping| !mapping.path.starts_with('[')).unwrap();
        assert!(mappings.len() > 3);
        let file = root.open(SELF).unwrap();
        if query(&file, mappings[0].start, None).is_err() {
            eprintln!("this kernel has no PROCMAP_QUERY, there is nothing to compare");
            return;
        }
        for mapping in mappings {
            // The memory of other tests moves under us, also what they share; mappings of files do not.
            if mapping.path.is_empty() || mapping.path.ends_with(" (deleted)") {
                continue;
            }
            let requested = holding(&root, mapping.start).unwrap().unwrap().unwrap();
            assert_eq!(requested.page_size, Some(PageSize::base()));
            assert_eq!(
                Mapping {
                    page_size: None,
                    ..requested
                },
                mapping
            );
        }
        assert_eq!(holding(&root, 8).unwrap().unwrap(), None);
    }
}
