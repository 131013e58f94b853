//! `hugepage_history`: the records of the history file.

use std::iter;
use std::time::SystemTime;

use hugepage_assess::history::Record;
use hugepage_kernel::notes::Notes;
use hugepage_server::history::HistoryError;
use hugepage_server::history::stored::StoredRecords;
use humantime::parse_rfc3339;
use pgrx::datum::TimestampWithTimeZone;
use pgrx::pg_sys;
use pgrx::prelude::*;

use super::convert::text;
use super::rows;
use crate::{history, memory, settings, shmem};

#[pg_extern(sql = false)]
fn hugepage_history(call: pg_sys::FunctionCallInfo) {
    rows::return_rows(call, include_str!("history.sql"), |notes| {
        records(notes).map(|record| {
            let before = record.lost.as_ref();
            (
                time(&record.recorded_at),
                record.event.name(),
                record.generation,
                time(&record.postmaster_start),
                text(record.server_version.clone()),
                text(record.host.clone()),
                record.boot_id.clone().map(text),
                record.landed_in.to_string(),
                number(record.page_size),
                number(record.shared_memory),
                number(record.pages_needed),
                number(record.nr_hugepages),
                number(record.free_hugepages),
                number(record.resv_hugepages),
                number(record.surplus_hugepages),
                number(record.page_tables),
                record.restart_outlook.to_string(),
                record.cause.map(|cause| cause.to_string()),
                before.is_some(),
                record.detail.clone().map(text),
                before.and_then(|before| time(&before.recorded_at)),
                before.map(|before| before.landed_in.to_string()),
                before.and_then(|before| number(before.page_size)),
                before.map(|before| before.restart_outlook.to_string()),
            )
        })
    })
}

/// The records of this cluster on this machine, the oldest first. The file is read once to count them and once for the rows,
/// so that no session ever holds all of it.
fn records(notes: &mut Notes) -> impl Iterator<Item = Record> + use<> {
    if shmem::generation().is_none() {
        notes.add("nothing is recorded: pg_hugepages is not in shared_preload_libraries");
    }
    let instance = history::instance(notes);
    let is_ours = move |record: &Record| record.instance.is_past_of(&instance);
    let (found, count) = match counted(&is_ours, notes) {
        Ok(found) => found,
        Err(error) => {
            notes.add(error.to_string());
            (None, 0)
        }
    };
    // The file may have more records than the setting until the worker trims it, and it grows meanwhile.
    let surplus = count.saturating_sub(settings::history_size());
    let readable = |record: Result<Record, HistoryError>| record.map_err(|error| warning!("{error}")).ok();
    let records = found.into_iter().flat_map(|mut records| iter::from_fn(move || next(&mut records)));
    records.map_while(readable).filter(is_ours).skip(surplus).take(count - surplus)
}

/// The history, at its beginning, and how many of its records are `wanted`.
fn counted(
    wanted: impl Fn(&Record) -> bool,
    notes: &mut Notes,
) -> Result<(Option<StoredRecords>, usize), HistoryError> {
    let Some(mut records) = history::file().records()? else { return Ok((None, 0)) };
    let mut count = 0;
    while let Some(record) = next(&mut records) {
        count += usize::from(wanted(&record?));
    }
    if records.damaged > 0 {
        notes.add(format!("damaged lines in the history file: {}", records.damaged));
    }
    records.rewind(u64::MAX)?;
    Ok((Some(records), count))
}

/// Reads the next record; `None` at the end of the file. Ends the query if it was cancelled or memory is short.
fn next(records: &mut StoredRecords) -> Option<Result<Record, HistoryError>> {
    pgrx::check_for_interrupts!();
    memory::check_reserve();
    records.next()
}

fn number(value: Option<u64>) -> Option<i64> {
    value.map(|value| i64::try_from(value).unwrap_or(i64::MAX))
}

/// Converts an RFC 3339 time to microseconds since 2000; NULL if it is not a valid time.
fn time(text: &str) -> Option<TimestampWithTimeZone> {
    const YEAR_2000: i64 = 946_684_800_000_000;
    let since_1970 = parse_rfc3339(text).ok()?.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    TimestampWithTimeZone::try_from(i64::try_from(since_1970.as_micros()).ok()? - YEAR_2000).ok()
}
