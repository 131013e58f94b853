//! The page faults of a server's processes at one moment; two of these give what happened between them.

use hugepage_kernel::proc::process::{ProcessStat, ProcessStatus};

/// One process.
#[derive(Clone, Copy, Debug)]
pub struct ProcessSample {
    /// The process ID. With the start in `stat` it stays the same process.
    pub pid: i32,
    /// The faults of the process so far.
    pub stat: ProcessStat,
    /// The memory of the process now.
    pub status: ProcessStatus,
}

/// All processes of a server.
#[derive(Clone, Debug, Default)]
pub struct FaultSample {
    /// The postmaster and its children.
    pub processes: Vec<ProcessSample>,
    /// The faults of all children that have ended since the start of the server.
    pub faults_of_ended: u64,
}

impl ProcessSample {
    /// Whether both are of one process: an id alone may be used again.
    pub fn is_same(&self, other: &Self) -> bool {
        self.pid == other.pid && self.stat.start_ticks == other.stat.start_ticks
    }
}

impl FaultSample {
    /// The process that had that id then; `None` if there was none.
    pub fn process(&self, pid: i32) -> Option<&ProcessSample> {
        let index = self.processes.binary_search_by_key(&pid, |one| one.pid).ok()?;
        self.processes.get(index)
    }

    /// The process in this sample that is the same as `process`; `None` if it did not run then.
    pub fn same(&self, process: &ProcessSample) -> Option<&ProcessSample> {
        self.process(process.pid).filter(|one| one.is_same(process))
    }

    /// The memory of `pid` in this sample, if it is the same now: its counters `stat` are, so it had no page fault and
    /// gave nothing back.
    pub fn idle_since(&self, pid: i32, stat: &ProcessStat) -> Option<ProcessStatus> {
        self.process(pid).filter(|one| one.stat == *stat).map(|one| one.status)
    }
}
