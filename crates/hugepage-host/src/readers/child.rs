//! What a reader does: it becomes its user, and sends its answer.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{
    DumpableBehavior, Gid, Pid, Resource, Rlimit, Signal, Uid, getppid, getrlimit, set_dumpable_behavior,
    set_parent_process_death_signal, setrlimit,
};
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, remove_capability_from_bounding_set, set_capabilities,
    set_keep_capabilities, set_no_new_privs, set_thread_groups, set_thread_res_gid, set_thread_res_uid,
};
use serde::Serialize;

use super::owner::{NOBODY, Owner, USUAL_NOBODY};

/// The memory that a reader takes itself, in bytes: many times what the servers of one user need.
const MAX_DATA: u64 = 64 << 20;
/// Limits of a reader (getrlimit(2)): bytes of memory and of a file, and open files.
const LIMITS: [(Resource, u64); 4] =
    [(Resource::As, 4 << 30), (Resource::Fsize, 1 << 20), (Resource::Nofile, 256), (Resource::Core, 0)];

pub(super) fn send(to: OwnedFd, answer: &impl Serialize) -> io::Result<()> {
    let mut to = BufWriter::new(File::from(to));
    serde_json::to_writer(&mut to, answer)?;
    to.flush()
}

/// The user and its groups, no powers, limits, and no life after this program. Its user can't look into it.
#[expect(clippy::disallowed_methods, reason = "its own file in /proc")]
pub(super) fn become_owner(owner: &Owner, parent: Pid) -> io::Result<()> {
    for signal in (1..32).filter(|signal| *signal != libc::SIGPIPE) {
        // SAFETY: the default action needs no handler, which would act for the parent on a signal of this user's.
        #[allow(unsafe_code)]
        unsafe {
            libc::signal(signal, libc::SIG_DFL);
        }
    }
    // Where memory is short, it goes first. Not every kernel lets it.
    let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
    // Who waits for the end of the output of this program does not wait for a reader that is stuck.
    let (_, nowhere) = pipe_with(PipeFlags::CLOEXEC)?;
    dup2_stdin(&nowhere)?;
    dup2_stdout(&nowhere)?;
    dup2_stderr(&nowhere)?;
    if owner.is_another() {
        let sets = capabilities(None)?;
        let effective = sets.effective | ((CapabilitySet::SETUID | CapabilitySet::SETGID) & sets.permitted);
        set_capabilities(None, CapabilitySets { effective, ..sets })?;
        set_keep_capabilities(true)?;
        let (uid, groups) = (Uid::from_raw(owner.uid), owner.groups.iter().map(|gid| Gid::from_raw(*gid)));
        let gid = groups.clone().next().unwrap_or(Gid::from_raw(NOBODY));
        set_thread_groups(&groups.collect::<Vec<_>>())?;
        set_thread_res_gid(gid, gid, gid)?;
        // A container may have only the usual number.
        let usual = Uid::from_raw(USUAL_NOBODY);
        let is_nobody = owner.uid == NOBODY;
        set_thread_res_uid(uid, uid, uid).or_else(|error| match error {
            Errno::INVAL if is_nobody => set_thread_res_uid(usual, usual, usual),
            error => Err(error),
        })?;
    }
    limit_capabilities(CapabilitySet::SYS_PTRACE, CapabilitySet::SYS_PTRACE)?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    for (resource, limit) in LIMITS {
        let limit = getrlimit(resource).maximum.map_or(limit, |maximum| maximum.min(limit));
        setrlimit(resource, Rlimit { current: Some(limit), maximum: Some(limit) })?;
    }
    // What runs in it, such as `postgres -C`, may have more.
    let maximum = getrlimit(Resource::Data).maximum;
    let current = Some(maximum.map_or(MAX_DATA, |most| most.min(MAX_DATA)));
    setrlimit(Resource::Data, Rlimit { current, maximum })?;
    // A change of the user ends it (prctl(2)).
    set_parent_process_death_signal(Some(Signal::KILL))?;
    if getppid() == Some(parent) { Ok(()) } else { Err(Errno::SRCH.into()) }
}

/// Keeps of this thread's capabilities `permitted`, with `effective` in effect. No program that it starts gets more.
pub fn limit_capabilities(effective: CapabilitySet, permitted: CapabilitySet) -> io::Result<()> {
    let held = capabilities(None)?.permitted;
    set_no_new_privs(true)?;
    for capability in (held - permitted).iter() {
        // Without CAP_SETPCAP it stays in the bounding set, which gives nothing to a process that executes nothing.
        let _ = remove_capability_from_bounding_set(capability);
    }
    let sets = CapabilitySets {
        effective: effective & held,
        permitted: permitted & held,
        inheritable: CapabilitySet::empty(),
    };
    Ok(set_capabilities(None, sets)?)
}
