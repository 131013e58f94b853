//! One pass over the processes of a PostgreSQL server: the faults and the memory of each.

use hugepage_kernel::notes::Notes;
use hugepage_kernel::proc::process::{self, ProcessStatus, Processes};
use hugepage_kernel::{ReadError, Root};

use crate::model::{FaultSample, ProcessSample};

/// The number of new processes that are read at a time.
const MAX_NEWCOMERS: usize = 16;
/// The number of new processes that are kept.
const MAX_SEEN: usize = 256;

/// Reads /proc/PID/status and stat of `postmaster` and of its children. `check` is called before each process. A process
/// that ends meanwhile is left out. The status of one that has been idle since the pass `before` is not read again. An
/// error if the postmaster itself could not be read.
pub fn take(
    root: &Root,
    postmaster: i32,
    before: Option<&FaultSample>,
    mut check: impl FnMut(),
    notes: &mut Notes,
) -> Result<FaultSample, ReadError> {
    let path = format!("/proc/{postmaster}/stat");
    let gone = || root.content(&path, "the server has ended");
    let server = Processes::open(root);
    let own = server.stat(postmaster)?.ok_or_else(gone)?;
    let mut pids = process::children(root, postmaster)?;
    pids.push(postmaster);
    pids.sort_unstable();
    pids.dedup();
    let mut sample =
        FaultSample { processes: Vec::with_capacity(pids.len()), faults_of_ended: own.children_minor_faults };
    for pid in pids {
        check();
        let read = read_process(&server, postmaster, pid, before);
        sample.processes.extend(notes.keep(read).flatten());
    }
    Ok(sample)
}

/// Adds to `seen` the newest processes that were not there at the pass `before`, or what they have done since they were
/// added. Those that come and go between two passes are seen this way.
pub fn see_newcomers(
    root: &Root,
    postmaster: i32,
    before: &FaultSample,
    seen: &mut Vec<ProcessSample>,
    mut check: impl FnMut(),
    notes: &mut Notes,
) {
    let server = Processes::open(root);
    let children = notes.keep(process::children(root, postmaster)).unwrap_or_default();
    // The kernel lists them by age.
    for &pid in children.iter().rev().filter(|&&pid| before.process(pid).is_none()).take(MAX_NEWCOMERS) {
        check();
        let Some(process) = notes.keep(read_process(&server, postmaster, pid, None)).flatten() else { continue };
        if let Some(index) = seen.iter().position(|known| known.is_same(&process)) {
            seen[index] = process;
        } else if seen.len() < MAX_SEEN {
            seen.push(process);
        }
    }
}

/// A process of the server; `None` if it is gone, or another process has its pid now.
fn read_process(
    server: &Processes<'_>,
    postmaster: i32,
    pid: i32,
    before: Option<&FaultSample>,
) -> Result<Option<ProcessSample>, ReadError> {
    let Some(stat) = server.stat(pid)? else { return Ok(None) };
    let status = match before.and_then(|before| before.idle_since(pid, &stat)) {
        Some(status) => Some(status),
        None => server.status(pid)?,
    };
    let is_of_server = |status: &ProcessStatus| pid == postmaster || status.parent == Some(postmaster);
    Ok(status.filter(is_of_server).map(|status| ProcessSample { pid, stat, status }))
}

/// The processes of a sample that serve a client, by their titles, as a program outside of the server sees it.
pub fn sessions(root: &Root, sample: &FaultSample) -> Vec<i32> {
    let is_session = |pid: i32| process::title(root, pid).ok().flatten().is_some_and(|title| is_of_session(&title));
    sample.processes.iter().map(|process| process.pid).filter(|&pid| is_session(pid)).collect()
}

