//! What writes the files of huge page pools at boot, after sysctl.d: tmpfiles.d and units of systemd.

use crate::source::root::if_there;
use crate::{PageSize, Pages, ReadError, Root};

/// Where systemd-tmpfiles looks, the most important first: a file hides those of its name further down (tmpfiles.d(5)).
const TMPFILES: [&str; 4] = ["/etc/tmpfiles.d", "/run/tmpfiles.d", "/usr/local/lib/tmpfiles.d", "/usr/lib/tmpfiles.d"];
/// Where administrators have their units.
const UNITS: &str = "/etc/systemd/system";

/// Which pool a file writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhichPool {
    /// The pool of the default page size.
    Default,
    /// The pool of this page size.
    OfSize(PageSize),
    /// One that could not be determined: it may be any.
    Any,
}

impl WhichPool {
    /// Whether it is, or may be, the pool of `size`.
    pub fn may_be(self, size: PageSize, is_default: bool) -> bool {
        match self {
            Self::Default => is_default,
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
    pub node: Option<String>,
    /// What is written; `None` if the file's number could not be read.
    pub pages: Option<Pages>,
    /// The file that says so.
    pub file: String,
}

/// What tmpfiles.d writes, in the order of file names.
pub fn tmpfiles(root: &Root) -> Result<Vec<PoolWrite>, ReadError> {
    let mut files = std::collections::BTreeMap::new();
    for directory in TMPFILES {
        for name in if_there(root.list(directory))?.unwrap_or_default() {
            if name.ends_with(".conf") {
                let path = format!("{directory}/{name}");
                files.entry(name).or_insert(path);
            }
        }
    }
    let mut found = Vec::new();
    for file in files.into_values() {
        let text = if_there(root.read(&file))?.unwrap_or_default();
        found.extend(text.lines().filter_map(|line| tmpfiles_line(line, &file)));
    }
    Ok(found)
}

/// Type, path, mode, user, group, age, argument (tmpfiles.d(5)).
fn tmpfiles_line(line: &str, file: &str) -> Option<PoolWrite> {
    let mut words = line.split_ascii_whitespace();
    let (kind, path) = (words.next()?, words.next()?);
    let is_pool = path.trim_matches('"').ends_with("/nr_hugepages");
    if !is_pool || !kind.trim_start_matches('"').starts_with(['w', 'f']) {
        return None;
    }
    let argument: Vec<_> = words.skip(4).collect();
    let pages = match argument.as_slice() {
        [number] => count(number),
        _ => None,
    };
    Some(match pool_file(path) {
        Some((pool, node)) => PoolWrite { pool, node, pages, file: file.to_owned() },
        // Patterns, quotes and specifiers are not resolved here.
        None => PoolWrite { pool: WhichPool::Any, node: None, pages: None, file: file.to_owned() },
    })
}

/// A number of pages that every one of the kernel's parsers takes alike: decimal digits, no zero before others.
pub fn count(text: &str) -> Option<Pages> {
    let is_decimal = text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    is_decimal.then(|| text.parse().ok().map(Pages)).flatten()
}

/// The pool whose `nr_hugepages` `path` is, and the node.
fn pool_file(path: &str) -> Option<(WhichPool, Option<String>)> {
    if path == "/proc/sys/vm/nr_hugepages" {
        return Some((WhichPool::Default, None));
    }
    let pool = path.strip_suffix("/nr_hugepages")?;
    let (directory, name) = pool.rsplit_once('/')?;
    let size = WhichPool::OfSize(PageSize::from_sysfs_name(name)?);
    match directory {
        "/sys/kernel/mm/hugepages" => Some((size, None)),
        _ => {
            let node = directory.strip_prefix("/sys/devices/system/node/")?.strip_suffix("/hugepages")?;
            node.strip_prefix("node")?.parse::<u32>().ok()?;
            Some((size, Some(node.to_owned())))
        }
    }
}

/// The enabled units that set a pool. Numbers are read in units such as `hugepage_fix('systemd')` makes; of others that
/// mention a pool they are unknown.
pub fn units(root: &Root) -> Result<Vec<PoolWrite>, ReadError> {
    let mut found = Vec::new();
    let names = if_there(root.list(UNITS))?.unwrap_or_default();
    let targets: Vec<_> = names.iter().filter(|name| name.ends_with(".wants") || name.ends_with(".requires")).collect();
    for name in names.iter().filter(|name| name.ends_with(".service")) {
        let file = format!("{UNITS}/{name}");
        let mut enabled = false;
        for target in &targets {
            enabled |= if_there(root.list(&format!("{UNITS}/{target}")))?.unwrap_or_default().contains(name);
        }
        if !enabled {
            continue;
        }
        // A link to a unit that is gone is no unit.
        let Some(text) = if_there(root.read(&file))?.filter(|text| text.contains("nr_hugepages")) else { continue };
        let variable = |name: &str| text.lines().find_map(|line| line.strip_prefix("Environment=")?.strip_prefix(name));
        let pool = variable("POOL=").and_then(|pool| pool_file(&format!("{}/nr_hugepages", pool.trim())));
        let pages = variable("PAGES=").and_then(|pages| count(pages.trim()));
        let (pool, node) = pool.unwrap_or((WhichPool::Any, None));
        found.push(PoolWrite { pool, node, pages, file });
    }
    Ok(found)
}
