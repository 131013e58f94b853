//! Counts the page tables that processes of a PostgreSQL server have for everything but its main segment: huge pages leave
//! these. Two processes are counted: the others of their kind have nearly as many. How long it takes depends on the private
//! memory of these two, some 0.5 ms, and not on the size of shared memory.

use std::collections::BTreeSet;

use hugepage_assess::assessment::page_tables::{KNOWS_LEVELS, of_lowest, range_of_lowest};
use hugepage_kernel::mapping::maps;
use hugepage_kernel::mapping::pagemap::PageMap;
use hugepage_kernel::notes::Notes;
use hugepage_kernel::proc::process::{Processes, unless_gone};
use hugepage_kernel::{Bytes, PageSize, ReadError, Root};
use hugepage_server::segments::may_be_main;

use crate::model::{CountedProcess, FaultSample, PrivateTables, ProcessSample};

/// The number of processes of a kind that are tried: each may end meanwhile.
const MAX_TRIES: usize = 4;
/// The number of ranges of one page table each that are looked into: 32 GB of addresses with pages of 4 kB.
const MAX_RANGES: usize = 1 << 14;
/// Addresses from here on are the kernel's, as is the page `[vsyscall]` in every process.
const KERNEL: u64 = 1 << 63;

/// Counts the page tables of the median session and of the median other process in `sample`. `check` is called between
/// reads.
pub fn take(
    root: &Root,
    sample: &FaultSample,
    sessions: &[i32],
    base: PageSize,
    mut check: impl FnMut(),
    notes: &mut Notes,
) -> PrivateTables {
    if !KNOWS_LEVELS {
        return PrivateTables::default();
    }
    let (of_sessions, others) = sample.processes.iter().partition(|process| sessions.contains(&process.pid));
    let mut of_median = |processes: Vec<&ProcessSample>| {
        let counted = candidates(processes).find_map(|process| match of_process(root, process, base, &mut check) {
            Ok(private) => private.map(|private| Some(CountedProcess { status: process.status, private })),
            Err(error) => {
                notes.add(error.to_string());
                Some(None)
            }
        });
        counted.flatten()
    };
    PrivateTables { of_session: of_median(of_sessions), of_other: of_median(others) }
}

/// The processes that have page tables, the median first.
fn candidates(mut processes: Vec<&ProcessSample>) -> impl Iterator<Item = &ProcessSample> {
    processes.retain(|process| process.status.page_tables.is_some_and(|size| size.0 > 0));
    processes.sort_unstable_by_key(|process| (process.status.page_tables, process.pid));
    let middle = processes.len() / 2;
    processes.rotate_left(middle);
    processes.into_iter().take(MAX_TRIES)
}

/// Counts the page tables of one process; `Ok(None)` if it has ended.
fn of_process(
    root: &Root,
    process: &ProcessSample,
    base: PageSize,
    check: impl FnMut(),
) -> Result<Option<Bytes>, ReadError> {
    let counted = of_pid(root, process.pid, base, check)?;
    // Another process may have had its pid meanwhile.
    let stat = Processes::open(root).stat(process.pid)?;
    let is_same = stat.is_some_and(|stat| stat.start_ticks == process.stat.start_ticks);
    Ok(counted.filter(|_| is_same))
}

