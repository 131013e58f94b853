//! Groups by name or number, from the files in /etc: a static binary has no name service.

use anyhow::{Context, Result};
use hugepage_kernel::Root;
use hugepage_kernel::host::accounts;
use rustix::fs::Gid;

/// The group with that name or number.
pub fn group(name: &str) -> Result<Gid> {
    if let Ok(number) = name.parse() {
        return Ok(Gid::from_raw(number));
    }
    let found = accounts::all_groups(&Root::live())?.unwrap_or_default().into_iter().find(|group| group.name == name);
    Ok(Gid::from_raw(found.with_context(|| format!("/etc/group has no group \"{name}\"; use its number"))?.gid))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn find_ids_by_name() {
        assert_eq!((group("54321").unwrap(), group("root").unwrap()), (Gid::from_raw(54321), Gid::ROOT));
        for name in ["", "x", "nobody of that name"] {
            assert!(group(name).is_err(), "{name}");
        }
    }
}
