//! /proc/PID/maps: the mappings of a process. Reading it does not walk page tables (proc(5)).

use std::fs::File;
use std::io::{BufRead, BufReader};

use serde::{Deserialize, Serialize};

use crate::source::short_file::as_text;
use crate::{Bytes, PageSize, ReadError, Root};

/// More mappings than any server has of its shared memory: AMM has one for each granule of at least 4 MB.
const MAX_MAPPINGS: usize = 8192;

/// The maps of this process.
pub const SELF: &str = "/proc/self/maps";

/// The maps of process `pid`; readable by processes that may trace it (proc(5)).
pub fn path(pid: i32) -> String {
    format!("/proc/{pid}/maps")
}

/// One mapping, or several adjacent ones of the same object merged into one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mapping {
    /// First address.
    pub start: u64,
    /// First address after it.
    pub end: u64,
    /// The parts of it that the process may not access at all: address space for memory that may come later.
    pub inaccessible: Bytes,
    /// Whether the mapping is shared (`s`), not private.
    pub shared: bool,
    /// Offset in its object, in bytes.
    pub offset: u64,
    /// Device of its object, major and minor number.
    pub device: (u32, u32),
    /// Inode of its object; the shmid for a System V segment.
    pub inode: u64,
    /// The kernel's name of it, with the directory and the ` (deleted)`; empty for private anonymous memory.
    pub path: String,
    /// The size of its pages; `None` if the source does not show it.
    pub page_size: Option<PageSize>,
}

impl Mapping {
    /// The length of the mapping, with the parts that may not be accessed.
    pub const fn size(&self) -> Bytes {
        Bytes(self.end.saturating_sub(self.start))
    }

    /// The memory that it stands for: of anonymous memory the part that the process may access, because the rest is only
    /// reserved. System V segments and files have all of theirs, whatever one process may do with them.
    pub fn memory(&self) -> Bytes {
        let is_anonymous =
            self.path.starts_with("/anon_hugepage") || self.path.starts_with("/dev/zero");
        self.size().saturating_sub(if is_anonymous {
            self.inaccessible
        } else {
            Bytes(0)
        })
    }

    /// Whether `address` is in the mapping.
    pub const fn holds(&self, address: u64) -> bool {
        self.start <= address && address < self.end
    }

    /// The kernel's name without directory and ` (deleted)`, as pmap(1) prints it: `anon_hugepage`, `zero`, `SYSV009b2220`.
    pub fn name(&self) -> &str {
        let path = self.path.strip_suffix(" (deleted)").unwrap_or(&self.path);
        path.rsplit('/').next().unwrap_or(path)
    }

    /// Whether the kernel's name is that of a System V segment: `/SYSV009b2220`.
    pub fn is_sysv(&self) -> bool {
        self.path.starts_with("/SYSV")
    }

    /// Whether `next` continues this one in the same object: two parts of one mmap that was split.
    pub fn continues_in(&self, next: &Self) -> bool {
        self.end == next.start
            && self.inode == next.inode
            && self.device == next.device
            && self.shared == next.shared
            && self.offset.wrapping_add(self.size().0) == next.offset
    }

    /// Makes them one; `next` continues this one.
    pub fn join(&mut self, next: &Self) {
        self.end = next.end;
        self.inaccessible = self.inaccessible.saturating_add(next.inaccessible);
    }
}

/// Parses one line: `7f00-7f01 rw-s 00000000 00:0f 1234   /anon_hugepage (deleted)`.
pub fn parse(line: &str) -> Option<Mapping> {
    let mut words = line.splitn(6, ' ');
    let mut word = || words.next();
    let hex = |text| u64::from_str_radix(text, 16).ok();
    let (start, end) = word()?.split_once('-')?;
    let [read, write, execute, kind] = word()?.as_bytes() else {
        return None;
    };
    let is_accessible = [read, write, execute].iter().any(|letter| **letter != b'-');
    let offset = hex(word()?)?;
    let (major, minor) = word()?.split_once(':')?;
    let inode = word()?.parse().ok()?;
    let path = word()
        .unwrap_or_default()
        .trim_start_matches(' ')
        .to_owned();
    let (start, end) = (hex(start)?, hex(end)?);
    let number = |text| u32::from_str_radix(text, 16).ok();
    let device = (number(major)?, number(minor)?);
    (start < end).then(|| Mapping {
        start,
        end,
        inaccessible: Bytes(if is_accessible { 0 } else { end - start }),
        shared: *kind == b's',
        offset,
        device,
        inode,
        path,
        page_size: None,
    })
}

/// All mappings for which `wanted` holds, in the order of addresses. Adjacent mappings of one object are merged.
pub fn read(
    root: &Root,
    path: &str,
    wanted: impl Fn(&Mapping) -> bool,
) -> Result<Vec<Mapping>, ReadError> {
    read_from(root, path, &root.open(path)?, wanted)
}

