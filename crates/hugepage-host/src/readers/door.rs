//! A process that opens, for a reader without capabilities, what the kernel shows of its user's processes only to whoever may trace
//! them: with Grid Infrastructure Oracle's program is setgid, and a container's may be root. It follows no path of a user's.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};

use hugepage_facts::Owner;
use hugepage_kernel::Root;
use hugepage_kernel::source::door;
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recv, recvmsg, send, sendmsg,
};

use super::owner;
use crate::processes::Credentials;

/// The files of a process that are opened.
const FILES: [&str; 13] = [
    "cgroup",
    "cmdline",
    "cwd",
    "environ",
    "exe",
    "fd",
    "limits",
    "maps",
    "mountinfo",
    "root",
    "smaps",
    "stat",
    "status",
];
/// Longer than any of their paths.
const MAX_PATH: usize = 100;

/// Answers a reader of the processes of `owner`, until that one has ended.
pub(super) fn serve(reader: &OwnedFd, owner: &Owner) -> io::Result<()> {
    let mut request = [0; 4 + MAX_PATH];
    loop {
        let (_, count) = recv(reader, &mut request, RecvFlags::empty())?;
        let Some((flags, path)) = request[..count].split_first_chunk() else {
            return Ok(());
        };
        let flags = OFlags::from_bits_retain(u32::from_ne_bytes(*flags));
        let opened = opened(owner, &String::from_utf8_lossy(path), flags);
        let errno = opened
            .as_ref()
            .err()
            .map_or(0, |errno| errno.raw_os_error());
        let files: Vec<_> = opened.iter().map(AsFd::as_fd).collect();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut with = SendAncillaryBuffer::new(&mut space);
        if !files.is_empty() {
            with.push(SendAncillaryMessage::ScmRights(&files));
        }
        let answer = errno.to_ne_bytes();
        sendmsg(
            reader,
            &[IoSlice::new(&answer)],
            &mut with,
            SendFlags::NOSIGNAL,
        )?;
    }
}

/// Opens a file of a process that the owner looks at, and that is still the owner's. Nobody looks at those of others.
#[expect(clippy::disallowed_methods, reason = "the kernel's files, by name")]
fn opened(owner: &Owner, path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
    const READING: OFlags = OFlags::PATH
        .union(OFlags::DIRECTORY)
        .union(OFlags::NONBLOCK)
        .union(OFlags::NOCTTY)
        .union(OFlags::CLOEXEC);
    let is_of = |word: &str, kind: fn(&u8) -> bool| {
        !word.is_empty() && word.bytes().all(|byte| kind(&byte))
    };
    let parts: Vec<_> = path.trim_start_matches('/').split('/').collect();
    let (is_known, pid) = match *parts {
        ["proc", pid, name] => (FILES.contains(&name), pid),
        ["proc", pid, "ns", kind] => (is_of(kind, u8::is_ascii_lowercase), pid),
        ["proc", pid, "fd", number] => (is_of(number, u8::is_ascii_digit), pid),
        _ => (false, ""),
    };
    let pid: i32 = pid.parse().map_err(|_| Errno::ACCESS)?;
    let is_still_its = || {
        let users = Credentials::read(&Root::live(), pid).ok_or(Errno::NOENT)?;
        let stands_for_others = owner::is_nobody(owner) || !owner::is_another(owner);
        Ok(stands_for_others || users.effective == owner.uid)
    };
    if !is_known || !owner.processes.contains(&pid) || !is_still_its()? {
        return Err(Errno::ACCESS);
    }
    openat(CWD, path, flags & READING | OFlags::CLOEXEC, Mode::empty())
}

/// Has this process ask `other` for what it may not open itself.
pub(super) fn use_for_proc(other: OwnedFd) {
    door::set(Box::new(move |path, flags| {
        let request = [&flags.bits().to_ne_bytes(), path.as_bytes()].concat();
        send(&other, &request, SendFlags::NOSIGNAL)?;
        let mut answer = [0; 4];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut with = RecvAncillaryBuffer::new(&mut space);
        let mut answers = [IoSliceMut::new(&mut answer)];
        let received = recvmsg(&other, &mut answers, &mut with, RecvFlags::CMSG_CLOEXEC)?;
        let mut files = with.drain().filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut files) => files.next(),
            _ => None,
        });
        match files.next() {
            Some(file) => Ok(file),
            None if received.bytes == answer.len() => {
                Err(io::Error::from_raw_os_error(i32::from_ne_bytes(answer)))
            }
            None => Err(Errno::IO.into()),
        }
    }));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Neither nobody's door nor another one opens anything of a process that its reader was not started for.
    #[test]
    fn only_what_was_asked_for() {
        let own = std::process::id().cast_signed();
        let nobody = Owner {
            uid: super::super::owner::NOBODY,
            ..Owner::default()
        };
        for owner in [nobody, owner::own()] {
            let may = |processes: &[i32], path: &str| {
                let owner = owner.of(processes.iter().copied());
                opened(&owner, path, OFlags::empty()).map(|_| ())
            };
            let maps = format!("/proc/{own}/maps");
            assert_eq!(may(&[own], &maps), Ok(()));
            for (processes, path) in [
                (&[][..], &*maps),
                (&[1], &maps),
                (&[own], "/proc/1/maps"),
                (&[own], &format!("/proc/{own}/mem")),
                (&[own], &format!("/proc/{own}/root/etc/passwd")),
                (&[own], "/etc/passwd"),
            ] {
                assert_eq!(may(processes, path), Err(Errno::ACCESS), "{path}");
            }
        }
    }
}
