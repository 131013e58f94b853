//! The assessment of this server: the state of it and of its host, and what the configuration on disk asks for.

use hugepage_assess::assessment::Status;
use hugepage_assess::model::{CrashRecovery, CurrentStart, Demand, Facts, Landing, OtherPool, Pending};
use hugepage_kernel::memory::pool;
use hugepage_kernel::next_boot::PoolAtBoot;
use hugepage_kernel::{Notes, Pages, Root};
use hugepage_server::CgroupView;
use hugepage_server::server::{observe, pool_state};
use hugepage_start::TwoStarts;
use humantime::format_rfc3339_seconds;

use crate::found::Answer;
use crate::next_start::NextRestart;
use crate::{found, server, settings, shmem, standby};

/// For a preloaded library without its worker.
const NO_WORKER: &str = "no worker runs: nothing is watched, and nobody asks what a restart and the next boot give; you may need \
                         to increase max_worker_processes and restart";

/// The status now, from /proc, /sys and the data directory, whatever the number of processes and the size of memory.
pub fn now(root: &Root, notes: &mut Notes) -> Status {
    let primary = standby::primary();
    let answer = NextRestart::now(root).answer(primary.as_ref(), notes);
    let status = assess(root, answer, Some(standby::crash_recovery(primary.as_ref())), notes);
    status.notes_on_outlook().for_each(|note| notes.add(note));
    if shmem::lacks_worker() {
        notes.add(NO_WORKER);
    }
    status
}

/// The status with the answer of the server's program; `None` if the next start asks for what the running one has. `at_crash`: whether the
/// server would recover after a crash; `None` if nothing but the next start is of interest, which is a change whatever it asks for.
pub fn assess(root: &Root, answer: Option<Answer>, at_crash: Option<CrashRecovery>, notes: &mut Notes) -> Status {
    let mapping = server::main_mapping(root, notes);
    Status::assess(server::with_hierarchy(root, notes, |view, notes| {
        let own = observe(root, server::requested_memory(), mapping, settings::reserve_percent(), view, notes);
        let default = own.meminfo.as_ref().and_then(|meminfo| meminfo.huge_page_size);
        let changed = |demand: Demand, notes: &mut Notes| {
            let size = demand.requested.huge_page_size.or(default);
            let found = pool_state(root, size, own.meminfo.as_ref(), view, notes);
            Pending::Changed(demand, found)
        };
        let pending = pending(answer, at_crash.is_some(), &own.current_start(), changed, notes);
        let other_pools = other_pools(root, &own, &pending, view);
        let next_boot = own.pool_state.huge_page_size.filter(|_| at_crash.is_some()).and_then(found::boot);
        let next_boot = next_boot.map(|(pool, time)| {
            notes.add(format!("what sets the pool at the next boot was read at {}", format_rfc3339_seconds(time)));
            if let PoolAtBoot::Unknown(why) = &pool {
                notes.add(format!("what the next boot gives is unknown: {why}"));
            }
            pool
        });
        Facts {
            other_pools,
            pending,
            past: shmem::past(),
            crash_recovery: at_crash.unwrap_or_default(),
            next_boot,
            ..own
        }
    }))
}

/// The pools of other sizes with free pages, where the server may need one: not where it has all that it asks for.
fn other_pools(root: &Root, own: &Facts, pending: &Pending, view: CgroupView<'_>) -> Vec<OtherPool> {
    if own.landing() == Landing::Hugetlb && *pending == Pending::Unchanged {
        return Vec::new();
    }
    let has_free = |size| pool::counter(root, size, "free_hugepages").is_ok_and(|free| free > Pages(0));
    let sizes = pool::sizes(root).unwrap_or_default().into_iter();
    let others = sizes.filter(|size| Some(*size) != own.pool_state.huge_page_size && has_free(*size));
    // What is unknown of these limits is unknown of the server's own, which has the notes.
    let state = |size| pool_state(root, Some(size), own.meminfo.as_ref(), view, &mut Notes::default());
    others.map(|size| OtherPool { pool_state: state(size), others_lack: None, can_be_set: true }).collect()
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
        Some(Answer::Starts(TwoStarts { with_options: demand, without: None })) => {
            if or_unchanged && current.is_met_by(&demand) { Pending::Unchanged } else { changed(demand, notes) }
        }
        Some(Answer::Starts(TwoStarts { with_options, without: Some((without, note)) })) => {
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
