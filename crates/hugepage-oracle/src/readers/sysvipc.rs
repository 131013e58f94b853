//! /proc/sysvipc/shm: the System V shared memory segments of the IPC namespace that /proc was read in (proc(5)).
//!
//! The file does not show which of them are in huge pages. Its column `rss` is not read: for huge pages it is too large.

use hugepage_kernel::{Bytes, ReadError, Root};

const PATH: &str = "/proc/sysvipc/shm";

/// The size of every segment, as it was requested, not rounded to pages; `Ok(None)` if the kernel has no System V shared memory.
pub fn read(root: &Root) -> Result<Option<Vec<Bytes>>, ReadError> {
    match root.read(PATH) {
        Ok(text) => parse(&text).map(Some).map_err(|problem| root.content(PATH, problem)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

/// Parses the text. The column is found by its name in the first line, because later kernels have more.
pub fn parse(text: &str) -> Result<Vec<Bytes>, String> {
    let mut lines = text.lines();
    let mut names = lines.next().unwrap_or_default().split_ascii_whitespace();
    let column = names.position(|name| name == "size").ok_or("it has no column size")?;
    let size = |line: &str| Some(Bytes(line.split_ascii_whitespace().nth(column)?.parse().ok()?));
    let segments = lines.filter(|line| !line.trim().is_empty());
    segments.map(|line| size(line).ok_or_else(|| format!("the line \"{line}\""))).collect()
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
        let expected = Bytes(2 << 20);
        assert_eq!(parse(&format!("{HEAD}\n{line}\n")).unwrap(), [expected]);
        let newer = format!("{HEAD}                   rss                  swap\n{line}  1073741824  0\n");
        assert_eq!(parse(&newer).unwrap(), [expected]);
        assert_eq!(parse(&format!("{HEAD}\n")).unwrap(), []);
    }

    #[test]
    fn what_is_something_else_is_an_error_and_not_an_empty_answer() {
        assert_eq!(parse("").unwrap_err(), "it has no column size");
        assert_eq!(parse(&format!("{HEAD}\n1 2 3\n")).unwrap_err(), "the line \"1 2 3\"");
    }
}
