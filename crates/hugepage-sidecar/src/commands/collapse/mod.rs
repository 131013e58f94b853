//! `collapse`: transparent huge pages for a running PostgreSQL server, range by range.
//!
//! ```text
//! $ hugepage-sidecar collapse --instance /var/lib/postgresql/15/main --dry-run
//! /var/lib/postgresql/15/main: 512 MB of shared memory in 255 ranges of 2 MB, 26 processes.
//! Memory: it takes at most 379 MB more; 20.9 GB may be taken.
//! Time: about 3 s.
//! Page tables: 25.1 MB now, about 7.4 MB afterwards.
//! ```

mod decide;
mod madvise;
mod ranges;
mod server;

use std::collections::BTreeSet;
use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use clap::Args;
use hugepage_host::{IN_CONTAINER, Instance, Survey, decide, read};
use hugepage_kernel::{Bytes, Notes, Root};

use self::decide::{Candidate, tables_after, time};
use self::ranges::{End, Ranges};
use self::server::{CollapsibleServer, Process};
use crate::commands::survey::{AccountOptions, within};
use crate::exit::Exit;
use crate::output::{self, complain, escape, say};
use crate::privileges;
use crate::signals::SignalTimer;

/// After so many ranges their own time tells how long the rest takes.
const MEASURED: usize = 20;
/// The time between two lines of progress.
const PROGRESS: Duration = Duration::from_millis(500);
const MIB: u64 = 1 << 20;

/// Options of `collapse`.
#[derive(Debug, Args)]
pub struct CollapseOptions {
    /// The instance: its data directory, as `status` shows it
    #[arg(long, value_name = "NAME")]
    instance: String,
    /// Stop before less than this share of the host, of a NUMA node or of a memory limit is available, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 10, value_parser = within::<u32, 0, 100>)]
    reserve_percent: u32,
    /// Collapse at most so many MB in a second
    #[arg(long, value_name = "MB", value_parser = within::<u64, 1, 1_000_000>)]
    max_rate: Option<u64>,
    /// Let ranges go to other NUMA nodes than their pages are on
    #[arg(long)]
    numa_any: bool,
    /// Begin without a question; required where there is no terminal to ask on
    #[arg(long)]
    yes: bool,
    /// Print the plan, and change nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    accounts: AccountOptions,
}

/// Runs the command.
pub fn run(root: &Root, options: &CollapseOptions) -> anyhow::Result<Exit> {
    if !root.is_live() || !(options.yes || options.dry_run || io::stdin().is_terminal()) {
        complain!(
            "hugepage-sidecar: collapse changes this host: leave out --root, and add --yes where there is no terminal"
        );
        return Ok(Exit::Usage);
    }
    options.accounts.check(root)?;
    let snapshot = read(root, &options.accounts.service_account, None);
    let survey = decide(&snapshot, options.reserve_percent);
    let instance = only(&survey, &options.instance)?;
    let mut notes = Notes::default();
    let (candidate, server) = server::read(root, instance, options.reserve_percent, &mut notes);
    // A file that could not be read might have been a reason.
    let refusals = [candidate.refusals(options.numa_any), notes.into_vec()].concat();
    ensure!(
        refusals.is_empty(),
        "nothing was touched: {}",
        refusals.join("; ")
    );
    let server = server.context("nothing was touched: its postmaster could not be read")?;
    plan(&options.instance, &candidate, &server)?;
    if let Some(why) = server.brake(madvise::probe_takes(server.size)) {
        bail!("nothing was touched: {why}");
    }
    if options.dry_run {
        return Ok(Exit::Ok);
    }
    if !options.yes {
        output::confirm("Collapse it?")?;
    }
    let mut timer = SignalTimer::new(&Arc::default()).context("could not catch signals")?;
    let before = server.page_tables();
    let work = || collapse(root, options.max_rate, &candidate, &server, &mut timer);
    let done = privileges::as_owner(server.uid, server.gid, work)??;
    report(&candidate, &done);
    say!(
        "Page tables: {before} before, {} now.",
        server.page_tables()
    );
    if done.collapsed.is_empty() || done.end != End::Done {
        return Ok(Exit::Warning);
    }
    say!("Nothing reserves these pages, and a restart loses them: see `hugepage-sidecar status`.");
    Ok(Exit::Ok)
}

/// The one instance with this name.
fn only<'a>(survey: &'a Survey, name: &str) -> anyhow::Result<&'a Instance> {
    ensure!(!survey.host.is_in_container, IN_CONTAINER);
    let named = survey.instances.iter().filter(|one| one.id.name == name);
    if let [one] = named.collect::<Vec<_>>()[..] {
        return Ok(one);
    }
    let all = survey
        .instances
        .iter()
        .map(|one| escape::line(&one.id.name).into_owned());
    let strangers = survey.host.strangers.first.iter();
    let strangers = strangers.map(|one| format!("{one}, which is not touched"));
    let all = all.chain(strangers).collect::<Vec<_>>().join("; ");
    bail!("not one instance has the name \"{name}\"; seen here: {all}")
}

