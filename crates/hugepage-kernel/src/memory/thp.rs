//! /sys/kernel/mm/transparent_hugepage: huge pages that the kernel makes by itself, without a reservation.

use crate::source::root::if_there;
use crate::{PageSize, ReadError, Root};

const DIRECTORY: &str = "/sys/kernel/mm/transparent_hugepage";

/// The word in brackets of a file like `enabled`, `defrag` or `shmem_enabled`; `None` on a kernel without it.
///
/// `enabled` applies to private memory, `shmem_enabled` to PostgreSQL's shared segment (admin-guide/mm/transhuge).
pub fn choice(root: &Root, file: &str) -> Result<Option<String>, ReadError> {
    let path = format!("{DIRECTORY}/{file}");
    match if_there(root.read_short(&path, |text| chosen(text).map(str::to_owned)))? {
        None => Ok(None),
        Some(Some(word)) => Ok(Some(word)),
        Some(None) => Err(root.content(&path, "none of its words is in brackets")),
    }
}

/// The files `hugepages-SIZEkB/shmem_enabled`, by size: which sizes shared memory may get without a reservation.
pub fn shmem_files(root: &Root) -> Result<Vec<String>, ReadError> {
    let names = if_there(root.list(DIRECTORY))?.unwrap_or_default();
    let size = |name: &str| name.strip_prefix("hugepages-")?.strip_suffix("kB")?.parse::<u64>().ok();
    let mut sizes: Vec<u64> = names.iter().filter_map(|name| size(name)).collect();
    sizes.sort_unstable();
    Ok(sizes.iter().map(|size| format!("hugepages-{size}kB/shmem_enabled")).collect())
}

/// The size of a transparent huge page that one page-table entry maps (`hpage_pmd_size`); `None` on a kernel without it.
pub fn pmd_size(root: &Root) -> Result<Option<PageSize>, ReadError> {
    let path = format!("{DIRECTORY}/hpage_pmd_size");
    Ok(if_there(root.read_number(&path))?.and_then(PageSize::new))
}

fn chosen(text: &str) -> Option<&str> {
    let (_, after) = text.split_once('[')?;
    Some(after.split_once(']')?.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_shared_memory() {
        let tree = tempfile::tempdir().unwrap();
        let directory = tree.path().join("sys/kernel/mm/transparent_hugepage");
        for name in ["hugepages-2048kB", "hugepages-64kB", "khugepaged"] {
            std::fs::create_dir_all(directory.join(name)).unwrap();
        }
        let files = shmem_files(&Root::at(tree.path())).unwrap();
        assert_eq!(files, ["hugepages-64kB/shmem_enabled", "hugepages-2048kB/shmem_enabled"]);
        assert_eq!(shmem_files(&Root::at(tree.path().join("proc"))).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn the_chosen_word_stands_in_brackets() {
        assert_eq!(chosen("always [madvise] never\n"), Some("madvise"));
        assert_eq!(chosen("always within_size advise [never] deny force\n"), Some("never"));
        assert_eq!(chosen("always madvise never\n"), None);
    }
}