/// A session's title names its client (ps_status.c): `[local]`, or an address and a port, `10.0.0.1(41234)`.
fn is_of_session(title: &str) -> bool {
    let is_client = |word: &str| {
        let port = word.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')'));
        word == "[local]" || port.is_some_and(|port| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()))
    };
    title.contains(": ") && title.split_ascii_whitespace().any(is_client)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    fn write_below(tree: &Path, path: &str, text: &str) {
        let path = tree.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn sessions_by_their_titles() {
        for title in ["postgres: alice shop [local] idle", "postgres: main: alice shop 10.0.0.1(41234) SELECT"] {
            assert!(is_of_session(title), "{title}");
        }
        for title in ["postgres: checkpointer ", "postgres: main: io worker 0", "/usr/bin/postgres -D /x(1)/data", ""] {
            assert!(!is_of_session(title), "{title}");
        }
    }

    #[test]
    fn a_session_between_two_passes() {
        let tree = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| write_below(tree.path(), path, text);
        let process = |pid: i32, faults: u64, start: u64| {
            let stat = format!("{pid} (postgres) S 1 1 1 0 -1 0 {faults} 0 0 0 1 2 0 0 20 0 1 0 {start} 4096 3\n");
            write(&format!("proc/{pid}/stat"), &stat);
            write(&format!("proc/{pid}/status"), "PPid:\t7\nRssShmem:\t8 kB\n");
        };
        process(7, 1, 1);
        process(8, 1, 1);
        process(9, 50, 90);
        write("proc/7/task/7/children", "8 ");
        let root = Root::at(tree.path());
        let mut notes = Notes::default();
        let before = take(&root, 7, None, || {}, &mut notes).unwrap();
        write("proc/7/task/7/children", "8 9 ");
        let mut seen = Vec::new();
        let mut look = || {
            see_newcomers(&root, 7, &before, &mut seen, || {}, &mut notes);
            seen.iter().map(|one| (one.pid, one.stat.start_ticks, one.stat.minor_faults)).collect::<Vec<_>>()
        };
        assert_eq!(look(), [(9, 90, 50)]);
        // It goes on; then another process has its pid, and then that one is gone.
        process(9, 60, 90);
        assert_eq!(look(), [(9, 90, 60)]);
        process(9, 5, 95);
        assert_eq!(look(), [(9, 90, 60), (9, 95, 5)]);
        write("proc/7/task/7/children", "8 ");
        assert_eq!(look().len(), 2);
    }

    #[test]
    fn a_pass_over_a_server() {
        let tree = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| write_below(tree.path(), path, text);
        let stat = |pid: i32, faults: u64, of_children: u64| {
            format!("{pid} (post gres) S 1 1 1 0 -1 4194304 {faults} {of_children} 0 0 1 2 0 0 20 0 1 0 900 4096 3\n")
        };
        write("proc/7/task/7/children", "8 9 10 ");
        write("proc/7/stat", &stat(7, 100, 5000));
        write("proc/7/status", "PPid:\t1\nVmPTE:\t100 kB\nRssShmem:\t8 kB\n");
        write("proc/8/stat", &stat(8, 200, 0));
        write("proc/8/status", "PPid:\t7\nVmPTE:\t200 kB\nRssShmem:\t400 kB\n");
        // 9 has ended, and 10 is another process now.
        write("proc/10/stat", &stat(10, 300, 0));
        write("proc/10/status", "PPid:\t1\nVmPTE:\t200 kB\nRssShmem:\t400 kB\n");
        write("proc/8/cmdline", "postgres: alice shop [local] idle\0");
        let root = Root::at(tree.path());
        let (mut notes, mut checks) = (Notes::default(), 0);
        let sample = take(&root, 7, None, || checks += 1, &mut notes).unwrap();
        let seen: Vec<_> = sample.processes.iter().map(|one| (one.pid, one.stat.minor_faults)).collect();
        assert_eq!((seen, sample.faults_of_ended, checks), (vec![(7, 100), (8, 200)], 5000, 4));
        assert_eq!(sessions(&root, &sample), [8]);
        assert!(take(&root, 11, None, || {}, &mut notes).is_err());
        // 8 was idle, so that its status is still what it was; 7 was not.
        write("proc/7/stat", &stat(7, 101, 5000));
        write("proc/7/status", "PPid:\t1\nVmPTE:\t120 kB\nRssShmem:\t12 kB\n");
        write("proc/8/status", "PPid:\t7\nVmPTE:\t999 kB\n");
        let tables = |sample: &FaultSample| {
            sample.processes.iter().map(|one| one.status.page_tables.unwrap().0 >> 10).collect::<Vec<_>>()
        };
        let again = take(&root, 7, Some(&sample), || {}, &mut notes).unwrap();
        assert_eq!(tables(&again), [120, 200]);
        write("proc/8/stat", &stat(8, 201, 0));
        assert_eq!(tables(&take(&root, 7, Some(&again), || {}, &mut notes).unwrap()), [120, 999]);
    }
}
