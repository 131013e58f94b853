//! The system calls that a reader may not make, whatever a flaw in it would make of what it reads: a list for seccomp(2), by the numbers of
//! this architecture. Each returns EPERM. On architectures that are not listed there is no filter.

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(super) fn install() -> std::io::Result<()> {
    Ok(())
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(super) use listed::install;

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod listed {
    use std::io;

    use libc::*;

    /// AUDIT_ARCH_X86_64 and AUDIT_ARCH_AARCH64 (linux/audit.h).
    #[cfg(target_arch = "x86_64")]
    const ARCHITECTURE: u32 = 0xc000_003e;
    #[cfg(target_arch = "aarch64")]
    const ARCHITECTURE: u32 = 0xc000_00b7;
    /// From here on numbers are those of x32.
    const OTHER_NUMBERS: u32 = 0x4000_0000;

    /// Programs and processes, the memory of others, networks, files and their names, mounts, users, and the kernel.
    #[rustfmt::skip]
    const DENIED: &[c_long] = &[
        SYS_execve, SYS_execveat, SYS_clone, SYS_clone3, SYS_unshare, SYS_setns,
        SYS_kill, SYS_tkill, SYS_tgkill, SYS_rt_sigqueueinfo, SYS_rt_tgsigqueueinfo, SYS_pidfd_send_signal, SYS_pidfd_open,
        SYS_pidfd_getfd, SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev, SYS_process_madvise, SYS_kcmp, SYS_move_pages,
        SYS_migrate_pages, SYS_setpriority, SYS_sched_setscheduler, SYS_sched_setparam, SYS_sched_setattr, SYS_sched_setaffinity,
        SYS_ioprio_set, SYS_prlimit64,
        SYS_socket, SYS_socketpair, SYS_connect, SYS_bind, SYS_listen, SYS_accept, SYS_accept4,
        SYS_io_uring_setup, SYS_io_uring_enter, SYS_io_uring_register, SYS_bpf, SYS_perf_event_open, SYS_userfaultfd,
        SYS_openat2, SYS_open_by_handle_at, SYS_unlinkat, SYS_renameat2, SYS_mkdirat, SYS_mknodat, SYS_linkat,
        SYS_symlinkat, SYS_fchmod, SYS_fchmodat, SYS_fchown, SYS_fchownat, SYS_truncate, SYS_ftruncate, SYS_fallocate,
        SYS_utimensat, SYS_setxattr, SYS_lsetxattr, SYS_fsetxattr, SYS_removexattr, SYS_lremovexattr, SYS_fremovexattr,
        SYS_mount, SYS_umount2, SYS_move_mount, SYS_open_tree, SYS_fsopen, SYS_fsmount, SYS_pivot_root, SYS_chroot,
        SYS_setuid, SYS_setgid, SYS_setreuid, SYS_setregid, SYS_setresuid, SYS_setresgid, SYS_setfsuid, SYS_setfsgid,
        SYS_setgroups, SYS_capset, SYS_keyctl, SYS_add_key, SYS_request_key, SYS_shmat, SYS_msgget, SYS_semget, SYS_mq_open,
        SYS_init_module, SYS_finit_module, SYS_delete_module, SYS_kexec_load, SYS_reboot, SYS_personality, SYS_quotactl,
    ];
    #[cfg(target_arch = "x86_64")]
    #[rustfmt::skip]
    const DENIED_NAMES: &[c_long] = &[
        SYS_fork, SYS_vfork, SYS_setrlimit, SYS_renameat, SYS_creat, SYS_unlink, SYS_rename, SYS_mkdir, SYS_rmdir, SYS_mknod, SYS_link, SYS_symlink,
        SYS_chmod, SYS_chown, SYS_lchown, SYS_utime, SYS_utimes, SYS_futimesat,
    ];
    #[cfg(target_arch = "aarch64")]
    /// renameat(2) and setrlimit(2), whose numbers not every C library has.
    const DENIED_NAMES: &[c_long] = &[38, 164];
    /// The calls that open a file, each with the place of its flags.
    #[cfg(target_arch = "x86_64")]
    const OPENS: &[(c_long, u32)] = &[(SYS_open, 1), (SYS_openat, 2)];
    #[cfg(target_arch = "aarch64")]
    const OPENS: &[(c_long, u32)] = &[(SYS_openat, 2)];
    const WRITES: c_int = O_WRONLY | O_RDWR | O_CREAT | O_TRUNC;

    /// The filter, for this process until its end. A kernel without filters has none, and judges by the user alone.
    pub(in super::super) fn install() -> io::Result<()> {
        let mut filter = filter();
        let program = sock_fprog {
            len: u16::try_from(filter.len()).map_err(io::Error::other)?,
            filter: filter.as_mut_ptr(),
        };
        // SAFETY: the kernel copies the filter, which is there until then.
        #[allow(unsafe_code)]
        let done = unsafe {
            prctl(
                PR_SET_SECCOMP,
                c_ulong::from(SECCOMP_MODE_FILTER),
                &raw const program,
            )
        };
        match io::Error::last_os_error() {
            error if done != 0 && error.raw_os_error() != Some(EINVAL) => Err(error),
            _ => Ok(()),
        }
    }

    /// Instructions on the data of a call (`struct seccomp_data`): its number at 0, its architecture at 4, its arguments from 16 on.
    fn filter() -> Vec<sock_filter> {
        let one = |code: u32, k: u32, jt, jf| sock_filter {
            code: u16::try_from(code).unwrap_or_default(),
            jt,
            jf,
            k,
        };
        let load = |offset| one(BPF_LD | BPF_W | BPF_ABS, offset, 0, 0);
        let jump = |test: u32, k: u32, jt, jf| one(BPF_JMP | BPF_K | test, k, jt, jf);
        let number = |call: c_long| u32::try_from(call).unwrap_or(u32::MAX);
        let returns = |what| one(BPF_RET | BPF_K, what, 0, 0);
        let refuses = returns(SECCOMP_RET_ERRNO | EPERM as u32);
        let mut filter = vec![
            load(4),
            jump(BPF_JEQ, ARCHITECTURE, 1, 0),
            refuses,
            load(0),
            jump(BPF_JGE, OTHER_NUMBERS, 0, 1),
            refuses,
        ];
        for &call in DENIED.iter().chain(DENIED_NAMES) {
            filter.extend([jump(BPF_JEQ, number(call), 0, 1), refuses]);
        }
        for &(call, place) in OPENS {
            filter.extend([
                jump(BPF_JEQ, number(call), 0, 4),
                load(16 + 8 * place),
                jump(BPF_JSET, WRITES as u32, 0, 1),
                refuses,
                returns(SECCOMP_RET_ALLOW),
            ]);
        }
        filter.push(returns(SECCOMP_RET_ALLOW));
        filter
    }
}
