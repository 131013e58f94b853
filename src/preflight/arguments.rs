//! The arguments of `hugepage_what_if`: numbers within the server's own bounds, and nothing else.

use hugepage_core::PageSize;
use hugepage_core::read::{Root, pool};
use pgrx::pg_sys;

use super::Overrides;

/// An argument that is refused.
pub struct Invalid {
    /// Its name.
    pub argument: &'static str,
    /// Its value.
    pub value: i64,
    /// What is allowed, a sentence.
    pub allowed: String,
}

/// Sizes are in bytes; what is not given is as on disk.
pub fn overrides(
    shared_buffers: Option<i64>,
    max_connections: Option<i32>,
    huge_page_size: Option<i64>,
) -> Result<Overrides, Invalid> {
    Ok(Overrides {
        shared_buffers: shared_buffers.map(blocks).transpose()?,
        max_connections: max_connections.map(connections).transpose()?,
        huge_page_size: huge_page_size.map(page_size).transpose()?,
    })
}

/// The blocks in so many bytes, within the bounds of `shared_buffers` (guc_tables.c).
fn blocks(bytes: i64) -> Result<i32, Invalid> {
    const BLOCK: i64 = pg_sys::BLCKSZ as i64;
    const LEAST: i64 = 16;
    const MOST: i64 = (i32::MAX / 2) as i64;
    let blocks = bytes / BLOCK;
    match i32::try_from(blocks) {
        Ok(whole) if bytes % BLOCK == 0 && (LEAST..=MOST).contains(&blocks) => Ok(whole),
        _ => Err(Invalid {
            argument: "shared_buffers",
            value: bytes,
            allowed: format!("It is a multiple of {BLOCK} bytes from {} to {}.", LEAST * BLOCK, MOST * BLOCK),
        }),
    }
}

/// Within the bounds of `max_connections` (guc_tables.c, `MAX_BACKENDS`).
fn connections(count: i32) -> Result<i32, Invalid> {
    const MOST: i32 = 0x3FFFF;
    if (1..=MOST).contains(&count) {
        return Ok(count);
    }
    let allowed = format!("It is a number from 1 to {MOST}.");
    Err(Invalid { argument: "max_connections", value: count.into(), allowed })
}

/// A size that this machine has pages of.
fn page_size(bytes: i64) -> Result<PageSize, Invalid> {
    let sizes = pool::sizes(&Root::live()).unwrap_or_default();
    let wanted = u64::try_from(bytes).ok().and_then(PageSize::new);
    wanted.filter(|size| sizes.contains(size)).ok_or_else(|| {
        let sizes: Vec<_> = sizes.iter().map(|size| size.bytes().0.to_string()).collect();
        let allowed = match sizes.as_slice() {
            [] => "This machine has no huge pages.".to_owned(),
            _ => format!("This machine has huge pages of {} bytes.", sizes.join(", ")),
        };
        Invalid { argument: "huge_page_size", value: bytes, allowed }
    })
}
