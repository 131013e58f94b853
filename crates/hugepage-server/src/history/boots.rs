//! The history of boots: the first look after each, in one file of the sidecar's that everybody may read.

use std::path::{Path, PathBuf};

use hugepage_assess::history::record;
use hugepage_kernel::{BootLook, Root, RootEntry, RootFiles};

/// The sidecar's default directory of histories.
pub const DIRECTORY: &str = "/var/lib/hugepage-sidecar";
/// The boots that are kept: a file of them is never longer than those of root that are read.
const MAX_BOOTS: usize = 10;

/// Its path in the `directory` of histories.
pub fn path(directory: &Path) -> PathBuf {
    directory.join("boots.history")
}

/// The looks that the file in `directory` has, the oldest first, and why some may be missing, a clause. No file has none. A file that
/// others than root may write to is not read.
pub fn looks(root: &Root, directory: &Path) -> (Vec<BootLook>, Option<String>) {
    let path = path(directory);
    let lines: Vec<_> = match RootFiles::new(root, 1).read(&path.to_string_lossy()) {
        Ok(Some(RootEntry::Text(text))) => text.lines().map(record::boot_of).collect(),
        Ok(Some(_)) => vec![None],
        Ok(None) => Vec::new(),
        Err(why) => return (Vec::new(), Some(why)),
    };
    let damage = lines
        .contains(&None)
        .then(|| format!("{} is damaged", path.display()));
    (lines.into_iter().flatten().collect(), damage)
}

/// Whether a pool has fewer pages `now` than `then`.
pub fn has_fewer(now: &BootLook, then: &BootLook) -> bool {
    let mut pools = now.pools.iter();
    pools.any(|(size, pages)| then.pools.get(size).is_some_and(|had| pages < had))
}

/// The text of the file with one more look, if there is a `new` one.
pub fn text_with(mut looks: Vec<BootLook>, new: Option<&BootLook>) -> String {
    looks.extend(new.cloned());
    let surplus = looks.len().saturating_sub(MAX_BOOTS);
    looks[surplus..].iter().map(record::line_of_boot).collect()
}