fn of_pid(root: &Root, pid: i32, base: PageSize, mut check: impl FnMut()) -> Result<Option<Bytes>, ReadError> {
    let Some(pages) = PageMap::open(root, pid, base)? else { return Ok(None) };
    let path = maps::path(pid);
    let may_have_pages = |mapping: &maps::Mapping| !mapping.access.is_none() && mapping.start < KERNEL;
    let Some(mut mappings) = unless_gone(maps::read(root, &path, may_have_pages))? else { return Ok(None) };
    // A logger has no shared memory.
    let shared = mappings.iter().enumerate().filter(|(_, mapping)| may_be_main(mapping));
    if let Some((main, _)) = shared.max_by_key(|(_, mapping)| mapping.size()) {
        mappings.remove(main);
    }
    let range = range_of_lowest(base);
    let (mut lowest, mut ranges) = (BTreeSet::new(), 0);
    for mapping in &mappings {
        for number in mapping.start / range..mapping.end.div_ceil(range) {
            // Libraries are small: several mappings share a table.
            if lowest.contains(&number) {
                continue;
            }
            if ranges == MAX_RANGES {
                return Err(root.content(&path, "the process has too much memory to count its page tables"));
            }
            ranges += 1;
            check();
            let (first, last) = (number * range, (number + 1).saturating_mul(range));
            match pages.has_page(&(mapping.start.max(first)..mapping.end.min(last)))? {
                Some(true) => _ = lowest.insert(number),
                Some(false) => {}
                None => return Ok(None),
            }
        }
    }
    Ok((!lowest.is_empty()).then(|| of_lowest(&lowest, base)))
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::os::unix::fs::FileExt;
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};

    use super::*;
    use crate::page_fault_runs::SharedMapping;
    use hugepage_kernel::proc::process;
    use hugepage_kernel::proc::process::{ProcessStat, ProcessStatus};

    const KIB: u64 = 1 << 10;
    const MIB: u64 = 1 << 20;

    fn sample(processes: &[(i32, u64)]) -> FaultSample {
        let process = |&(pid, kib): &(i32, u64)| ProcessSample {
            pid,
            stat: ProcessStat { start_ticks: 900, ..ProcessStat::default() },
            status: ProcessStatus { page_tables: Some(Bytes(kib * KIB)), ..ProcessStatus::default() },
        };
        FaultSample { processes: processes.iter().map(process).collect(), faults_of_ended: 0 }
    }

    #[test]
    fn the_median_first_and_no_zombie() {
        let sample = sample(&[(7, 90), (8, 0), (9, 400), (10, 120), (11, 110), (12, 100)]);
        let found: Vec<_> = candidates(sample.processes.iter().collect()).map(|process| process.pid).collect();
        assert_eq!(found, [11, 10, 9, 7]);
    }

    /// A tree of files with one process, whose start is at 900: a program, a library at a border of tables, memory that is
    /// only reserved, and shared memory, the larger piece of which is the main segment.
    fn tree() -> tempfile::TempDir {
        let tree = tempfile::tempdir().unwrap();
        fs::create_dir_all(tree.path().join("proc/7")).unwrap();
        let maps = "00400000-00800000 r-xp 00000000 08:01 5 /usr/lib/postgresql/bin/postgres\n\
                    00800000-00c00000 ---p 00000000 00:00 0\n\
                    05ff0000-06010000 rw-p 00000000 08:01 6 /usr/lib/libc.so.6\n\
                    08000000-0c000000 rw-s 00000000 00:01 7 /dev/zero (deleted)\n\
                    0c000000-0c001000 rw-s 00000000 00:01 8 /SYSV009b2220 (deleted)\n\
                    ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0 [vsyscall]\n";
        fs::write(tree.path().join("proc/7/maps"), maps).unwrap();
        fs::write(
            tree.path().join("proc/7/stat"),
            "7 (postgres) S 1 1 1 0 -1 4194304 5 0 0 0 1 2 0 0 20 0 1 0 900 4096 3\n",
        )
        .unwrap();
        let file = File::create(tree.path().join("proc/7/pagemap")).unwrap();
        file.set_len((0x0c00_1000 >> 12) * 8).unwrap();
        for address in [0x40_0000_u64, 0x5f_f000, 0x80_0000, 0x5ff_0000, 0x600_0000, 0x800_0000, 0xc00_0000] {
            file.write_all_at(&(1_u64 << 63).to_ne_bytes(), (address >> 12) * 8).unwrap();
        }
        tree
    }

    #[test]
    fn count_all_but_the_main_segment() {
        let (tree, base) = (tree(), PageSize::from_kib(4).unwrap());
        let root = Root::at(tree.path());
        // One of the program, two of the library and one of the small segment, and one of each level above.
        let mut checks = 0;
        assert_eq!(of_pid(&root, 7, base, || checks += 1).unwrap(), Some(Bytes(6 * 4 * KIB)));
        assert_eq!(checks, 5, "the ranges of those three");
        let mut notes = Notes::default();
        let mut take = |sample: &FaultSample, sessions: &[i32]| take(&root, sample, sessions, base, || {}, &mut notes);
        let found = take(&sample(&[(7, 90), (8, 100)]), &[7]);
        assert_eq!(found.of_session.unwrap().private, Bytes(6 * 4 * KIB));
        assert!(found.of_other.is_none(), "it has ended");
        // Another one has its pid now.
        fs::write(
            tree.path().join("proc/7/stat"),
            "7 (cat) S 1 1 1 0 -1 4194304 5 0 0 0 1 2 0 0 20 0 1 0 999 4096 3\n",
        )
        .unwrap();
        assert!(take(&sample(&[(7, 90)]), &[7]).of_session.is_none());
        assert!(notes.into_vec().is_empty());
    }

    #[test]
    fn what_cannot_be_counted_is_noted() {
        let (tree, base) = (tree(), PageSize::from_kib(4).unwrap());
        let root = Root::at(tree.path());
        fs::write(tree.path().join("proc/7/maps"), "00400000-7f0000000000 rw-p 00000000 00:00 0\n").unwrap();
        File::options().write(true).open(tree.path().join("proc/7/pagemap")).unwrap().set_len(1 << 40).unwrap();
        let mut notes = Notes::default();
        assert!(take(&root, &sample(&[(7, 90)]), &[], base, || {}, &mut notes).of_other.is_none());
        let notes = notes.into_vec();
        assert!(notes.len() == 1 && notes[0].ends_with("too much memory to count its page tables"), "{notes:?}");
    }

    /// The count for a process without shared memory is that of the kernel.
    #[test]
    fn all_page_tables_of_a_process() {
        if !KNOWS_LEVELS {
            return;
        }
        let mut child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        let root = Root::live();
        let both = || {
            let kernel = process::status(&root, pid).unwrap().unwrap().page_tables.unwrap();
            (of_pid(&root, pid, PageSize::base(), || {}).unwrap().unwrap_or_default(), kernel)
        };
        // It maps its libraries first.
        let deadline = Instant::now() + Duration::from_secs(30);
        let is_so = std::iter::repeat_with(both).take_while(|_| Instant::now() < deadline).any(|(own, its)| own == its);
        let last = both();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(is_so, "{last:?}");
        assert_eq!(of_pid(&root, pid, PageSize::base(), || {}).unwrap(), None);
    }

    /// A child touches a page in each 2 MB of 128 MB: 64 tables, and what maps them.
    #[test]
    fn page_tables_of_sparse_shared_memory() {
        if !KNOWS_LEVELS || PageSize::base().bytes().0 != 4 * KIB {
            return;
        }
        let step = usize::try_from(2 * MIB).unwrap();
        let memory = SharedMapping::new(64 * step).unwrap();
        // SAFETY: the child touches memory and waits until it is killed, a minute if this test fails.
        #[allow(unsafe_code)]
        let child = unsafe {
            let child = libc::fork();
            if child == 0 {
                libc::alarm(60);
                memory.write_each(step);
                loop {
                    libc::pause();
                }
            }
            child
        };
        assert!(child > 0);
        let root = Root::live();
        let status = || process::status(&root, child).unwrap().unwrap();
        let deadline = Instant::now() + Duration::from_secs(30);
        while status().rss_shmem.unwrap() < Bytes(64 * 4 * KIB) && Instant::now() < deadline {
            std::thread::yield_now();
        }
        let (tables, private) = (status().page_tables.unwrap(), of_pid(&root, child, PageSize::base(), || {}).unwrap());
        // SAFETY: the child has not been waited for, so it is still this one.
        #[allow(unsafe_code)]
        let ended =
            unsafe { libc::kill(child, libc::SIGKILL) == 0 && libc::waitpid(child, std::ptr::null_mut(), 0) == child };
        assert!(ended);
        let shared = tables.saturating_sub(private.unwrap());
        assert!((64..=68).contains(&(shared.0 / (4 * KIB))), "{shared} of {tables}");
    }
}
