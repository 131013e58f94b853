//! Users and groups by name or number, from the files in /etc: a static binary has no name service.

use std::str::FromStr;

use anyhow::{Context, Result};
use hugepage_kernel::Root;
use rustix::fs::{Gid, Uid};

/// The user with that name or number.
pub fn user(name: &str) -> Result<Uid> {
    find(name, "/etc/passwd", "user").map(Uid::from_raw)
}

/// The group with that name or number.
pub fn group(name: &str) -> Result<Gid> {
    find(name, "/etc/group", "group").map(Gid::from_raw)
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
        assert_eq!(group("54321").unwrap(), Gid::from_raw(54321));
        assert_eq!(user("root").unwrap(), Uid::ROOT);
        assert!(user("nobody of that name").is_err());
    }
}