/// The mappings for which `wanted` holds, from the open `file` at `path`.
pub(crate) fn read_from(
    root: &Root,
    path: &str,
    file: &File,
    wanted: impl Fn(&Mapping) -> bool,
) -> Result<Vec<Mapping>, ReadError> {
    let mut mappings: Vec<Mapping> = Vec::new();
    let mut file = BufReader::with_capacity(1 << 16, file);
    let mut line = Vec::new();
    while file
        .read_until(b'\n', &mut line)
        .map_err(|source| root.error("read", path, source))?
        > 0
    {
        let mapping = as_text(line.strip_suffix(b"\n").unwrap_or(&line), |line| {
            parse(line).ok_or_else(|| root.content(path, format!("the line \"{line}\"")))
        })?;
        line.clear();
        let is_full = mappings.len() == MAX_MAPPINGS;
        match mappings.last_mut() {
            Some(last) if last.continues_in(&mapping) => last.join(&mapping),
            _ if is_full && wanted(&mapping) => {
                return Err(root.content(
                    path,
                    format!("it has more than {MAX_MAPPINGS} mappings of shared memory"),
                ));
            }
            _ if wanted(&mapping) => mappings.push(mapping),
            _ => {}
        }
    }
    Ok(mappings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_all_kinds() {
        let huge = parse(
            "7f6b40000000-7f6b83200000 rw-s 00000000 00:10 12345                      /anon_hugepage (deleted)",
        );
        let huge = huge.unwrap();
        assert_eq!(
            (huge.name(), huge.size(), huge.shared),
            ("anon_hugepage", Bytes(0x4320_0000), true)
        );
        assert_eq!((huge.device, huge.inode), ((0, 16), 12345));
        assert_eq!(huge.memory(), Bytes(0x4320_0000));
        for (line, name) in [
            (
                "7f00-7f01 rw-s 00000000 00:01 1028   /dev/zero (deleted)",
                "zero",
            ),
            (
                "7f00-7f01 rw-s 00000000 00:01 0   /SYSV009b2220 (deleted)",
                "SYSV009b2220",
            ),
            (
                "60000000-61000000 rw-s 00000000 00:0a 1575813166 /223 (deleted)",
                "223",
            ),
            (
                "7f00-7f01 ---s 00000000 00:10 5   /anon_hugepage (deleted)",
                "anon_hugepage",
            ),
            ("7f00-7f01 rw-p 00000000 00:00 0", ""),
            (
                "7f00-7f01 r-xp 00000000 08:01 7   /srv/a file (deleted) (deleted)",
                "a file (deleted)",
            ),
            (
                "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0  [vsyscall]",
                "[vsyscall]",
            ),
        ] {
            assert_eq!(parse(line).unwrap().name(), name, "{line}");
        }
        for line in [
            "",
            "x",
            "7f01-7f00 rw-s 0 00:01 1 /a",
            "7f00-7f01 rw-s 0 0001 1 /a",
            "7f00-7f01 rws 0 00:01 1",
        ] {
            assert_eq!(parse(line), None, "{line}");
        }
    }

    #[test]
    fn keep_what_may_be_accessed() {
        for (permissions, memory) in [
            ("---s", 0),
            ("r--s", 0x2000),
            ("rw-s", 0x2000),
            ("--xp", 0x2000),
        ] {
            let mapping = parse(&format!(
                "1000-3000 {permissions} 00000000 00:01 5 /dev/zero (deleted)"
            ))
            .unwrap();
            assert_eq!(
                (mapping.memory(), mapping.shared),
                (Bytes(memory), permissions.ends_with('s')),
                "{permissions}"
            );
        }
    }

    /// The main segment of a server that reserves address space, in the form that Linux 6.18 shows: what is in use, what a
    /// structure may grow into, and the structures behind it.
    #[test]
    fn a_reservation_is_part_of_its_mapping() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(directory.path().join("proc/self")).unwrap();
        let text = "7f0000000000-7f0000800000 rw-s 00000000 00:10 7   /anon_hugepage (deleted)\n\
                    7f0000800000-7f0002000000 ---s 00800000 00:10 7   /anon_hugepage (deleted)\n\
                    7f0002000000-7f0002200000 rw-s 02000000 00:10 7   /anon_hugepage (deleted)\n\
                    7f0002200000-7f0002400000 ---s 00000000 00:10 8   /anon_hugepage (deleted)\n";
        std::fs::write(directory.path().join("proc/self/maps"), text).unwrap();
        let mappings = read(&Root::at(directory.path()), SELF, |_| true).unwrap();
        let sizes: Vec<_> = mappings
            .iter()
            .map(|mapping| (mapping.size(), mapping.memory()))
            .collect();
        assert_eq!(
            sizes,
            [
                (Bytes(0x220_0000), Bytes(0xa0_0000)),
                (Bytes(0x20_0000), Bytes(0))
            ]
        );
        let segment = parse("1000-3000 ---s 00000000 00:01 5 /SYSV00000000 (deleted)").unwrap();
        assert_eq!(
            segment.memory(),
            Bytes(0x2000),
            "the kernel reserves all of it"
        );
    }

    #[test]
    fn halves_of_one_object_are_one_mapping() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(directory.path().join("proc/self")).unwrap();
        let text = "1000-2000 rw-s 00000000 00:01 5 /dev/zero (deleted)\n\
                    2000-4000 rw-s 00001000 00:01 5 /dev/zero (deleted)\n\
                    4000-5000 rw-s 00000000 00:01 6 /dev/zero (deleted)\n";
        std::fs::write(directory.path().join("proc/self/maps"), text).unwrap();
        let mappings = read(&Root::at(directory.path()), SELF, |_| true).unwrap();
        assert_eq!(
            mappings.iter().map(Mapping::size).collect::<Vec<_>>(),
            [Bytes(0x3000), Bytes(0x1000)]
        );
    }
}
