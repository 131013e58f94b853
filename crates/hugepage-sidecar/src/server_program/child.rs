//! Runs the program of a server on input that may be hostile, as the user of this process, and leaves no process behind.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use hugepage_start::Ending;
use rustix::io::{Errno, FdFlags, fcntl_setfd};
use rustix::process::{
    Pid, Resource, Rlimit, Signal, WaitId, WaitIdOptions, getrlimit, kill_process_group,
    set_parent_process_death_signal, setrlimit, setsid, waitid,
};
use rustix::thread::set_no_new_privs;

use hugepage_host::readers;

/// Limits of the child (getrlimit(2)): bytes of memory and of a file, seconds of processor time. PostgreSQL writes
/// postmaster.pid, and maps its libraries but no shared memory. It starts no process; without any, none can stay behind.
const LIMITS: [(Resource, u64); 5] = [
    (Resource::As, 2 << 30),
    (Resource::Fsize, 1 << 20),
    (Resource::Cpu, 10),
    (Resource::Core, 0),
    (Resource::Nproc, 0),
];
/// How often the end of the child is looked for.
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// Runs `program` for at most `timeout`. The error is the reason why there is no output.
pub fn run(program: &Path, arguments: &[OsString], timeout: Duration) -> Result<Output, String> {
    let timeout = readers::time_for_one(timeout);
    let mut command = Command::new(program);
    command.args(arguments).env_clear().env("LC_ALL", "C").current_dir("/");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    close_on_exec().map_err(|error| format!("could not close files: {error}"))?;
    // SAFETY: `confine` makes system calls only; it neither allocates nor takes a lock.
    #[allow(unsafe_code)]
    unsafe {
        command.pre_exec(|| Ok(confine(&LIMITS)?));
    }
    let child = command.spawn().map_err(|error| format!("could not run {}: {error}", program.display()))?;
    answer(child, timeout)
}

