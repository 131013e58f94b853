//! Counters of other processes: perf_event_open(2), which the server's own user may use for its processes where
//! `kernel.perf_event_paranoid` allows it, and CAP_PERFMON for all. The process counted is neither stopped nor changed.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd, RawFd};

use perf_event_open_sys::bindings as abi;
use perf_event_open_sys::{ioctls, perf_event_open};

/// An event that can be counted: `type` and `config` of perf_event_open(2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CountedEvent {
    kind: u32,
    config: u64,
}

impl CountedEvent {
    /// CPU cycles.
    pub const CYCLES: Self = Self { kind: abi::PERF_TYPE_HARDWARE, config: abi::PERF_COUNT_HW_CPU_CYCLES as u64 };
    /// Loads whose address is not in the TLB of data; of all accesses on CPUs that have one event for both.
    pub const DTLB_LOAD_MISSES: Self = Self::dtlb_misses(abi::PERF_COUNT_HW_CACHE_OP_READ);
    /// The same of stores.
    pub const DTLB_STORE_MISSES: Self = Self::dtlb_misses(abi::PERF_COUNT_HW_CACHE_OP_WRITE);

    const fn dtlb_misses(access: u32) -> Self {
        let (cache, result) = (abi::PERF_COUNT_HW_CACHE_DTLB as u64, abi::PERF_COUNT_HW_CACHE_RESULT_MISS as u64);
        Self { kind: abi::PERF_TYPE_HW_CACHE, config: cache | (access as u64) << 8 | result << 16 }
    }

    /// The cycles in which event `code` of an Intel CPU with mask `umask` is active (`cmask` 1).
    pub const fn intel_active(code: u8, umask: u8) -> Self {
        Self { kind: abi::PERF_TYPE_RAW, config: code as u64 | (umask as u64) << 8 | 1 << 24 }
    }
}

/// What a group of counters has counted, each event at the same times as the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupCounts {
    /// How long the process ran while the group was there, in nanoseconds.
    pub enabled: u64,
    /// For how much of that the CPU had counters for the group.
    pub running: u64,
    /// In the order of the events.
    pub values: Vec<u64>,
}

impl GroupCounts {
    /// Parses what the kernel gives for a group with both times (`PERF_FORMAT_GROUP`); `None` if it is incomplete.
    fn parse(bytes: &[u8]) -> Option<Self> {
        let mut words = bytes.as_chunks().0.iter().map(|word| u64::from_ne_bytes(*word));
        let count = usize::try_from(words.next()?).ok()?;
        let (enabled, running) = (words.next()?, words.next()?);
        let values: Vec<u64> = words.take(count).collect();
        (values.len() == count).then_some(Self { enabled, running, values })
    }
}

/// Counters of one process in user mode, which its children do not inherit. They are removed on drop.
#[derive(Debug)]
pub struct CounterGroup {
    leader: File,
    others: Vec<File>,
}

impl CounterGroup {
    /// How many counters a group may have.
    pub const MAX_EVENTS: usize = 3;

    /// Begins to count at most [`Self::MAX_EVENTS`] `events` of `pid`. Those behind the first `needed` ones are left out
    /// where the CPU has no such event.
    pub fn open(pid: i32, events: &[CountedEvent], needed: usize) -> io::Result<Self> {
        let (first, rest) = events.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let mut group = Self { leader: open(pid, *first, None)?, others: Vec::new() };
        for (index, event) in (1..Self::MAX_EVENTS).zip(rest) {
            match open(pid, *event, Some(group.leader.as_raw_fd())) {
                Ok(counter) => group.others.push(counter),
                Err(error) if index >= needed && lacks_event(&error) => {}
                Err(error) => return Err(error),
            }
        }
        // SAFETY: the descriptor is an event's, and the request has no memory.
        #[allow(unsafe_code)]
        let failed = unsafe { ioctls::ENABLE(group.leader.as_raw_fd(), 0) } != 0;
        if failed { Err(io::Error::last_os_error()) } else { Ok(group) }
    }

    /// The counts so far, also of a process that has ended.
    pub fn read(&self) -> io::Result<GroupCounts> {
        let mut bytes = [0; 8 * (3 + Self::MAX_EVENTS)];
        let length = (&self.leader).read(&mut bytes)?;
        GroupCounts::parse(&bytes[..length]).ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }
}

