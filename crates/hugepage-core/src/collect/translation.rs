//! Counts address translation in the processes of a server: cycles of page walks, and misses of the TLB.

use std::io;

use crate::model::{Counted, FaultSample, NotCounted, ProcessSample, TranslationCounts};
use crate::read::cpu_model::CpuModel;
use crate::read::perf_counters::{CountedEvent, CounterGroup, GroupCounts, lacks_event};
use crate::read::{Root, sysctl};

/// As many processes of a server are counted, those with the most CPU time.
const MAX_PROCESSES: usize = 16;
/// Page walks and misses are two groups, because a CPU may have four counters, of which one watches the kernel.
const DESCRIPTORS_PER_PROCESS: usize = 2 * CounterGroup::MAX_EVENTS;
/// At most so many file descriptors are open for a server.
pub const MAX_DESCRIPTORS: usize = MAX_PROCESSES * DESCRIPTORS_PER_PROCESS;

const PARANOID: &str = "kernel.perf_event_paranoid";
const MISSES: [CountedEvent; 3] =
    [CountedEvent::CYCLES, CountedEvent::DTLB_LOAD_MISSES, CountedEvent::DTLB_STORE_MISSES];

/// Counters that have begun to count.
#[derive(Debug)]
pub struct TranslationCounters {
    walks: Result<Vec<CounterGroup>, NotCounted>,
    misses: Result<Vec<CounterGroup>, NotCounted>,
    leaves_out: bool,
}

impl TranslationCounters {
    /// Begins to count the processes of `sample`, with at most `descriptors` open files.
    pub fn begin(root: &Root, sample: &FaultSample, descriptors: usize) -> Self {
        let most = (descriptors / DESCRIPTORS_PER_PROCESS).min(MAX_PROCESSES);
        let processes = busiest(&sample.processes, most);
        let open = |events: &[CountedEvent], needed| match processes.is_empty() {
            true => Err(NotCounted::NoDescriptors),
            false => {
                groups(&processes, |pid| CounterGroup::open(pid, events, needed)).map_err(|error| reason(root, &error))
            }
        };
        let misses = open(&MISSES, 2);
        let walks = match CpuModel::read(root).ok().and_then(|cpu| walk_cycles(&cpu)) {
            Some([loads, stores]) => open(&[CountedEvent::CYCLES, loads, stores], 3),
            // Without cycles there is nothing to say of events.
            None => Err(misses.as_ref().err().cloned().unwrap_or(NotCounted::UnknownEvent)),
        };
        Self { walks, misses, leaves_out: processes.len() < sample.processes.len() }
    }

    /// What they have counted.
    pub fn end(self) -> TranslationCounts {
        let leaves_out = self.leaves_out || [&self.walks, &self.misses].into_iter().flatten().any(Vec::is_empty);
        TranslationCounts { walks: counted(self.walks), misses: counted(self.misses), leaves_out }
    }
}

fn counted(groups: Result<Vec<CounterGroup>, NotCounted>) -> Counted {
    // A group that fails now has counted nothing.
    groups.map(|groups| groups.iter().filter_map(|group| group.read().ok()).collect::<Vec<GroupCounts>>())
}

/// The processes with the most CPU time so far.
fn busiest(processes: &[ProcessSample], most: usize) -> Vec<i32> {
    let mut by_time: Vec<_> = processes.iter().map(|process| (process.stat.cpu_ticks, process.pid)).collect();
    by_time.sort_unstable_by(|one, other| other.cmp(one));
    by_time.into_iter().take(most).map(|(_, pid)| pid).collect()
}

/// A group for each process that has not ended; an error if one cannot be opened.
fn groups(processes: &[i32], open: impl Fn(i32) -> io::Result<CounterGroup>) -> io::Result<Vec<CounterGroup>> {
    let is_gone = |error: &io::Error| error.raw_os_error() == Some(libc::ESRCH);
    processes.iter().map(|&pid| open(pid)).filter(|group| !group.as_ref().is_err_and(is_gone)).collect()
}

fn reason(root: &Root, error: &io::Error) -> NotCounted {
    match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => NotCounted::Refused(sysctl::running(root, PARANOID).ok().flatten()),
        Some(libc::ENOSYS) => NotCounted::NoSystemCall,
        Some(libc::EMFILE | libc::ENFILE) => NotCounted::NoDescriptors,
        _ if lacks_event(error) => NotCounted::NoCounter,
        _ => NotCounted::Failed(error.to_string()),
    }
}

