//! What a child does first, and last: it becomes what it is, and sends its answer.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::iter;
use std::ops::Range;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

use rustix::fs::Mode;
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{
    DumpableBehavior, Gid, Pid, Resource, Rlimit, Signal, Uid, chdir, getpid, getppid,
    getpriority_user, getrlimit, set_dumpable_behavior, set_parent_process_death_signal, setrlimit,
    setsid, umask,
};
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, remove_capability_from_bounding_set,
    set_capabilities, set_keep_capabilities, set_no_new_privs, set_thread_groups,
    set_thread_res_gid, set_thread_res_uid,
};
use serde::Serialize;

use hugepage_facts::Owner;

use super::filter;
use super::owner::{self, NOBODY, USUAL_NOBODY};

/// A reader's own user is this and its process id: a number that no account, container or service has (systemd's UIDS-GIDS.md).
const FIRST_READER: u32 = 0x7f80_0000;
/// And where the user namespace has no such number.
const OF_CONTAINER: Range<u32> = 65520..65534;
/// The memory that a reader takes itself, in bytes: many times what the servers of one user need.
const MAX_DATA: u64 = 64 << 20;
/// Limits of a reader (getrlimit(2)): bytes of memory and of a file, and open files.
const LIMITS: [(Resource, u64); 4] = [
    (Resource::As, 4 << 30),
    (Resource::Fsize, 1 << 20),
    (Resource::Nofile, 256),
    (Resource::Core, 0),
];

pub(super) fn send(to: OwnedFd, answer: &impl Serialize) -> io::Result<()> {
    let mut to = BufWriter::new(File::from(to));
    serde_json::to_writer(&mut to, answer)?;
    to.flush()
}

/// What a child of this program is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// It reads files as the owner, whose it is in no other way.
    Reader,
    /// It runs a program as the owner.
    Program,
    /// It opens files of /proc for a reader.
    Door,
}

/// The user that `role` asks for, no powers, limits, nothing of this program's but the files `kept`, and no life after it.
#[expect(clippy::disallowed_methods, reason = "its own file in /proc")]
pub(super) fn become_child(
    owner: &Owner,
    role: Role,
    kept: &[BorrowedFd<'_>],
    parent: Pid,
) -> io::Result<()> {
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
    drop(nowhere);
    close_others(kept)?;
    setsid()?;
    umask(Mode::RWXG | Mode::RWXO);
    // SAFETY: this process has one thread.
    #[allow(unsafe_code)]
    unsafe {
        libc::clearenv();
    }
    if owner::is_another(owner) {
        chdir("/")?;
        become_user(owner, role)?;
    }
    let kept = match role {
        Role::Door => CapabilitySet::SYS_PTRACE,
        Role::Reader | Role::Program => CapabilitySet::empty(),
    };
    limit_capabilities(kept, kept)?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    for (resource, limit) in LIMITS {
        let limit = getrlimit(resource)
            .maximum
            .map_or(limit, |maximum| maximum.min(limit));
        setrlimit(
            resource,
            Rlimit {
                current: Some(limit),
                maximum: Some(limit),
            },
        )?;
    }
    // What runs in it, such as `postgres -C`, may have more.
    let maximum = getrlimit(Resource::Data).maximum;
    let current = Some(maximum.map_or(MAX_DATA, |most| most.min(MAX_DATA)));
    setrlimit(Resource::Data, Rlimit { current, maximum })?;
    // A change of the user ends it (prctl(2)).
    set_parent_process_death_signal(Some(Signal::KILL))?;
    if getppid() != Some(parent) {
        return Err(Errno::SRCH.into());
    }
    match role {
        Role::Program => Ok(()),
        Role::Reader | Role::Door => filter::install(),
    }
}

/// Closes all files but standard ones and these.
#[expect(clippy::disallowed_methods, reason = "its own files in /proc")]
fn close_others(kept: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut open = Vec::new();
    for entry in std::fs::read_dir("/proc/self/fd")? {
        let number = entry?.file_name().to_string_lossy().parse();
        open.push(number.map_err(io::Error::other)?);
    }
    let is_kept = |number| number < 3 || kept.iter().any(|file| file.as_raw_fd() == number);
    for number in open.into_iter().filter(|number| !is_kept(*number)) {
        // SAFETY: of the values that have a file none is used or dropped in this process.
        #[allow(unsafe_code)]
        unsafe {
            libc::close(number);
        }
    }
    Ok(())
}

/// Makes the real, the effective and the saved user those of a program's owner, of others one that is nobody's: whoever has that number
/// could send it signals, and set its limits and its priority. A reader opens files as the owner, by setfsuid(2), with which comes
/// nothing else.
fn become_user(owner: &Owner, role: Role) -> io::Result<()> {
    let becoming = CapabilitySet::SETUID | CapabilitySet::SETGID;
    raise(becoming)?;
    set_keep_capabilities(true)?;
    let groups: Vec<_> = owner.groups.iter().map(|gid| Gid::from_raw(*gid)).collect();
    let gid = groups.first().copied().unwrap_or(Gid::from_raw(NOBODY));
    set_thread_groups(&groups)?;
    if role == Role::Program {
        set_thread_res_gid(gid, gid, gid)?;
        let uid = Uid::from_raw(owner.uid);
        return Ok(set_thread_res_uid(uid, uid, uid)?);
    }
    let own = FIRST_READER + u32::try_from(getpid().as_raw_pid()).unwrap_or_default();
    // A container may have only the usual numbers.
    let mut numbers = iter::once(own)
        .chain(OF_CONTAINER)
        .filter(|number| getpriority_user(Uid::from_raw(*number)) == Err(Errno::SRCH));
    let become_one = |number| {
        let gid = Gid::from_raw(number);
        set_thread_res_gid(gid, gid, gid)?;
        let uid = Uid::from_raw(number);
        set_thread_res_uid(uid, uid, uid)
    };
    if !numbers.any(|number| become_one(number).is_ok()) {
        return Err(io::Error::other("no user is left that has no process"));
    }
    raise(becoming)?;
    let set = |uid: u32, gid: u32| {
        // SAFETY: these change the user and the group of this thread, and nothing else.
        #[allow(unsafe_code)]
        unsafe {
            libc::setfsgid(gid);
            libc::setfsuid(uid);
            // What they return is what was before.
            (libc::setfsuid(u32::MAX), libc::setfsgid(u32::MAX))
        }
    };
    let is_set = |uid: u32, gid: u32| {
        let numbers = [uid, gid].map(u32::cast_signed);
        <[i32; 2]>::from(set(uid, gid)) == numbers
    };
    let is_owner = is_set(owner.uid, gid.as_raw())
        || owner::is_nobody(owner) && is_set(USUAL_NOBODY, USUAL_NOBODY);
    is_owner.then_some(()).ok_or_else(|| Errno::PERM.into())
}

/// Puts capabilities that are permitted into effect.
fn raise(capability: CapabilitySet) -> rustix::io::Result<()> {
    let sets = capabilities(None)?;
    let effective = sets.effective | capability & sets.permitted;
    set_capabilities(None, CapabilitySets { effective, ..sets })
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
