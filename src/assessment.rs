//! The assessment of this server: the state of it and of its host, and what the configuration on disk asks for.

use hugepage_assess::assessment::Status;
use hugepage_assess::model::{CrashRecovery, CurrentStart, Demand, Facts, Pending};
use hugepage_kernel::next_boot::PoolAtBoot;
use hugepage_kernel::{Notes, PageSize, ROOT};
use hugepage_server::server::{observe, pool_state};
use hugepage_start::TwoStarts;
use humantime::format_rfc3339_seconds;

use crate::found::Answer;
use crate::next_start::{self, NextRestart};
use crate::{server, settings, shared, shmem, standby, transparent};

/// For a preloaded library without its worker.
const NO_WORKER: &str = "no worker runs: nothing is watched, and nobody asks what a restart and the next boot give; you may need \
                         to increase max_worker_processes and restart";

/// The status now, from /proc, /sys and the data directory, whatever the number of processes and the size of memory.
pub fn now(notes: &mut Notes) -> Status {
    let primary = standby::primary();
    let answer = NextRestart::now().answer(primary.as_ref());
    let status = assess(
        answer,
        Some(standby::crash_recovery(primary.as_ref())),
        notes,
    );
    status.notes_on_outlook().for_each(|note| notes.add(note));
    if shared::lacks_worker() {
        notes.add(NO_WORKER);
    }
    status
}

/// The status with the answer of the server's program; `None` if the next start asks for what the running one has. `at_crash`: whether the
/// server would recover after a crash; `None` if nothing but the next start is of interest, which is a change whatever it asks for.
pub fn assess(
    answer: Option<Answer>,
    at_crash: Option<CrashRecovery>,
    notes: &mut Notes,
) -> Status {
    let mapping = server::main_mapping(notes);
    Status::assess(server::with_hierarchy(notes, |view, notes| {
        let own = observe(
            &ROOT,
            server::requested_memory(),
            mapping,
            transparent::known,
            settings::reserve_percent(),
            view,
            notes,
        );
        let changed = |demand: Demand, notes: &mut Notes| {
            let size = demand
                .requested
                .huge_page_size
                .or(own.meminfo.huge_page_size);
            let found = pool_state(
                &ROOT,
                size,
                &demand.requested,
                own.segment.as_ref(),
                Some(&own.meminfo),
                view,
                notes,
            );
            Pending::Changed(demand, found)
        };
        let pending = pending(
            answer,
            at_crash.is_some(),
            &own.current_start(),
            changed,
            notes,
        );
        let size = own.pool_state.huge_page_size;
        let next_boot = size
            .filter(|_| at_crash.is_some())
            .and_then(|size| next_boot(size, notes));
        Facts {
            pending,
            past: shmem::past(),
            crash_recovery: at_crash.unwrap_or_default(),
            huge_pages_is_option: next_start::is_option("huge_pages"),
            next_boot,
            ..own
        }
    }))
}

/// What the next boot gives the pool of `size`, with notes; `None` if nobody has looked.
fn next_boot(size: PageSize, notes: &mut Notes) -> Option<PoolAtBoot> {
    let (pool, time) = shared::boot(size)?;
    notes.add(format!(
        "what sets the pool at the next boot was read at {}",
        format_rfc3339_seconds(time)
    ));
    if let Some(why) = pool.unknown() {
        notes.add(format!("what the next boot gives is unknown: {why}"));
    }
    Some(pool)
}

/// What the answer about the next start comes to. `changed`: the start with a demand that the running server does not meet.
fn pending(
    answer: Option<Answer>,
    or_unchanged: bool,
    current: &CurrentStart<'_>,
    changed: impl Fn(Demand, &mut Notes) -> Pending,
    notes: &mut Notes,
) -> Pending {
    match answer {
        None => Pending::Unchanged,
        Some(Answer::Starts(TwoStarts {
            with_options: demand,
            without: None,
        })) => {
            if or_unchanged && current.is_met_by(&demand) {
                Pending::Unchanged
            } else {
                changed(demand, notes)
            }
        }
        Some(Answer::Starts(TwoStarts {
            with_options,
            without: Some((without, note)),
        })) => {
            let starts = [with_options, without].map(|demand| changed(demand, notes));
            current.start_of_both(starts).unwrap_or_else(|| {
                notes.add(note);
                Pending::Unknown
            })
        }
        Some(Answer::Refuses(error)) => Pending::Refused(error),
        Some(Answer::Unknown(why)) => {
            notes.add(why);
            Pending::Unknown
        }
    }
}
