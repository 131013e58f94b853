//! Users and groups by name or number, from the files in /etc: a static binary has no name service.

use anyhow::{Context, Result};
use hugepage_kernel::Root;
use hugepage_kernel::host::accounts;
use rustix::fs::{Gid, Uid};

/// The user with that name or number.
pub fn user(name: &str) -> Result<Uid> {
    if let Ok(number) = name.parse() {
        return Ok(Uid::from_raw(number));
    }
    let found = accounts::accounts(&Root::live())?.into_iter().find(|account| account.name == name);
    Ok(Uid::from_raw(found.with_context(|| format!("/etc/passwd has no user \"{name}\"; use its number"))?.uid))
}

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
        assert_eq!((user("54321").unwrap(), user("root").unwrap()), (Uid::from_raw(54321), Uid::ROOT));
        for name in ["", "x", "nobody of that name"] {
            assert!(user(name).is_err() && group(name).is_err(), "{name}");
        }
    }
}