/// Whether the machine has no such event (perf_event_open(2)).
pub fn lacks_event(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ENODEV | libc::EOPNOTSUPP | libc::EINVAL))
}

fn open(pid: i32, event: CountedEvent, leader: Option<RawFd>) -> io::Result<File> {
    let mut attributes = abi::perf_event_attr { type_: event.kind, ..abi::perf_event_attr::default() };
    attributes.size = u32::try_from(size_of_val(&attributes)).unwrap_or_default();
    attributes.config = event.config;
    attributes.read_format =
        u64::from(abi::PERF_FORMAT_GROUP | abi::PERF_FORMAT_TOTAL_TIME_ENABLED | abi::PERF_FORMAT_TOTAL_TIME_RUNNING);
    // The others count while the leader does.
    attributes.set_disabled(u64::from(leader.is_none()));
    attributes.set_exclude_kernel(1);
    attributes.set_exclude_hv(1);
    // SAFETY: the attributes are complete; counting changes no memory of any process. The descriptor is new.
    #[allow(unsafe_code)]
    unsafe {
        let flags = libc::c_ulong::from(abi::PERF_FLAG_FD_CLOEXEC);
        match perf_event_open(&raw mut attributes, pid, -1, leader.unwrap_or(-1), flags) {
            descriptor if descriptor < 0 => Err(io::Error::last_os_error()),
            descriptor => Ok(File::from_raw_fd(descriptor)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    #[test]
    fn counts_of_a_group() {
        let found = GroupCounts::parse(&words(&[2, 900, 300, 70, 5, 0])).unwrap();
        assert_eq!(found, GroupCounts { enabled: 900, running: 300, values: vec![70, 5] });
        assert_eq!(GroupCounts::parse(&words(&[3, 900, 300, 70, 5])), None);
        assert_eq!(GroupCounts::parse(&words(&[u64::MAX, 900, 300])), None);
        assert_eq!(GroupCounts::parse(&[1, 2, 3]), None);
    }

    /// As perf encodes them: dTLB-load-misses, dTLB-store-misses and cpu/event=0x8,umask=0x10,cmask=0x1/.
    #[test]
    fn events_as_perf_encodes_them() {
        let encoded = |event: CountedEvent| (event.kind, event.config);
        assert_eq!(encoded(CountedEvent::CYCLES), (0, 0));
        assert_eq!(encoded(CountedEvent::DTLB_LOAD_MISSES), (3, 0x1_0003));
        assert_eq!(encoded(CountedEvent::DTLB_STORE_MISSES), (3, 0x1_0103));
        assert_eq!(encoded(CountedEvent::intel_active(0x08, 0x10)), (4, 0x100_1008));
    }

    /// The kernel's own counters need no hardware. The thread counts itself, so its page faults are known.
    #[test]
    fn the_kernel_counts_a_group() {
        const CLOCK: CountedEvent =
            CountedEvent { kind: abi::PERF_TYPE_SOFTWARE, config: abi::PERF_COUNT_SW_TASK_CLOCK as u64 };
        const FAULTS: CountedEvent =
            CountedEvent { kind: abi::PERF_TYPE_SOFTWARE, config: abi::PERF_COUNT_SW_PAGE_FAULTS_MIN as u64 };
        const NONE: CountedEvent = CountedEvent { kind: abi::PERF_TYPE_SOFTWARE, config: 4000 };
        let group = match CounterGroup::open(0, &[CLOCK, FAULTS, NONE], 2) {
            Ok(group) => group,
            // A container, or a kernel that allows it to root alone.
            Err(error) => {
                let refused = [libc::EACCES, libc::EPERM, libc::ENOSYS];
                assert!(refused.contains(&error.raw_os_error().unwrap()), "{error}");
                return;
            }
        };
        let before = group.read().unwrap();
        let memory: Vec<u8> = (0..16 << 20).map(|byte: u32| byte.to_le_bytes()[1]).collect();
        let after = group.read().unwrap();
        assert_eq!((after.values.len(), memory.len()), (2, 16 << 20));
        assert!(after.values[0] > before.values[0] && after.values[1] > before.values[1], "{before:?} {after:?}");
        assert!(after.enabled >= after.running && after.running > before.running, "{after:?}");
        let missing = CounterGroup::open(0, &[CLOCK, NONE], 2).unwrap_err();
        assert!(lacks_event(&missing), "{missing}");
    }
}
