//! Checks the arguments of `hugepage_what_if`: only numbers within the server's own bounds are accepted.

use hugepage_kernel::memory::pool;
use hugepage_kernel::{PageSize, Root};
use pgrx::pg_sys;

use super::Overrides;

/// An argument that is out of bounds.
pub struct InvalidArgument {
    /// The name of the argument.
    pub argument: &'static str,
    /// The value that was given.
    pub value: i64,
    /// The allowed values, a sentence for DETAIL.
    pub allowed: String,
}

/// Sizes are in bytes; `None` means the value on disk.
pub fn overrides(
    shared_buffers: Option<i64>,
    max_connections: Option<i32>,
    huge_page_size: Option<i64>,
) -> Result<Overrides, InvalidArgument> {
    Ok(Overrides {
        shared_buffers: shared_buffers.map(blocks).transpose()?,
        max_connections: max_connections.map(connections).transpose()?,
        huge_page_size: huge_page_size.map(page_size).transpose()?,
    })
}

/// The number of blocks in `bytes`, within the bounds of `shared_buffers` (guc_tables.c).
fn blocks(bytes: i64) -> Result<i32, InvalidArgument> {
    const BLOCK: i64 = pg_sys::BLCKSZ as i64;
    const MIN_BYTES: i64 = 16 * BLOCK;
    const MAX_BYTES: i64 = (i32::MAX / 2) as i64 * BLOCK;
    match i32::try_from(bytes / BLOCK) {
        Ok(blocks) if bytes % BLOCK == 0 && (MIN_BYTES..=MAX_BYTES).contains(&bytes) => Ok(blocks),
        _ => Err(InvalidArgument {
            argument: "shared_buffers",
            value: bytes,
            allowed: format!("It must be a multiple of {BLOCK} bytes from {MIN_BYTES} to {MAX_BYTES}."),
        }),
    }
}

/// Within the bounds of `max_connections` (guc_tables.c, `MAX_BACKENDS`).
fn connections(count: i32) -> Result<i32, InvalidArgument> {
    const MAX_BACKENDS: i32 = 0x3FFFF;
    if (1..=MAX_BACKENDS).contains(&count) {
        return Ok(count);
    }
    let allowed = format!("It must be a number from 1 to {MAX_BACKENDS}.");
    Err(InvalidArgument { argument: "max_connections", value: count.into(), allowed })
}

/// A huge page size of this machine.
fn page_size(bytes: i64) -> Result<PageSize, InvalidArgument> {
    let sizes = pool::sizes(&Root::live()).unwrap_or_default();
    let wanted = u64::try_from(bytes).ok().and_then(PageSize::new);
    wanted.filter(|size| sizes.contains(size)).ok_or_else(|| {
        let sizes: Vec<_> = sizes.iter().map(|size| size.bytes().0.to_string()).collect();
        let allowed = match sizes.as_slice() {
            [] => "This machine has no huge pages.".to_owned(),
            _ => format!("This machine has huge pages of {} bytes.", sizes.join(", ")),
        };
        InvalidArgument { argument: "huge_page_size", value: bytes, allowed }
    })
}
