//! What is read of the server and its host: before a collapse, and before each range.

use std::collections::BTreeSet;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use hugepage_host::Instance;
use hugepage_kernel::cgroups::memory::memory_rooms;
use hugepage_kernel::fields::value;
use hugepage_kernel::mapping::memory_policy::allowed_nodes;
use hugepage_kernel::mapping::{maps, numa_maps};
use hugepage_kernel::memory::{node, pool, thp};
use hugepage_kernel::proc::process::{self, ProcessStatus};
use hugepage_kernel::{Bytes, Mapping, Meminfo, Notes, ReadError, Root};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::decide::{Candidate, Room, brake};
use super::{madvise, ranges};
use crate::privileges;
use crate::signals::SignalTimer;

/// The initial user namespace, a constant of the kernel (include/linux/proc_ns.h).
const INITIAL_NAMESPACE: &str = "user:[4026531837]";

/// A server with what has to be the same before each range.
pub struct CollapsibleServer<'a> {
    root: &'a Root,
    pub pid: i32,
    start_ticks: u64,
    pub uid: u32,
    pub gid: u32,
    pub mapping: Mapping,
    nodes: Vec<u32>,
    /// The size of a range, in bytes.
    pub size: usize,
    /// What stays available of each room, in percent.
    pub reserve_percent: u32,
}

/// Reads the server of `instance`, and what decides whether it may be collapsed. The server is `None` where a refusal says why.
pub fn read<'a>(
    root: &'a Root,
    instance: &Instance,
    reserve_percent: u32,
    notes: &mut Notes,
) -> (Candidate, Option<CollapsibleServer<'a>>) {
    let pid = instance.id.pid;
    let name = pid.to_string();
    let mapping = instance.memory.shared.iter().flatten().next().cloned();
    let status = notes.keep(process::read(root, pid, "status", str::to_owned));
    let status = status.flatten().unwrap_or_default();
    // All four have to be the same, as those of a postmaster are.
    let id = |name: &str| -> Option<u32> {
        let all: BTreeSet<_> = value(&status, name)?.split_ascii_whitespace().collect();
        all.first()
            .filter(|_| all.len() == 1)
            .and_then(|one| one.parse().ok())
    };
    let ids = id("Uid").zip(id("Gid"));
    let has_nodes = notes
        .keep(pool::nodes(root))
        .is_some_and(|nodes| nodes.len() > 1);
    let start = mapping.as_ref().map(|mapping| mapping.start);
    let numa = start
        .filter(|_| has_nodes)
        .and_then(|start| notes.keep(numa_maps::of_mapping(root, pid, start))?);
    let allowed = [&*name, "self"].map(|of| notes.keep(allowed_nodes(root, of)).flatten());
    let seen = numa.as_ref().map(|numa| numa.nodes.clone());
    let nodes = seen
        .filter(|nodes| !nodes.is_empty())
        .or(allowed[0].clone());
    let range = notes.keep(thp::pmd_size(root)).flatten();
    let stat = notes.keep(process::stat(root, pid)).flatten();
    let candidate = Candidate {
        kind: instance.id.kind(),
        base: notes.keep(root.base_page_size()),
        range,
        shmem_enabled: notes.keep(thp::choice(root, "shmem_enabled")).flatten(),
        of_size: range.and_then(|size| notes.keep(thp::shmem_of_size(root, size))?),
        thp_enabled: value(&status, "THP_enabled").map(|word| word.trim() == "1"),
        pmd_mapped: instance
            .memory
            .transparent
            .map_or(Bytes(0), |seen| seen.pmd_mapped),
        resident: instance.memory.resident,
        policy: numa.map(|numa| numa.policy),
        nodes: allowed,
        is_in_initial_namespace: root
            .read_link("/proc/self/ns/user")
            .is_ok_and(|link| link == INITIAL_NAMESPACE),
        is_privileged: ids.is_some_and(|(uid, gid)| privileges::may_collapse_as(uid, gid)),
        mapping: mapping.clone(),
    };
    let server =
        ids.zip(stat)
            .zip(mapping.zip(range))
            .map(|(((uid, gid), stat), (mapping, size))| CollapsibleServer {
                root,
                pid,
                start_ticks: stat.start_ticks,
                uid,
                gid,
                mapping,
                nodes: nodes.unwrap_or_default(),
                size: usize::try_from(size.bytes().0).unwrap_or_default(),
                reserve_percent,
            });
    (candidate, server)
}

