//! /proc/sysvipc/shm: the System V shared memory segments of the IPC namespace that /proc was read in (proc(5)).
//!
//! The file does not show which of them are in huge pages. Its column `rss` is not read: for huge pages it is too large.

use hugepage_kernel::{Bytes, Root};

/// The size of every segment, as it was requested, not rounded to pages; `None` if the kernel does not show them.
pub fn read(root: &Root) -> Option<Vec<Bytes>> {
    parse(&root.read("/proc/sysvipc/shm").ok()?)
}

/// Parses the text. The column is found by its name in the first line, because later kernels have more.
fn parse(text: &str) -> Option<Vec<Bytes>> {
    let mut lines = text.lines();
    let mut names = lines.next().unwrap_or_default().split_ascii_whitespace();
    let column = names.position(|name| name == "size")?;
    let size = |line: &str| Some(Bytes(line.split_ascii_whitespace().nth(column)?.parse().ok()?));
    lines.filter(|line| !line.trim().is_empty()).map(size).collect()
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
    fn what_is_something_else_is_not_an_empty_answer() {
        assert_eq!(parse(""), None);
        assert_eq!(parse(&format!("{HEAD}\n1 2 3\n")), None);
    }
}
