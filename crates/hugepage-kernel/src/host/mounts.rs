//! /proc/self/mountinfo: what is mounted where, as this process sees it (proc(5)).

use std::path::Path;

use crate::{ReadError, Root};

/// The file that [`Mount::parse`] takes lines of.
pub const PATH: &str = "/proc/self/mountinfo";

/// A mount, one line of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// The device number, major and minor.
    pub device: (u32, u32),
    /// The part of the file system that stands at `point`.
    pub root: String,
    /// The mount point.
    pub point: String,
    /// The type of the file system, such as `cgroup2`.
    pub kind: String,
    /// The options of the file system itself, the same at every place.
    pub options: Vec<String>,
}

impl Mount {
    /// Takes one line; `None` if it is none of mountinfo.
    pub fn parse(line: &str) -> Option<Self> {
        let (own, file_system) = line.split_once(" - ")?;
        let mut own = own.split(' ').skip(2);
        let mut file_system = file_system.split(' ');
        let (major, minor) = own.next()?.split_once(':')?;
        Some(Self {
            device: (major.parse().ok()?, minor.parse().ok()?),
            root: unescape(own.next()?),
            point: unescape(own.next()?),
            kind: file_system.next()?.to_owned(),
            options: file_system.nth(1)?.split(',').map(str::to_owned).collect(),
        })
    }

    /// Whether the file system has `option`.
    pub fn has(&self, option: &str) -> bool {
        self.options.iter().any(|found| found == option)
    }
}

/// All lines of `text` that are understood, in their order: of several on one place the last is seen.
pub fn parse(text: &str) -> impl Iterator<Item = Mount> {
    text.lines().filter_map(Mount::parse)
}

/// The mounts that this process sees below `root`, with the places that they have there.
pub fn read(root: &Root) -> Result<Vec<Mount>, ReadError> {
    let text = root.read(PATH)?;
    // A container that has its host's root has mounts of its own beside it.
    let its = |mut mount: Mount| {
        let point = Path::new(&mount.point).strip_prefix(root.path("/")).ok()?;
        mount.point = format!("/{}", point.display());
        Some(mount)
    };
    let found: Vec<_> = parse(&text).filter_map(its).collect();
    // A tree of files has the places of the machine that it stands for.
    Ok(if found.is_empty() {
        parse(&text).collect()
    } else {
        found
    })
}

/// The mount that a process with these mounts sees `path` on: the farthest down, and of several on one place the last.
pub fn above<'a>(mounts: &'a [Mount], path: &Path) -> Option<&'a Mount> {
    mounts
        .iter()
        .filter(|mount| path.starts_with(&mount.point))
        .max_by_key(|mount| mount.point.len())
}

/// What is seen at the mount point `point`, the last of several; `None` if nothing is mounted there, or that can't be read.
pub fn seen_at(root: &Root, point: &str) -> Option<Mount> {
    read(root)
        .ok()?
        .into_iter()
        .rfind(|mount| mount.point == point)
}

/// Undoes the octal escapes that mountinfo uses for space, tab, newline and backslash.
fn unescape(text: &str) -> String {
    let mut plain = text.to_owned();
    for (escape, character) in [
        ("\\040", " "),
        ("\\011", "\t"),
        ("\\012", "\n"),
        ("\\134", "\\"),
    ] {
        plain = plain.replace(escape, character);
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines() {
        let mount = Mount::parse(
            "29 23 0:26 / /sys/fs/cgroup/a\\040b rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate",
        );
        let mount = mount.unwrap();
        assert_eq!(mount.device, (0, 26));
        assert_eq!(
            (
                mount.root.as_str(),
                mount.point.as_str(),
                mount.kind.as_str()
            ),
            ("/", "/sys/fs/cgroup/a b", "cgroup2")
        );
        assert!(mount.has("nsdelegate") && !mount.has("ns") && !mount.has("nosuid"));
        assert_eq!(Mount::parse("garbage"), None);
    }
}
