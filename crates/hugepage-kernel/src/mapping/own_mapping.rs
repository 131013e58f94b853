//! The mapping of this process at an address, and its page size.

use crate::mapping::maps::{self, Mapping};
use crate::mapping::{procmap_query, smaps};
use crate::{ReadError, Root, if_there};

/// The whole mapping of this process at `address`, with its page size.
///
/// Asks the kernel for that one mapping (`PROCMAP_QUERY`, Linux 6.11), and reads the file on other kernels.
pub fn at(root: &Root, address: u64) -> Result<Option<Mapping>, ReadError> {
    match procmap_query::holding(root, address) {
        Some(answer) => answer,
        None => by_text(root, address),
    }
}

/// The mapping that holds `address`, from the text of maps alone, for kernels before 6.11.
///
/// The text has no page size. Every mapping that is not on hugetlbfs has base pages. For the others `smaps` has it, and
/// walking huge pages is cheap. Kernels before 2.6.29 do not show it, so it stays unknown.
pub fn by_text(root: &Root, address: u64) -> Result<Option<Mapping>, ReadError> {
    let Some(mut mapping) = maps::read(root, maps::SELF, |_| true)?
        .into_iter()
        .find(|mapping| mapping.holds(address))
    else {
        return Ok(None);
    };
    // Private mappings, ordinary files and `/dev/zero` are never in huge pages.
    mapping.page_size = if mapping.shared && mapping.path != "/dev/zero (deleted)" {
        if_there(smaps::usage_of(root, &mapping))?
            .flatten()
            .and_then(|usage| usage.kernel_page_size)
    } else {
        if_there(root.base_page_size())?
    };
    Ok(Some(mapping))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_split_mapping_is_found_whole() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(directory.path().join("proc/self")).unwrap();
        let text = "1000-2000 rw-s 00000000 00:01 5 /dev/zero (deleted)\n\
                    2000-4000 rw-s 00001000 00:01 5 /dev/zero (deleted)\n";
        std::fs::write(directory.path().join("proc/self/maps"), text).unwrap();
        let root = Root::at(directory.path());
        let found = by_text(&root, 0x2500).unwrap().unwrap();
        assert_eq!(
            (found.start, found.end, found.page_size),
            (0x1000, 0x4000, None),
            "no file tells the page size"
        );
        assert_eq!(by_text(&root, 0x6000).unwrap(), None);
    }
}
