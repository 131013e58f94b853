//! The page faults of a server's processes at one moment; two of these give what happened between them.

use crate::read::process::{ProcessStat, ProcessStatus};

/// One process.
#[derive(Clone, Copy, Debug)]
pub struct ProcessSample {
    /// Its process id. With the start in `stat` it stays the same process.
    pub pid: i32,
    /// Its faults so far.
    pub stat: ProcessStat,
    /// Its memory now.
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

impl FaultSample {
    /// Whether a process of that id ran then.
    pub fn has(&self, pid: i32) -> bool {
        self.processes.binary_search_by_key(&pid, |one| one.pid).is_ok()
    }

    /// The same process in this sample; `None` if it did not run then.
    pub fn same(&self, process: &ProcessSample) -> Option<&ProcessSample> {
        let is_same = |one: &&ProcessSample| one.pid == process.pid && one.stat.start_ticks == process.stat.start_ticks;
        let index = self.processes.binary_search_by_key(&process.pid, |one| one.pid).ok()?;
        self.processes.get(index).filter(is_same)
    }

    /// The memory of `pid` in this sample, if it is the same now: its counters `stat` are, so it had no page fault and
    /// gave nothing back.
    pub fn idle_since(&self, pid: i32, stat: &ProcessStat) -> Option<ProcessStatus> {
        let index = self.processes.binary_search_by_key(&pid, |one| one.pid).ok()?;
        self.processes.get(index).filter(|one| one.stat == *stat).map(|one| one.status)
    }
}
