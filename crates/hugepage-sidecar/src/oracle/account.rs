//! Users and groups by name or number, from the files in /etc: a static binary has no name service.

use std::str::FromStr;

use anyhow::{Context, Result};
use hugepage_kernel::Root;
use rustix::fs::{Gid, Uid};

/// A user ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct User(pub u32);

/// A group ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group(pub u32);

impl User {
    /// The type of system calls.
    pub fn uid(self) -> Uid {
        Uid::from_raw(self.0)
    }

    /// The user with that name or number.
    pub fn find(name: &str) -> Result<Self> {
        find(name, "/etc/passwd", "user").map(Self)
    }
}

impl Group {
    /// The type of system calls.
    pub fn gid(self) -> Gid {
        Gid::from_raw(self.0)
    }

    /// The group with that name or number.
    pub fn find(name: &str) -> Result<Self> {
        find(name, "/etc/group", "group").map(Self)
    }
}

fn find(name: &str, path: &str, what: &str) -> Result<u32> {
    if let Ok(number) = u32::from_str(name) {
        return Ok(number);
    }
    let text = Root::live().read(path)?;
    number_of(name, &text).with_context(|| format!("{path} has no {what} \"{name}\"; use its number"))
}

/// The ID in the third field (passwd(5), group(5)).
fn number_of(name: &str, text: &str) -> Option<u32> {
    text.lines().find_map(|line| {
        let mut fields = line.split(':');
        (fields.next()? == name).then(|| fields.nth(1)?.parse().ok())?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn find_ids_by_name() {
        let text =
            "root:x:0:\n# oinstall:x:1:\noinstall2:x:54322:\noinstall:x:54321:oracle,grid\nbroken\nbad:x:many:\n";
        assert_eq!(number_of("oinstall", text), Some(54321));
        assert_eq!(number_of("root", text), Some(0));
        for name in ["oinst", "broken", "bad", "", "x"] {
            assert_eq!(number_of(name, text), None, "{name}");
        }
        assert_eq!(Group::find("54321").unwrap(), Group(54321));
        assert_eq!(User::find("root").unwrap(), User(0));
        assert!(User::find("nobody of that name").is_err());
    }
}
