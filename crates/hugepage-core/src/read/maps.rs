//! /proc/PID/maps: the mappings of a process. Reading it does not walk page tables (proc(5)).

use std::io::{BufRead, BufReader};

use crate::read::Root;
use crate::{Bytes, PageSize, ReadError};

/// The maps of this process.
pub const SELF: &str = "/proc/self/maps";

/// The maps of process `pid`; readable by processes that may trace it (proc(5)).
pub fn path(pid: i32) -> String {
    format!("/proc/{pid}/maps")
}

/// One mapping, or several adjacent ones of the same object merged into one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// First address.
    pub start: u64,
    /// First address after it.
    pub end: u64,
    /// Whether it is shared (`s`), not private.
    pub shared: bool,
    /// Offset in its object, in bytes.
    pub offset: u64,
    /// Device of its object, major and minor number.
    pub device: (u32, u32),
    /// Inode of its object; the shmid for a System V segment.
    pub inode: u64,
    /// The kernel's name of it, with the directory and the ` (deleted)`; empty for private anonymous memory.
    pub path: String,
    /// The size of its pages; `None` where the source does not show it.
    pub page_size: Option<PageSize>,
}

impl Mapping {
    /// Its length.
    pub const fn size(&self) -> Bytes {
        Bytes(self.end - self.start)
    }

    /// Whether it has `address`.
    pub const fn holds(&self, address: u64) -> bool {
        self.start <= address && address < self.end
    }

    /// The kernel's name without directory and ` (deleted)`, as pmap(1) prints it: `anon_hugepage`, `zero`,
    /// `SYSV009b2220`.
    pub fn name(&self) -> &str {
        let path = self.path.strip_suffix(" (deleted)").unwrap_or(&self.path);
        path.rsplit('/').next().unwrap_or(path)
    }

    /// Whether `next` continues this one in the same object: two parts of one mmap that was split.
    pub fn continues_in(&self, next: &Self) -> bool {
        self.end == next.start
            && self.inode == next.inode
            && self.device == next.device
            && self.shared == next.shared
            && self.offset.wrapping_add(self.size().0) == next.offset
    }
}

/// Parses one line: `7f00-7f01 rw-s 00000000 00:0f 1234   /anon_hugepage (deleted)`.
pub fn parse(line: &str) -> Option<Mapping> {
    let mut rest = line;
    let mut word = || {
        let trimmed = rest.trim_start_matches(' ');
        let (word, after) = trimmed.split_once(' ').unwrap_or((trimmed, ""));
        rest = after;
        word
    };
    let hex = |text| u64::from_str_radix(text, 16).ok();
    let (start, end) = word().split_once('-')?;
    let permissions = word();
    let offset = hex(word())?;
    let (major, minor) = word().split_once(':')?;
    let inode = word().parse().ok()?;
    let path = rest.trim_start_matches(' ').to_owned();
    let (start, end) = (hex(start)?, hex(end)?);
    let device = (u32::from_str_radix(major, 16).ok()?, u32::from_str_radix(minor, 16).ok()?);
    (permissions.len() == 4 && start < end).then(|| Mapping {
        start,
        end,
        shared: permissions.ends_with('s'),
        offset,
        device,
        inode,
        path,
        page_size: None,
    })
}

/// All mappings for which `wanted` holds, in the order of addresses. Adjacent mappings of one object are merged.
pub fn read(root: &Root, path: &str, wanted: impl Fn(&Mapping) -> bool) -> Result<Vec<Mapping>, ReadError> {
    let mut mappings: Vec<Mapping> = Vec::new();
    for line in BufReader::with_capacity(1 << 16, root.open(path)?).split(b'\n') {
        let line = line.map_err(|source| root.error("read", path, source))?;
        let line = String::from_utf8_lossy(&line);
        let mapping = parse(&line).ok_or_else(|| root.content(path, format!("the line \"{line}\"")))?;
        match mappings.last_mut() {
            Some(last) if last.continues_in(&mapping) => last.end = mapping.end,
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
        let huge =
            parse("7f6b40000000-7f6b83200000 rw-s 00000000 00:10 12345                      /anon_hugepage (deleted)");
        let huge = huge.unwrap();
        assert_eq!((huge.name(), huge.size(), huge.shared), ("anon_hugepage", Bytes(0x4320_0000), true));
        assert_eq!((huge.device, huge.inode), ((0, 16), 12345));
        for (line, name) in [
            ("7f00-7f01 rw-s 00000000 00:01 1028   /dev/zero (deleted)", "zero"),
            ("7f00-7f01 rw-s 00000000 00:01 0   /SYSV009b2220 (deleted)", "SYSV009b2220"),
            ("60000000-61000000 rw-s 00000000 00:0a 1575813166 /223 (deleted)", "223"),
            ("7f00-7f01 rw-p 00000000 00:00 0", ""),
            ("7f00-7f01 r-xp 00000000 08:01 7   /srv/a file (deleted) (deleted)", "a file (deleted)"),
            ("ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0  [vsyscall]", "[vsyscall]"),
        ] {
            assert_eq!(parse(line).unwrap().name(), name, "{line}");
        }
        for line in ["", "x", "7f01-7f00 rw-s 0 00:01 1 /a", "7f00-7f01 rw-s 0 0001 1 /a", "7f00-7f01 rws 0 00:01 1"] {
            assert_eq!(parse(line), None, "{line}");
        }
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
        assert_eq!(mappings.iter().map(Mapping::size).collect::<Vec<_>>(), [Bytes(0x3000), Bytes(0x1000)]);
    }
}
