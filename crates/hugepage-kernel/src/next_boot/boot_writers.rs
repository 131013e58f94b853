//! What writes the files of huge page pools at boot by name: tmpfiles.d (tmpfiles.d(5)).

use std::collections::{BTreeMap, BTreeSet};

use super::mention::mentions_pool;
use crate::source::root::if_there;
use crate::{PageSize, Pages, ReadError, Root};

/// The directories of systemd-tmpfiles, the most important first: a file hides those of its name further down.
const TMPFILES: [&str; 4] = ["/etc/tmpfiles.d", "/run/tmpfiles.d", "/usr/local/lib/tmpfiles.d", "/usr/lib/tmpfiles.d"];

/// The pool that a file writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhichPool {
    /// The pool of the default page size.
    Default,
    /// The pool of this page size.
    OfSize(PageSize),
    /// A pool that could not be determined: it may be any.
    Any,
}

impl WhichPool {
    /// Whether it is, or may be, the pool of `size`, where the default size is `default`.
    pub fn may_be(self, size: PageSize, default: Option<PageSize>) -> bool {
        match self {
            Self::Default => default.is_none_or(|default| default == size),
            Self::OfSize(wanted) => wanted == size,
            Self::Any => true,
        }
    }
}

/// A pool that is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolWrite {
    /// The pool.
    pub pool: WhichPool,
    /// The NUMA node whose share is written; `None` for the whole pool.
    pub node: Option<u64>,
    /// The number of pages that is written; `None` if it could not be read.
    pub pages: Option<Pages>,
    /// The file that says so.
    pub file: String,
}

/// What tmpfiles.d writes, in the order of file names. Of several lines with one path the first counts.
pub fn tmpfiles(root: &Root) -> Result<Vec<PoolWrite>, ReadError> {
    let mut files = BTreeMap::new();
    for directory in TMPFILES {
        for name in if_there(root.list(directory))?.unwrap_or_default() {
            if name.ends_with(".conf") {
                let path = format!("{directory}/{name}");
                files.entry(name).or_insert(path);
            }
        }
    }
    let (mut found, mut paths) = (Vec::new(), BTreeSet::new());
    for file in files.into_values() {
        let text = if_there(root.read(&file))?.unwrap_or_default();
        let written = text.lines().filter_map(|line| tmpfiles_line(line, &file));
        found.extend(written.filter(|(path, _)| paths.insert(path.clone())).map(|(_, write)| write));
    }
    Ok(found)
}

/// Parses a line of tmpfiles.d: type, path, mode, user, group, age, argument. Returns the path, too.
fn tmpfiles_line(line: &str, file: &str) -> Option<(String, PoolWrite)> {
    let mut words = line.split_ascii_whitespace();
    let (kind, path) = (words.next()?, words.next()?);
    // Modes, owners and removals change no pool.
    if !mentions_pool(line) || !kind.trim_start_matches('"').starts_with(['w', 'f', 'F', 'C', 'L']) {
        return None;
    }
    let argument: Vec<_> = words.skip(4).collect();
    // What appends, decodes or creates is not followed.
    let is_plain = kind.strip_prefix('w').is_some_and(|signs| signs.chars().all(|sign| "!-=".contains(sign)));
    let pages = match argument.as_slice() {
        [number] if is_plain => count(number),
        _ => None,
    };
    let write = match pool_file(path) {
        Some((pool, node)) => PoolWrite { pool, node, pages, file: file.to_owned() },
        // Patterns, quotes and specifiers are not resolved here.
        None => PoolWrite { pool: WhichPool::Any, node: None, pages: None, file: file.to_owned() },
    };
    // One that is not plain counts beside others of its path.
    Some((if is_plain { path.to_owned() } else { line.to_owned() }, write))
}

/// A number of pages that every one of the kernel's parsers takes alike: decimal digits, no zero before others.
pub fn count(text: &str) -> Option<Pages> {
    let is_decimal = text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    is_decimal.then(|| text.parse().ok().map(Pages)).flatten()
}

/// The pool whose `nr_hugepages` `path` is, and the node.
pub fn pool_file(path: &str) -> Option<(WhichPool, Option<u64>)> {
    if ["/proc/sys/vm/nr_hugepages", "/proc/sys/vm/nr_hugepages_mempolicy"].contains(&path) {
        return Some((WhichPool::Default, None));
    }
    let pool = path.strip_suffix("/nr_hugepages").or_else(|| path.strip_suffix("/nr_hugepages_mempolicy"))?;
    let (directory, name) = pool.rsplit_once('/')?;
    let size = WhichPool::OfSize(PageSize::from_sysfs_name(name)?);
    match directory {
        "/sys/kernel/mm/hugepages" => Some((size, None)),
        _ => {
            let node = directory.strip_prefix("/sys/devices/system/node/")?.strip_suffix("/hugepages")?;
            Some((size, Some(node.strip_prefix("node")?.parse().ok()?)))
        }
    }
}
