//! hugepage-reserve.service: whether it runs at every boot, and what it left at this one.

use std::collections::BTreeMap;

use crate::memory::pool;
use crate::{PageSize, Pages, Root, RootEntry, RootFiles};

/// What `hugepage-sidecar reserve` left at this boot: for each pool a line with the size of its pages in kB, and their number.
pub const STATE: &str = "/run/hugepage-sidecar/reserved";
/// The directory of [`STATE`].
const DIRECTORY: &str = "/run/hugepage-sidecar";
/// What `systemctl enable` makes.
const ENABLED: &str = "/etc/systemd/system/sysinit.target.wants/hugepage-reserve.service";

/// What `systemctl mask` makes.
const MASK: &str = "/etc/systemd/system/hugepage-reserve.service";

/// Whether a boot starts the unit, by systemd's links alone.
pub fn is_enabled(root: &Root) -> bool {
    let is_masked = root
        .read_link(MASK)
        .is_ok_and(|target| target == "/dev/null");
    root.read_link(ENABLED).is_ok() && !is_masked
}

/// What the unit left in each pool at this boot, if a boot starts it, and the pool has not fewer now.
pub fn made(root: &Root) -> BTreeMap<PageSize, Pages> {
    let mut files = RootFiles::new(root, 1);
    let is_there = is_enabled(root) && files.names(DIRECTORY).is_ok();
    let Some(Ok(Some(RootEntry::Text(text)))) = is_there.then(|| files.read(STATE)) else {
        return BTreeMap::new();
    };
    let of_line = |line: &str| {
        let (kib, left) = line.split_once(' ')?;
        let size = PageSize::from_kib(kib.parse().ok()?)?;
        let left = left.parse().ok()?;
        let now = pool::pool(root, size).ok()?.persistent();
        (now >= Pages(left)).then_some((size, Pages(left)))
    };
    text.lines().filter_map(of_line).collect()
}

/// The line of a pool in [`STATE`].
pub fn line(size: PageSize, pages: Pages) -> String {
    format!("{} {pages}\n", size.bytes().0 >> 10)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn what_the_unit_left() {
        let tree = tempfile::tempdir().unwrap();
        let root = Root::at(tree.path());
        let write = |path: &str, text: &str| {
            let path = tree.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let pool = |name: &str, pages: &str| {
            for file in ["nr_hugepages", "free_hugepages"] {
                let pages = format!("{pages}\n");
                write(
                    &format!("sys/kernel/mm/hugepages/hugepages-{name}/{file}"),
                    &pages,
                );
            }
        };
        let [small, large] = [2048, 1 << 20].map(|kib| PageSize::from_kib(kib).unwrap());
        let text = line(large, Pages(2)) + &line(small, Pages(4100));
        write("run/hugepage-sidecar/reserved", &text);
        pool("2048kB", "4200");
        pool("1048576kB", "1");
        assert!(!is_enabled(&root) && made(&root).is_empty());
        let wants = tree.path().join("etc/systemd/system/sysinit.target.wants");
        fs::create_dir_all(&wants).unwrap();
        // Its target need not be there.
        symlink("/usr/lib/none", wants.join("hugepage-reserve.service")).unwrap();
        // One page was taken away.
        assert_eq!(made(&root), BTreeMap::from([(small, Pages(4100))]));
        pool("1048576kB", "2");
        assert_eq!(made(&root).len(), 2);
        let mask = tree.path().join(MASK.trim_start_matches('/'));
        symlink("/dev/null", &mask).unwrap();
        assert!(made(&root).is_empty());
        fs::remove_file(mask).unwrap();
        write("run/hugepage-sidecar/reserved", "2048\n-1 x\n");
        assert!(made(&root).is_empty());
    }
}
