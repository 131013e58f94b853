//! /proc/sysvipc/shm: the System V shared memory segments of the IPC namespace that /proc was read in (proc(5)).
//!
//! The file does not show which of them are in huge pages. Its column `rss` is not read: for huge pages it is too large.

use hugepage_kernel::{Bytes, ReadError, Root};

const PATH: &str = "/proc/sysvipc/shm";

/// A System V segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SysvSegment {
    /// `key` of shmget(2), which names the mapping `/SYSV` with eight hexadecimal digits; 0 for IPC_PRIVATE.
    pub key: u32,
    /// `shmid`, the inode of its mappings in /proc/PID/maps.
    pub shmid: u64,
    /// `size`, as it was requested, not rounded to pages.
    pub size: Bytes,
    /// `nattch`: how many times it is attached now.
    pub attached: u64,
    /// `uid`: the user that owns it.
    pub uid: u32,
}

/// Every segment; `Ok(None)` if the kernel has no System V shared memory.
pub fn read(root: &Root) -> Result<Option<Vec<SysvSegment>>, ReadError> {
    match root.read(PATH) {
        Ok(text) => parse(&text).map(Some).map_err(|problem| root.content(PATH, problem)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

/// Parses the text. Columns are found by the names in the first line, because later kernels have more.
pub fn parse(text: &str) -> Result<Vec<SysvSegment>, String> {
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().unwrap_or_default().split_ascii_whitespace().collect();
    let column =
        |name: &str| names.iter().position(|found| *found == name).ok_or_else(|| format!("it has no column {name}"));
    let [key, shmid, size, nattch, uid] = ["key", "shmid", "size", "nattch", "uid"].map(column);
    let columns = [key?, shmid?, size?, nattch?, uid?];
    lines
        .filter(|line| !line.trim().is_empty())
        .map(|line| segment(line, columns).ok_or_else(|| format!("the line \"{line}\"")))
        .collect()
}

fn segment(line: &str, columns: [usize; 5]) -> Option<SysvSegment> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let [key, shmid, size, nattch, uid] = columns.map(|column| words.get(column));
    Some(SysvSegment {
        // Printed as a signed number.
        key: key?.parse::<i32>().ok()?.cast_unsigned(),
        shmid: shmid?.parse().ok()?,
        size: Bytes(size?.parse().ok()?),
        attached: nattch?.parse().ok()?,
        uid: uid?.parse().ok()?,
    })
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
        let expected =
            SysvSegment { key: 0xee9b_42e0, shmid: 81_068_066, size: Bytes(2 << 20), attached: 22, uid: 500 };
        assert_eq!(parse(&format!("{HEAD}\n{line}\n")).unwrap(), [expected]);
        let newer = format!("{HEAD}                   rss                  swap\n{line}  1073741824  0\n");
        assert_eq!(parse(&newer).unwrap(), [expected]);
        assert_eq!(parse(&format!("{HEAD}\n")).unwrap(), []);
    }

    #[test]
    fn what_is_something_else_is_an_error_and_not_an_empty_answer() {
        assert_eq!(parse("").unwrap_err(), "it has no column key");
        assert_eq!(parse(&format!("{HEAD}\n1 2 3\n")).unwrap_err(), "the line \"1 2 3\"");
    }
}