/// The events for cycles in which at least one page walk is active, for loads and for stores: `DTLB_LOAD_MISSES.WALK_ACTIVE`
/// and `DTLB_STORE_MISSES.WALK_ACTIVE` of Intel's servers. The kernel names them neither in sysfs nor as generic events, so
/// they are from its table for perf (tools/perf/pmu-events/arch/x86: skylakex, cascadelakex, icelakex, sapphirerapids,
/// emeraldrapids). CPUs of AMD count page walks, but not their cycles.
fn walk_cycles(cpu: &CpuModel) -> Option<[CountedEvent; 2]> {
    const WALK: u8 = 0x10;
    let codes = match (cpu.vendor.as_str(), cpu.family, cpu.model) {
        ("GenuineIntel", 6, 0x55 | 0x6a | 0x6c) => [0x08, 0x49],
        ("GenuineIntel", 6, 0x8f | 0xcf) => [0x12, 0x13],
        _ => return None,
    };
    Some(codes.map(|code| CountedEvent::intel_active(code, WALK)))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::read::process::{ProcessStat, ProcessStatus};

    fn process(pid: i32, cpu_ticks: u64) -> ProcessSample {
        ProcessSample {
            pid,
            stat: ProcessStat { cpu_ticks, ..ProcessStat::default() },
            status: ProcessStatus::default(),
        }
    }

    #[test]
    fn the_busiest_processes() {
        let processes = [process(7, 5), process(8, 900), process(9, 30)];
        assert_eq!(busiest(&processes, 2), [8, 9]);
        assert_eq!(busiest(&processes, 100), [8, 9, 7]);
        let many: Vec<_> = (1..1000).map(|pid| process(pid, 1)).collect();
        let sample = FaultSample { processes: many, faults_of_ended: 0 };
        let tree = tempfile::tempdir().unwrap();
        let none = TranslationCounters::begin(&Root::at(tree.path()), &sample, DESCRIPTORS_PER_PROCESS - 1);
        assert_eq!(none.end().misses, Err(NotCounted::NoDescriptors));
    }

    #[test]
    fn why_there_are_no_counters() {
        let tree = tempfile::tempdir().unwrap();
        let root = Root::at(tree.path());
        let of = |code| reason(&root, &io::Error::from_raw_os_error(code));
        assert_eq!((of(libc::ENOENT), of(libc::EOPNOTSUPP)), (NotCounted::NoCounter, NotCounted::NoCounter));
        assert_eq!((of(libc::ENOSYS), of(libc::EMFILE)), (NotCounted::NoSystemCall, NotCounted::NoDescriptors));
        assert_eq!(of(libc::EACCES), NotCounted::Refused(None));
        fs::create_dir_all(tree.path().join("proc/sys/kernel")).unwrap();
        fs::write(tree.path().join("proc/sys/kernel/perf_event_paranoid"), "3\n").unwrap();
        assert_eq!(of(libc::EPERM), NotCounted::Refused(Some("3".to_owned())));
        assert!(matches!(of(libc::ENOMEM), NotCounted::Failed(_)));
    }

    #[test]
    fn events_of_page_walks() {
        let of = |vendor: &str, family, model| walk_cycles(&CpuModel { vendor: vendor.to_owned(), family, model });
        let expected = Some([0x08, 0x49].map(|code| CountedEvent::intel_active(code, 0x10)));
        assert_eq!((of("GenuineIntel", 6, 85), of("GenuineIntel", 6, 106)), (expected, expected));
        assert_eq!(of("GenuineIntel", 6, 143), Some([0x12, 0x13].map(|code| CountedEvent::intel_active(code, 0x10))));
        for (vendor, family, model) in [("GenuineIntel", 6, 63), ("AuthenticAMD", 25, 17), ("", 0, 0)] {
            assert_eq!(of(vendor, family, model), None);
        }
    }

    /// A process that ends meanwhile is left out, and any other error is the answer.
    #[test]
    fn processes_that_end_meanwhile() {
        let failing = |code| move |_: i32| Err(io::Error::from_raw_os_error(code));
        assert_eq!(groups(&[7, 8], failing(libc::ESRCH)).unwrap().len(), 0);
        assert_eq!(groups(&[7, 8], failing(libc::ENOENT)).unwrap_err().raw_os_error(), Some(libc::ENOENT));
    }

    /// Whatever this machine has: counts, or the reason.
    #[test]
    fn this_process_on_this_machine() {
        let own = i32::try_from(std::process::id()).unwrap();
        let sample = FaultSample { processes: vec![process(own, 1)], faults_of_ended: 0 };
        let counters = TranslationCounters::begin(&Root::live(), &sample, MAX_DESCRIPTORS);
        let counts = counters.end();
        assert!(!counts.leaves_out);
        match counts.misses {
            Ok(groups) => assert!(groups[0].values.len() >= 2 && groups[0].running <= groups[0].enabled, "{groups:?}"),
            Err(reason) => assert_eq!(counts.walks, Err(reason)),
        }
    }
}
