//! /proc/sysvipc/shm: the System V shared memory segments of the IPC namespace that /proc was read in (proc(5)).
//!
//! The file does not show which of them are in huge pages. Its column `rss` is not read: for huge pages it is too large.

use serde::{Deserialize, Serialize};

use crate::{Bytes, Root};

/// A segment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SysvSegment {
    /// `key`, as ftok(3) makes one; 0 for a private segment.
    pub key: i32,
    /// `shmid`, which ipcrm(1) takes.
    pub shmid: u64,
    /// As it was requested, not rounded to pages.
    pub size: Bytes,
    /// The process that attached or detached it last.
    pub lpid: i32,
    /// How many processes have attached it.
    pub nattch: u64,
    /// The owner.
    pub uid: u32,
}

/// Every segment; `None` if the kernel does not show them.
pub fn read(root: &Root) -> Option<Vec<SysvSegment>> {
    parse(&root.read("/proc/sysvipc/shm").ok()?)
}

/// Parses the text. Columns are found by their names in the first line, because later kernels have more.
fn parse(text: &str) -> Option<Vec<SysvSegment>> {
    let mut lines = text.lines();
    let names: Vec<_> = lines.next()?.split_ascii_whitespace().collect();
    let segment = |line: &str| {
        let words: Vec<_> = line.split_ascii_whitespace().collect();
        let column = |name: &str| {
            let at = names.iter().position(|one| *one == name)?;
            words.get(at)?.parse::<i64>().ok()
        };
        Some(SysvSegment {
            key: column("key")?.try_into().ok()?,
            shmid: column("shmid")?.try_into().ok()?,
            size: Bytes(column("size")?.try_into().ok()?),
            lpid: column("lpid")?.try_into().ok()?,
            nattch: column("nattch")?.try_into().ok()?,
            uid: column("uid")?.try_into().ok()?,
        })
    };
    let segments = lines.filter(|line| !line.trim().is_empty());
    let segments: Option<Vec<_>> = segments.map(segment).collect();
    segments.filter(|_| names.contains(&"size"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "       key      shmid perms                  size  cpid  lpid nattch   uid   gid  cuid  cgid      \
                        atime      dtime      ctime";

    #[test]
    fn kernels_with_and_without_the_last_columns() {
        let line = "-291814688   81068066   640               2097152  4103  9120     22   500   501   500   501 \
                    1328000000 1328000001 1327000000";
        let expected = SysvSegment {
            key: -291_814_688,
            shmid: 81_068_066,
            size: Bytes(2 << 20),
            lpid: 9120,
            nattch: 22,
            uid: 500,
        };
        assert_eq!(
            parse(&format!("{HEAD}\n{line}\n")).unwrap(),
            std::slice::from_ref(&expected)
        );
        let newer =
            format!("{HEAD}                   rss                  swap\n{line}  1073741824  0\n");
        assert_eq!(parse(&newer).unwrap(), [expected]);
        assert_eq!(parse(&format!("{HEAD}\n")).unwrap(), []);
    }

    #[test]
    fn what_is_something_else_is_not_an_empty_answer() {
        assert_eq!(parse(""), None);
        assert_eq!(parse(&format!("{HEAD}\n1 2 3\n")), None);
    }
}