impl CollapsibleServer<'_> {
    /// The postmaster and its children, each with its status.
    pub fn processes(&self) -> Vec<(i32, ProcessStatus)> {
        let of_server = |pid: i32| {
            let status = process::status(self.root, pid).ok()??;
            (pid == self.pid || status.parent == Some(self.pid)).then_some((pid, status))
        };
        let pids = process::pids(self.root).unwrap_or_default();
        pids.into_iter().filter_map(of_server).collect()
    }

    /// The page tables of all of them.
    pub fn page_tables(&self) -> Bytes {
        let processes = self.processes().into_iter();
        processes.filter_map(|(_, status)| status.page_tables).sum()
    }

    /// The memory that a range is taken from. What could not be read is an error, because it may be the least.
    pub fn rooms(&self) -> Result<Vec<Room>, ReadError> {
        let meminfo = Meminfo::read(self.root)?;
        let unknown = || self.root.content("/proc/meminfo", "it has no MemAvailable");
        let room = |name, total, available| Room {
            name,
            total,
            available,
        };
        let mut rooms = vec![room(
            "the host".to_owned(),
            meminfo.mem_total.unwrap_or_default(),
            meminfo.mem_available.ok_or_else(unknown)?,
        )];
        for &number in &self.nodes {
            let memory = node::memory(self.root, number)?;
            rooms.push(room(
                format!("NUMA node {number}"),
                memory.total,
                memory.available(),
            ));
        }
        let limits = memory_rooms(self.root, self.pid)?.into_iter();
        rooms.extend(limits.map(|limit| room(limit.path, limit.limit, limit.available)));
        Ok(rooms)
    }

    /// Why `wanted` is not taken; `None` if it may be.
    pub fn brake(&self, wanted: Bytes) -> Option<String> {
        self.rooms().map_or_else(
            |error| Some(error.to_string()),
            |rooms| brake(&rooms, self.reserve_percent, wanted),
        )
    }

    /// Opens one of its processes; `None` if it is another process by now, or has not mapped the segment.
    pub fn open(&self, pid: i32) -> Option<OwnedFd> {
        let opened = pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()?;
        // What is read now is of the process that was opened, or of one that came after its end.
        let is_it = if pid == self.pid {
            process::stat(self.root, pid).ok()??.start_ticks == self.start_ticks
        } else {
            process::status(self.root, pid).ok()??.parent == Some(self.pid)
        };
        (is_it && self.is_mapped_in(pid)).then_some(opened)
    }

    /// Whether `pid` has the segment mapped that was read at the beginning.
    fn is_mapped_in(&self, pid: i32) -> bool {
        let place = |mapping: &Mapping| (mapping.start, mapping.end, mapping.inode);
        maps::read(self.root, &maps::path(pid), |found| found.shared).is_ok_and(|found| {
            found
                .iter()
                .any(|found| place(found) == place(&self.mapping))
        })
    }
}

/// One process of a server, as the ranges see it.
pub struct Process<'a> {
    pub server: &'a CollapsibleServer<'a>,
    pub pid: i32,
    pub pidfd: OwnedFd,
    pub timer: &'a mut SignalTimer,
}

impl ranges::Kernel for Process<'_> {
    fn refusal(&mut self) -> Option<String> {
        if !self.server.is_mapped_in(self.pid) {
            return Some("the server has ended, or has mapped its memory anew".to_owned());
        }
        self.server.brake(Bytes(self.server.size as u64))
    }

    fn collapse(&mut self, start: u64) -> (Result<(), i32>, Duration) {
        let began = Instant::now();
        let answer = madvise::collapse(self.pidfd.as_fd(), start, self.server.size);
        (answer, began.elapsed())
    }

    fn wait(&mut self, time: Duration) -> bool {
        self.timer.has_signal() || !time.is_zero() && self.timer.wait(time).unwrap_or(true)
    }
}