/// Says what a collapse would do.
fn plan(name: &str, candidate: &Candidate, server: &CollapsibleServer<'_>) -> anyhow::Result<()> {
    let rooms = server.rooms()?;
    let left = rooms.iter().map(|room| room.left(server.reserve_percent));
    let left = left.min().unwrap_or_default();
    let processes = server.processes();
    let (ranges, most) = (candidate.ranges().len(), candidate.most());
    let after = processes.iter().map(|(_, status)| {
        tables_after(
            status.page_tables.unwrap_or_default(),
            status.rss_shmem.unwrap_or_default(),
        )
    });
    say!(
        "{}: {} of shared memory, {ranges} ranges, {} processes.",
        escape::line(name),
        server.mapping.size(),
        processes.len()
    );
    say!("Memory: it takes at most {most} more, and stops where memory ends; {left} may be taken.");
    say!("Time: about {:.1?}.", time(ranges, processes.len()));
    say!(
        "Page tables: {} now, about {} afterwards.",
        server.page_tables(),
        after.sum::<Bytes>()
    );
    Ok(())
}

/// The probe, the postmaster, and on kernels that free its page tables alone all other processes. In the thread of the owner.
fn collapse(
    root: &Root,
    max_rate: Option<u64>,
    candidate: &Candidate,
    server: &CollapsibleServer<'_>,
    timer: &mut SignalTimer,
) -> anyhow::Result<Ranges> {
    let frees_all = madvise::frees_all_tables(root, server.size)
        .context("nothing was touched: this kernel did not collapse memory of this program")?;
    let shortest = max_rate.map_or(Duration::ZERO, |rate| {
        Duration::from_secs_f64(server.size as f64 / (rate * MIB) as f64)
    });
    let mut ask = |pid: i32, starts: &[u64], after: &mut dyn FnMut(&Ranges)| {
        let mut process = Process {
            server,
            pid,
            pidfd: server.open(pid)?,
            timer: &mut *timer,
        };
        Some(ranges::collapse(&mut process, starts, shortest, after))
    };
    let starts = candidate.ranges();
    let before = server.page_tables();
    let mut shown = Instant::now();
    let mut progress = |so_far: &Ranges| {
        if io::stderr().is_terminal() && shown.elapsed() >= PROGRESS {
            shown = Instant::now();
            show(so_far, starts.len(), server, before);
        }
    };
    let mut done = ask(server.pid, &starts, &mut progress)
        .context("nothing was touched: the server has ended, or has mapped its memory anew")?;
    let mut collapsed = BTreeSet::from_iter(std::mem::take(&mut done.collapsed));
    let mut asked = BTreeSet::from([server.pid]);
    let mut new = Vec::new();
    while !frees_all && done.end == End::Done {
        if new.is_empty() {
            new = server.processes();
            new.retain(|(pid, _)| asked.insert(*pid));
        }
        let Some((pid, _)) = new.pop() else {
            break;
        };
        // Of a range that the postmaster has not touched this kernel tells it EINVAL, and makes the huge page.
        let Some(of_it) = ask(pid, &starts, &mut |_| ()) else {
            continue;
        };
        collapsed.extend(of_it.collapsed);
        // A session that ends meanwhile ends nothing else.
        if server.open(pid).is_some() {
            done.end = of_it.end;
        }
    }
    done.refused = done.refused.min(starts.len() - collapsed.len());
    done.collapsed = collapsed.into_iter().collect();
    Ok(done)
}

/// A line on the terminal that the next one replaces.
fn show(so_far: &Ranges, ranges: usize, server: &CollapsibleServer<'_>, before: Bytes) {
    let asked = so_far.times.len();
    let took: Duration = so_far.times.iter().sum();
    let left = if asked < MEASURED {
        time(ranges - asked, server.processes().len())
    } else {
        took.mul_f64((ranges - asked) as f64 / asked as f64)
    };
    let longest = so_far.times.iter().max().copied().unwrap_or_default();
    let saved = before.saturating_sub(server.page_tables());
    let _ = write!(
        io::stderr(),
        "\r\x1b[K{asked} of {ranges} ranges, {saved} of page tables saved, {left:.0?} left, {longest:.0?} at most\r"
    );
}

/// Says what was done, and why it ended.
fn report(candidate: &Candidate, done: &Ranges) {
    let mut times = done.times.clone();
    times.sort_unstable();
    let median = times.get(times.len() / 2).copied().unwrap_or_default();
    say!(
        "{} of {} ranges are huge pages now; one took {median:.0?} (median), {:.0?} at most.",
        done.collapsed.len(),
        candidate.ranges().len(),
        times.last().copied().unwrap_or_default()
    );
    if done.refused > 0 {
        say!(
            "{} ranges: nothing of them is resident, or the kernel can't collapse them (EINVAL).",
            done.refused
        );
    }
    if done.busy > 0 {
        say!(
            "{} ranges: their pages were in use (EAGAIN); call it again for them.",
            done.busy
        );
    }
    match &done.end {
        End::Done => {}
        End::Interrupted => complain!("hugepage-sidecar: interrupted; what is done stays"),
        End::Stopped(why) => complain!("hugepage-sidecar: stopped: {why}; what is done stays"),
    }
}
