//! Checks the arguments of `hugepage_preflight`: only numbers within the server's own bounds are accepted.

use hugepage_kernel::memory::pool;
use hugepage_kernel::{PageSize, Root};
use pgrx::pg_sys;

use crate::answer::Overrides;
use crate::guc;

/// An argument that is out of bounds.
pub struct InvalidArgument {
    /// The name of the argument.
    pub argument: &'static str,
    /// The value that was given.
    pub value: String,
    /// The allowed values, a sentence for DETAIL.
    pub allowed: String,
}

/// Checks the arguments, with sizes as in postgresql.conf; `None` means the value on disk.
pub fn overrides(
    shared_buffers: Option<String>,
    max_connections: Option<i32>,
    huge_page_size: Option<String>,
) -> Result<Overrides, InvalidArgument> {
    Ok(Overrides {
        shared_buffers: shared_buffers.map(blocks).transpose()?,
        max_connections: max_connections.map(connections).transpose()?,
        huge_page_size: huge_page_size.map(page_size).transpose()?,
    })
}

/// The number of blocks of `text`, within the bounds of `shared_buffers` (guc_tables.c).
fn blocks(text: String) -> Result<i32, InvalidArgument> {
    const MIN_BLOCKS: i32 = 16;
    const MAX_BLOCKS: i32 = i32::MAX / 2;
    guc::integer(&text, pg_sys::GUC_UNIT_BLOCKS).filter(|blocks| (MIN_BLOCKS..=MAX_BLOCKS).contains(blocks)).ok_or_else(
        || InvalidArgument {
            argument: "shared_buffers",
            value: text,
            allowed: format!(
                "It must be a size such as 8GB, or a number of blocks of {} bytes, from {MIN_BLOCKS} to {MAX_BLOCKS}.",
                pg_sys::BLCKSZ
            ),
        },
    )
}

/// Checks that `count` is within the bounds of `max_connections` (guc_tables.c, `MAX_BACKENDS`).
fn connections(count: i32) -> Result<i32, InvalidArgument> {
    const MAX_BACKENDS: i32 = 0x3FFFF;
    if (1..=MAX_BACKENDS).contains(&count) {
        return Ok(count);
    }
    let allowed = format!("It must be a number from 1 to {MAX_BACKENDS}.");
    Err(InvalidArgument { argument: "max_connections", value: count.to_string(), allowed })
}

/// A huge page size of this machine.
fn page_size(text: String) -> Result<PageSize, InvalidArgument> {
    let sizes = pool::sizes(&Root::live()).unwrap_or_default();
    let kilobytes = guc::integer(&text, pg_sys::GUC_UNIT_KB).and_then(|number| u64::try_from(number).ok());
    let wanted = kilobytes.and_then(PageSize::from_kib);
    wanted.filter(|size| sizes.contains(size)).ok_or_else(|| {
        let sizes: Vec<_> = sizes.iter().map(|size| size.setting()).collect();
        let allowed = match sizes.as_slice() {
            [] => "This machine has no huge pages.".to_owned(),
            _ => format!("This machine has huge pages of {}.", sizes.join(", ")),
        };
        InvalidArgument { argument: "huge_page_size", value: text, allowed }
    })
}
