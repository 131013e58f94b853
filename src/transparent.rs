//! The transparent huge pages of the main segment. The postmaster's page tables tell them, and the worker alone walks these, at each
//! sample; sessions take what it has found.

use hugepage_facts::TransparentPages;
use hugepage_kernel::memory::meminfo::Meminfo;
use hugepage_kernel::proc::process::{self, children};
use hugepage_kernel::{Bytes, Mapping, Notes, ROOT, ReadError};
use hugepage_server::transparent::{has_transparent_pages, transparent_pages};

use crate::{log, server, shared};

/// The note where nobody has looked.
const UNREAD: &str = "some shared memory of this host is in transparent huge pages; whether that of this server is, its worker reads at \
                      the next sample";

/// What is known of those of `mapping`, the main segment, on a host that has some; `None` and a note if nothing is.
pub fn known(mapping: &Mapping, meminfo: &Meminfo, notes: &mut Notes) -> Option<TransparentPages> {
    if server::own_pid() == server::postmaster_pid() {
        return notes.keep(read(mapping, meminfo)).flatten();
    }
    let known = shared::transparent();
    if known.is_none() {
        notes.add(UNREAD);
    }
    known
}

/// Reads them for all processes; in the worker.
pub fn look() {
    let meminfo = Meminfo::read(&ROOT).ok().filter(has_transparent_pages);
    let found = meminfo.and_then(|meminfo| {
        let mapping = server::main_mapping(&mut Notes::default())?;
        log::ok_or_log("read the postmaster's smaps", read(&mapping, &meminfo))?
    });
    shared::set_transparent(found);
}

fn read(mapping: &Mapping, meminfo: &Meminfo) -> Result<Option<TransparentPages>, ReadError> {
    let Some(postmaster) = server::postmaster_in_proc() else {
        return Ok(None);
    };
    let pids = children(&ROOT, server::postmaster_pid())?;
    let resident = pids
        .into_iter()
        .filter_map(|pid| process::status(&ROOT, pid).ok()??.rss_shmem)
        .max();
    transparent_pages(
        &ROOT,
        &postmaster,
        mapping,
        resident.unwrap_or(Bytes(0)),
        meminfo,
    )
}
