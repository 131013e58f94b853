//! Access control lists of files (acl(5)), as the kernel stores them (linux/posix_acl_xattr.h): a version, and entries of a tag, the
//! permissions and an ID.

use std::fs::File;
use std::os::fd::AsRawFd;

use rustix::fs::getxattr;

const VERSION: u32 = 2;
const ENTRY_BYTES: usize = 8;
/// More entries than any list has that a person wrote.
const MAX_BYTES: usize = 4096;
const USER: u16 = 0x02;
const GROUP_OWNER: u16 = 0x04;
const GROUP: u16 = 0x08;
const MASK: u16 = 0x10;
const OTHER: u16 = 0x20;

/// The list of a file that is not the user's own, or that it has none: then its mode counts.
#[derive(Debug)]
pub(crate) enum Acl {
    /// The mode says all.
    Mode,
    /// Tags, permissions and IDs.
    Entries(Vec<(u16, u16, u32)>),
    /// The list could not be read: nobody may.
    Unknown,
}

impl Acl {
    /// The list of what `place` leads to, which is open with O_PATH.
    pub fn read(place: &File) -> Self {
        let mut bytes = [0; MAX_BYTES];
        let path = format!("/proc/self/fd/{}", place.as_raw_fd());
        match getxattr(path, c"system.posix_acl_access", &mut bytes) {
            Ok(length) => Self::parse(&bytes[..length]),
            Err(rustix::io::Errno::NODATA | rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOENT) => Self::Mode,
            Err(_) => Self::Unknown,
        }
    }

    /// Whether the mode says all.
    pub const fn is_mode(&self) -> bool {
        matches!(self, Self::Mode)
    }

    fn parse(bytes: &[u8]) -> Self {
        let Some((version, entries)) = bytes.split_first_chunk::<4>() else { return Self::Unknown };
        if u32::from_le_bytes(*version) != VERSION || entries.len() % ENTRY_BYTES != 0 {
            return Self::Unknown;
        }
        let entry = |entry: &[u8]| match *entry {
            [a, b, c, d, e, f, g, h] => {
                (u16::from_le_bytes([a, b]), u16::from_le_bytes([c, d]), u32::from_le_bytes([e, f, g, h]))
            }
            _ => (0, 0, 0),
        };
        Self::Entries(entries.chunks_exact(ENTRY_BYTES).map(entry).collect())
    }

    /// The permissions of the user `uid` with these `groups` for a file that is not its own and whose group is `owner`; `None`
    /// if the mode says them.
    pub fn permissions(&self, uid: Option<u32>, groups: &[u32], owner: u32) -> Option<u32> {
        let entries = match self {
            Self::Mode => return None,
            Self::Unknown => return Some(0),
            Self::Entries(entries) => entries,
        };
        let mask = entries.iter().find(|(tag, ..)| *tag == MASK).map_or(7, |(_, permissions, _)| *permissions);
        if let Some((_, permissions, _)) = entries.iter().find(|(tag, _, id)| *tag == USER && Some(*id) == uid) {
            return Some(u32::from(permissions & mask));
        }
        let is_in = |(tag, _, id): &&(u16, u16, u32)| match *tag {
            GROUP_OWNER => groups.contains(&owner),
            GROUP => groups.contains(id),
            _ => false,
        };
        let mut of_groups = entries.iter().filter(is_in).map(|(_, permissions, _)| *permissions & mask).peekable();
        // Each group may give something; the others' entry does not count for who is in one.
        if of_groups.peek().is_some() {
            return Some(of_groups.fold(0, |all, permissions| all | u32::from(permissions)));
        }
        let others = entries.iter().find(|(tag, ..)| *tag == OTHER);
        Some(others.map_or(0, |(_, permissions, _)| u32::from(*permissions)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_list_gives() {
        let entry = |tag: u16, permissions: u16, id: u32| {
            [&tag.to_le_bytes()[..], &permissions.to_le_bytes(), &id.to_le_bytes()].concat()
        };
        let list = |entries: &[Vec<u8>]| Acl::parse(&[&VERSION.to_le_bytes()[..], &entries.concat()].concat());
        let all = list(&[
            entry(0x01, 6, u32::MAX),
            entry(USER, 0, 26),
            entry(USER, 7, 27),
            entry(GROUP_OWNER, 4, u32::MAX),
            entry(GROUP, 1, 100),
            entry(MASK, 5, u32::MAX),
            entry(OTHER, 4, u32::MAX),
        ]);
        for (uid, groups, permissions) in
            [(26, &[0][..], 0), (27, &[], 5), (28, &[0], 4), (28, &[100], 1), (28, &[0, 100], 5), (28, &[], 4)]
        {
            assert_eq!(all.permissions(Some(uid), groups, 0), Some(permissions), "{uid} {groups:?}");
        }
        assert_eq!(Acl::parse(b"\x02\0\0\0x").permissions(Some(1), &[], 0), Some(0));
        assert_eq!(Acl::Mode.permissions(Some(1), &[], 0), None);
    }
}
