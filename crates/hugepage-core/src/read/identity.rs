//! The identity of this machine.

use crate::ReadError;
use crate::read::Root;
use crate::read::root::if_there;

/// The host's name, as in uname(2).
pub fn host_name(root: &Root) -> Result<String, ReadError> {
    line(root, "/proc/sys/kernel/hostname")
}

/// The identifier of the running boot (random(4)); `None` on a kernel without it.
pub fn boot_id(root: &Root) -> Result<Option<String>, ReadError> {
    if_there(line(root, "/proc/sys/kernel/random/boot_id"))
}

/// A value that stays the same on the same machine: a hash of machine-id(5), which should not be shown itself, or the
/// host's name where that file is missing, as in containers.
pub fn machine(root: &Root) -> Result<String, ReadError> {
    match if_there(line(root, "/etc/machine-id"))? {
        Some(id) if !id.is_empty() && id != "uninitialized" => Ok(format!("{:08x}", crc32fast::hash(id.as_bytes()))),
        _ => host_name(root),
    }
}

fn line(root: &Root, path: &str) -> Result<String, ReadError> {
    root.read_short(path, |text| text.trim().to_owned())
}
