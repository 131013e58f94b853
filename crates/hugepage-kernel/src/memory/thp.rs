//! /sys/kernel/mm/transparent_hugepage: huge pages that the kernel makes by itself, without a reservation.

use crate::{PageSize, ReadError, Root, if_there};

const DIRECTORY: &str = "/sys/kernel/mm/transparent_hugepage";

/// The word in brackets of a file like `enabled`, `defrag` or `shmem_enabled`; `None` on a kernel without it.
///
/// `enabled` applies to private memory, `shmem_enabled` to PostgreSQL's shared segment (admin-guide/mm/transhuge).
pub fn choice(root: &Root, file: &str) -> Result<Option<String>, ReadError> {
    let path = format!("{DIRECTORY}/{file}");
    let word = if_there(root.read_short(&path, |text| chosen(text).map(str::to_owned)))?;
    word.map(|word| word.ok_or_else(|| root.content(&path, "none of its words is in brackets")))
        .transpose()
}

/// The word in brackets of `shmem_enabled` for pages of `size` alone (since 6.11).
pub fn shmem_of_size(root: &Root, size: PageSize) -> Result<Option<String>, ReadError> {
    choice(root, &format!("{}/shmem_enabled", size.sysfs_name()))
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
    fn the_chosen_word_stands_in_brackets() {
        assert_eq!(chosen("always [madvise] never\n"), Some("madvise"));
        assert_eq!(
            chosen("always within_size advise [never] deny force\n"),
            Some("never")
        );
        assert_eq!(chosen("always madvise never\n"), None);
    }
}