/// How a server's program ended that was asked about a start. An end without the words of the server says nothing.
pub fn ending(output: Result<Output, String>) -> Ending {
    const OF_THE_ACCOUNT: [&str; 2] = ["Permission denied", "Operation not permitted"];
    let Output { status, stdout, stderr } = match output {
        Ok(output) => output,
        Err(why) => return Ending::NoAnswer(why),
    };
    let [stdout, stderr] = [stdout, stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    let stderr = match Ending::new(status, stdout, &stderr) {
        Ending::Failure(stderr) => stderr,
        ending => return ending,
    };
    // write_stderr begins with the name of the program where elog has a level.
    let is_of_server = ["FATAL:  ", "ERROR:  "].iter().any(|level| stderr.contains(level))
        || stderr.lines().last().is_some_and(|line| line.starts_with("postgres: "));
    let error = error_of(&stderr);
    if is_of_server && !OF_THE_ACCOUNT.iter().any(|text| error.contains(text)) {
        Ending::Failure(error)
    } else {
        Ending::NoAnswer(error)
    }
}

/// The server's message: the line of the error, with its detail.
fn error_of(stderr: &str) -> String {
    let after = |level: &str| stderr.lines().find_map(|line| Some(line.split_once(level)?.1.trim().to_owned()));
    let message = after("FATAL:").or_else(|| after("ERROR:")).or_else(|| stderr.lines().last().map(str::to_owned));
    let message = message.unwrap_or_default();
    match after("DETAIL:") {
        Some(detail) => format!("{message}: {detail}"),
        None => message,
    }
}

/// In the child: no terminal (TIOCSTI writes commands into a session's), no privileges by exec, limits, no life after its parent.
fn confine(limits: &[(Resource, u64)]) -> Result<(), Errno> {
    setsid()?;
    set_no_new_privs(true)?;
    set_parent_process_death_signal(Some(Signal::KILL))?;
    for (resource, limit) in limits {
        // Only root may raise a limit.
        let limit = getrlimit(*resource).maximum.map_or(*limit, |maximum| maximum.min(*limit));
        setrlimit(*resource, Rlimit { current: Some(limit), maximum: Some(limit) })?;
    }
    Ok(())
}

/// Marks every file that this process inherited; those that Rust opened are marked.
fn close_on_exec() -> io::Result<()> {
    for entry in std::fs::read_dir("/proc/self/fd")? {
        let number = entry?.file_name().to_str().and_then(|name| name.parse().ok());
        let Some(number) = number.filter(|number| *number > 2) else { continue };
        // SAFETY: the number is used within this call only; a file that was closed meanwhile is an error.
        #[allow(unsafe_code)]
        let file = unsafe { std::os::fd::BorrowedFd::borrow_raw(number) };
        let _ = fcntl_setfd(file, FdFlags::CLOEXEC);
    }
    Ok(())
}

/// Waits for the end of the child and ends every process of its session. A pipe holds 64 KiB: who prints more does not end.
fn answer(mut child: Child, timeout: Duration) -> Result<Output, String> {
    let (until, pid) = (Instant::now() + timeout, Pid::from_child(&child));
    // It is not waited for before its group is killed, so that its number belongs to no other one.
    let flags = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    let has_ended = || waitid(WaitId::Pid(pid), flags).map(|ended| ended.is_some());
    let mut ended = has_ended();
    while ended == Ok(false) && Instant::now() < until {
        std::thread::sleep(POLL_INTERVAL);
        ended = has_ended();
    }
    if kill_process_group(pid, Signal::KILL).is_err() {
        let _ = child.kill();
    }
    let output = child.wait_with_output().map_err(|error| error.to_string())?;
    match ended.map_err(|error| error.to_string())? {
        true => Ok(output),
        false => Err(format!("it did not end within {:.1} s", timeout.as_secs_f64())),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsRawFd;
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn shell(script: &str, timeout: Duration) -> Result<Output, String> {
        run(Path::new("/bin/sh"), &["-c".into(), script.into()], timeout)
    }

    #[test]
    fn return_what_a_program_prints() {
        let output = shell("echo 17; echo oops >&2; exit 3", 10 * SECOND).unwrap();
        assert_eq!((output.status.code(), &*output.stdout, &*output.stderr), (Some(3), &b"17\n"[..], &b"oops\n"[..]));
        assert!(run(Path::new("/none"), &[], SECOND).unwrap_err().contains("could not run"));
    }

    #[test]
    fn give_a_program_nothing_of_root() {
        let leaked = File::open("/etc/hosts").unwrap();
        fcntl_setfd(&leaked, FdFlags::empty()).unwrap();
        // What the shell can do by itself: it starts no process, unless it is root's.
        let script = format!(
            "pwd; read -r variables < /proc/$$/environ; echo $variables; read -r line || echo no input
             while read -r line; do case $line in NoNewPrivs*) echo $line; esac; done < /proc/$$/status
             true < /dev/tty || echo no tty; [ /proc/$$/fd/0 -ef /dev/null ] && echo null
             [ -e /proc/$$/fd/{} ] || echo nothing leaked",
            leaked.as_raw_fd()
        );
        let Output { stdout, .. } = shell(&script, 10 * SECOND).unwrap();
        assert_eq!(
            str::from_utf8(&stdout).unwrap(),
            "/\nLC_ALL=C\nno input\nNoNewPrivs: 1\nno tty\nnull\nnothing leaked\n"
        );
    }

    #[test]
    fn end_with_the_program() {
        let begun = Instant::now();
        // A process in the background keeps the pipe open. Root may have more processes than its limit.
        let output = shell("sleep 60 & echo 5", 10 * SECOND).unwrap();
        assert!(begun.elapsed() < 5 * SECOND && output.stdout.len() < 10, "{output:?}");
        let error = shell("exec sleep 60", SECOND / 2).unwrap_err();
        assert!(begun.elapsed() < 5 * SECOND && error.contains("did not end"), "{error}");
    }

    #[test]
    fn read_no_endless_output() {
        let error = shell("while :; do echo 0123456789012345678901234567890123456789; done", SECOND / 2).unwrap_err();
        assert!(error.contains("did not end"), "{error}");
    }

    #[test]
    fn the_servers_own_words() {
        for (stderr, message) in [
            ("2026-01-01 GMT [1] LOG:  x\n2026-01-01 GMT [1] FATAL:  no \"a\"\n", "no \"a\""),
            ("FATAL:  a\nDETAIL:  b\n", "a: b"),
            ("odd\n", "odd"),
        ] {
            assert_eq!(error_of(stderr), message);
        }
    }

    #[test]
    fn what_is_no_refusal() {
        for (stderr, is_one) in [
            ("2026-01-01 GMT [1] FATAL:  unrecognized configuration parameter \"a\"\n", true),
            ("LOG:  x\npostgres: a must be less than b\n", true),
            ("FATAL:  could not access file \"a\": Permission denied\n", false),
            ("Killed\n", false),
        ] {
            let output = Output { status: ExitStatus::from_raw(1 << 8), stdout: Vec::new(), stderr: stderr.into() };
            assert_eq!(matches!(ending(Ok(output)), Ending::Failure(_)), is_one, "{stderr}");
        }
    }

    /// Killed by the kernel for want of memory, or by its limit on processor time.
    #[test]
    fn who_was_killed_or_said_nothing_did_not_refuse() {
        for (script, end) in [
            ("kill -9 $$", "signal: 9 (SIGKILL)"),
            ("echo 'FATAL:  a' >&2; kill -15 $$", "signal: 15 (SIGTERM)"),
            ("exit 1", "exit status: 1"),
        ] {
            let expected = format!("the check of the configuration ended with {end}");
            assert_eq!(ending(shell(script, 10 * SECOND)), Ending::NoAnswer(expected), "{script}");
        }
    }
}
