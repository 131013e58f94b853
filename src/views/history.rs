//! `hugepage_history`: the records of the history file.

use std::time::SystemTime;
use std::{io, iter};

use hugepage_assess::history::Record;
use hugepage_assess::{columns, row_of};
use hugepage_kernel::Notes;
use hugepage_server::history::stored::StoredRecords;
use humantime::parse_rfc3339;
use pgrx::prelude::*;

use super::rows;
use crate::{history, memory, settings, shmem};

#[pg_extern(sql = false)]
fn hugepage_history(call: pg_sys::FunctionCallInfo) {
    rows::return_rows(call, columns::HISTORY, |notes| {
        records(notes).map(|record| {
            let before = record.lost.as_ref();
            row_of! { HISTORY;
                recorded_at: time(&record.recorded_at),
                event: record.event.name(),
                generation: record.generation,
                postmaster_start: time(&record.postmaster_start),
                server_version: record.server_version,
                host: record.host,
                boot_id: record.boot_id,
                landed_in: record.landed_in,
                page_size: record.page_size,
                shared_memory: record.shared_memory,
                pages_needed: record.pages_needed,
                nr_hugepages: record.nr_hugepages,
                free_hugepages: record.free_hugepages,
                resv_hugepages: record.resv_hugepages,
                surplus_hugepages: record.surplus_hugepages,
                page_tables_host: record.page_tables,
                restart_outlook: record.restart_outlook,
                cause: record.cause,
                regression: before.is_some(),
                detail: record.detail,
                was_recorded_at: before.and_then(|before| time(&before.recorded_at)),
                was_landed_in: before.map(|before| before.landed_in),
                was_page_size: before.and_then(|before| before.page_size),
                was_restart_outlook: before.map(|before| before.restart_outlook),
            }
        })
    })
}

/// The records of this cluster on this machine, the oldest first. The file is read twice, so that no session holds all of it.
fn records(notes: &mut Notes) -> impl Iterator<Item = Record> + use<> {
    if shmem::generation().is_none() {
        notes.add("nothing is recorded: pg_hugepages is not in shared_preload_libraries");
    }
    let instance = history::instance(notes);
    let is_ours = move |record: &Record| record.instance.is_past_of(&instance);
    let counted = counted(&is_ours, notes);
    let (found, count) = notes.keep(counted).unwrap_or_default();
    // The file may have more records than the setting until the worker trims it, and it grows meanwhile.
    let surplus = count.saturating_sub(settings::history_size());
    let readable = |record: io::Result<Record>| record.map_err(|error| warning!("{error}")).ok();
    let records = found
        .into_iter()
        .flat_map(|mut records| iter::from_fn(move || next(&mut records)));
    records
        .map_while(readable)
        .filter(is_ours)
        .skip(surplus)
        .take(count - surplus)
}

/// The history, at its beginning, and how many of its records are `wanted`.
fn counted(
    wanted: impl Fn(&Record) -> bool,
    notes: &mut Notes,
) -> io::Result<(Option<StoredRecords>, usize)> {
    let Some(mut records) = history::file().records()? else {
        return Ok((None, 0));
    };
    let mut count = 0;
    while let Some(record) = next(&mut records) {
        count += usize::from(wanted(&record?));
    }
    if records.damaged > 0 {
        notes.add(format!(
            "damaged lines in the history file: {}",
            records.damaged
        ));
    }
    records.rewind(u64::MAX)?;
    Ok((Some(records), count))
}

/// Reads the next record; `None` at the end of the file. Ends the query if it was cancelled or memory is short.
fn next(records: &mut StoredRecords) -> Option<io::Result<Record>> {
    let line = || {
        pgrx::check_for_interrupts!();
        memory::check_reserve();
        records.line()
    };
    iter::from_fn(line).find_map(Result::transpose)
}

/// Converts an RFC 3339 time to microseconds since 2000; NULL if it is not a valid time.
fn time(text: &str) -> Option<i64> {
    const YEAR_2000: i64 = 946_684_800_000_000;
    let since_1970 = parse_rfc3339(text)
        .ok()?
        .duration_since(SystemTime::UNIX_EPOCH)
        .ok()?;
    Some(i64::try_from(since_1970.as_micros()).ok()? - YEAR_2000)
}
