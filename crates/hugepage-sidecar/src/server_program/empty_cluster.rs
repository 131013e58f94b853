//! Asks a server's program on a data directory without data, of which `postgres -C` reports the size of shared memory for any settings.
//! It has a version and a control file, which `pg_resetwal -f` writes; no configuration file is read.
//!
//! The program gets input that may be hostile. It runs as the user of this process, and leaves no process behind.

use std::ffi::OsString;
use std::fs::{self, File, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use hugepage_facts::StartAnswer;
use hugepage_host::readers;
use hugepage_kernel::Bytes;
use hugepage_start::{Ending, StartQuestion, data_directory};
use rustix::io::{Errno, FdFlags, fcntl_setfd};
use rustix::process::{
    Pid, Resource, Rlimit, Signal, WaitId, WaitIdOptions, geteuid, getrlimit, kill_process_group,
    set_parent_process_death_signal, setrlimit, setsid, waitid,
};
use rustix::thread::set_no_new_privs;
use tempfile::TempDir;

use super::check;

/// Timeout of `postgres -C`, which usually takes hundredths of a second.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);
/// How the name of a directory begins.
const PREFIX: &str = "hugepage-sidecar-";
/// Longer than any reader lives.
const LEFT: Duration = Duration::from_secs(600);
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

/// The directory, and the server that answers for it.
#[derive(Debug)]
pub struct EmptyCluster {
    program: PathBuf,
    major: u32,
    /// Removed at the end.
    directory: TempDir,
}

impl EmptyCluster {
    /// For the server `program` of version `major`. The error says why there is none.
    pub fn new(program: &Path, major: u32, wal_segment_mb: u32) -> Result<Self, String> {
        let reset = check(&program.with_file_name("pg_resetwal"))?;
        let (directory, control) = create(major).map_err(|error| {
            format!(
                "could not create a data directory in {}: {error}",
                std::env::temp_dir().display()
            )
        })?;
        let cluster = Self {
            program: program.to_owned(),
            major,
            directory,
        };
        let wal_segment_size = format!("--wal-segsize={wal_segment_mb}").into();
        let arguments = [
            "-f".into(),
            "-D".into(),
            cluster.directory.path().into(),
            wal_segment_size,
        ];
        let output = run(&reset, &arguments, ANSWER_TIMEOUT)?;
        // It goes on to clear pg_wal, where there is nothing; the control file is what counts.
        match control.metadata().is_ok_and(|found| found.len() > 0) {
            // What it refuses without a setting is not the fault of settings.
            true => match cluster.shared_memory(std::iter::empty()) {
                StartAnswer::Starts(_) => Ok(cluster),
                StartAnswer::Refuses(why) | StartAnswer::Unknown(why) => Err(why),
            },
            false => Err(format!(
                "pg_resetwal failed: {}",
                String::from_utf8_lossy(&output.stderr)
                    .lines()
                    .last()
                    .unwrap_or(&output.status.to_string())
            )),
        }
    }

    /// The size of shared memory with these settings, of which the last one of a name is effective.
    pub fn shared_memory<'a>(
        &self,
        settings: impl Iterator<Item = (&'a str, &'a str)>,
    ) -> StartAnswer<Bytes> {
        let no_file = [("config_file", "/dev/null")];
        let question = StartQuestion {
            major: self.major,
            arguments: &[],
            data: self.directory.path(),
            settings: settings
                .chain(no_file)
                .map(|(name, value)| (name, value.into()))
                .collect(),
            stand_in: Some(self.directory.path()),
            default_page_size: None,
        };
        question.ask(|arguments| ending(run(&self.program, arguments, ANSWER_TIMEOUT)))
    }
}

/// The directory, and its control file.
fn create(major: u32) -> io::Result<(TempDir, File)> {
    remove_left(&std::env::temp_dir());
    let directory = tempfile::Builder::new()
        .prefix(PREFIX)
        .permissions(Permissions::from_mode(0o700))
        .tempdir()?;
    let mut made = data_directory::fill(directory.path(), format!("{major}\n").as_bytes(), &[])?;
    Ok((directory, made.pop().ok_or(io::ErrorKind::NotFound)?))
}

/// Removes from `temporary` what readers of this user had that were killed.
#[expect(clippy::disallowed_methods, reason = "what this program has made")]
fn remove_left(temporary: &Path) {
    for entry in fs::read_dir(temporary).into_iter().flatten().flatten() {
        let is_left = |found: Metadata| {
            let age = found.modified().ok().and_then(|at| at.elapsed().ok());
            found.is_dir() && found.uid() == geteuid().as_raw() && age.is_some_and(|age| age > LEFT)
        };
        // Not that of a link.
        if entry.file_name().to_string_lossy().starts_with(PREFIX)
            && entry.metadata().is_ok_and(is_left)
        {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Runs `program` for at most `timeout`. The error is the reason why there is no output.
fn run(program: &Path, arguments: &[OsString], timeout: Duration) -> Result<Output, String> {
    let timeout = readers::time_for_one(timeout);
    let mut command = Command::new(program);
    command
        .args(arguments)
        .env_clear()
        .env("LC_ALL", "C")
        .current_dir("/");
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    close_on_exec().map_err(|error| format!("could not close files: {error}"))?;
    // SAFETY: `confine` makes system calls only; it neither allocates nor takes a lock.
    #[allow(unsafe_code)]
    unsafe {
        command.pre_exec(|| Ok(confine(&LIMITS)?));
    }
    let child = command
        .spawn()
        .map_err(|error| format!("could not run {}: {error}", program.display()))?;
    answer(child, timeout)
}

/// How a server's program ended that was asked about a start. An end without the words of the server says nothing.
fn ending(output: Result<Output, String>) -> Ending {
    const OF_THE_ACCOUNT: [&str; 2] = ["Permission denied", "Operation not permitted"];
    let Output {
        status,
        stdout,
        stderr,
    } = match output {
        Ok(output) => output,
        Err(why) => return Ending::NoAnswer(why),
    };
    let [stdout, stderr] = [stdout, stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    let stderr = match Ending::new(status, stdout, &stderr) {
        Ending::Failure(stderr) => stderr,
        ending => return ending,
    };
    // write_stderr begins with the name of the program where elog has a level.
    let is_of_server = ["FATAL:  ", "ERROR:  "]
        .iter()
        .any(|level| stderr.contains(level))
        || stderr
            .lines()
            .last()
            .is_some_and(|line| line.starts_with("postgres: "));
    let error = error_of(&stderr);
    if is_of_server && !OF_THE_ACCOUNT.iter().any(|text| error.contains(text)) {
        Ending::Failure(error)
    } else {
        Ending::NoAnswer(error)
    }
}

/// The server's message: the line of the error, with its detail.
fn error_of(stderr: &str) -> String {
    let after = |level: &str| {
        stderr
            .lines()
            .find_map(|line| Some(line.split_once(level)?.1.trim().to_owned()))
    };
    let message = after("FATAL:")
        .or_else(|| after("ERROR:"))
        .or_else(|| stderr.lines().last().map(str::to_owned));
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
        let limit = getrlimit(*resource)
            .maximum
            .map_or(*limit, |maximum| maximum.min(*limit));
        setrlimit(
            *resource,
            Rlimit {
                current: Some(limit),
                maximum: Some(limit),
            },
        )?;
    }
    Ok(())
}

/// Marks every file that this process inherited; those that Rust opened are marked.
fn close_on_exec() -> io::Result<()> {
    for entry in std::fs::read_dir("/proc/self/fd")? {
        let number = entry?
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok());
        let Some(number) = number.filter(|number| *number > 2) else {
            continue;
        };
        // SAFETY: the number is used within this call only; a file that was closed meanwhile is an error.
        #[allow(unsafe_code)]
        let file = unsafe { std::os::fd::BorrowedFd::borrow_raw(number) };
        let _ = fcntl_setfd(file, FdFlags::CLOEXEC);
    }
    Ok(())
}

/// Waits for the end of the child and ends every process of its session. A pipe holds 64 KiB: who prints more does not end.
fn answer(mut child: Child, timeout: Duration) -> Result<Output, String> {
    let until = Instant::now() + timeout;
    let pid = Pid::from_child(&child);
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
    let output = child
        .wait_with_output()
        .map_err(|error| error.to_string())?;
    if ended.map_err(|error| error.to_string())? {
        Ok(output)
    } else {
        Err(format!(
            "it did not end within {:.1} s",
            timeout.as_secs_f64()
        ))
    }
}

#[cfg(test)]
mod tests {
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
        assert_eq!(
            (output.status.code(), &*output.stdout, &*output.stderr),
            (Some(3), &b"17\n"[..], &b"oops\n"[..])
        );
        assert!(
            run(Path::new("/none"), &[], SECOND)
                .unwrap_err()
                .contains("could not run")
        );
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
        assert!(
            begun.elapsed() < 5 * SECOND && output.stdout.len() < 10,
            "{output:?}"
        );
        let error = shell("exec sleep 60", SECOND / 2).unwrap_err();
        assert!(
            begun.elapsed() < 5 * SECOND && error.contains("did not end"),
            "{error}"
        );
    }

    #[test]
    fn read_no_endless_output() {
        let error = shell(
            "while :; do echo 0123456789012345678901234567890123456789; done",
            SECOND / 2,
        )
        .unwrap_err();
        assert!(error.contains("did not end"), "{error}");
    }

    #[test]
    fn the_servers_own_words() {
        for (stderr, message) in [
            (
                "2026-01-01 GMT [1] LOG:  x\n2026-01-01 GMT [1] FATAL:  no \"a\"\n",
                "no \"a\"",
            ),
            ("FATAL:  a\nDETAIL:  b\n", "a: b"),
            ("odd\n", "odd"),
        ] {
            assert_eq!(error_of(stderr), message);
        }
    }

    #[test]
    fn what_is_no_refusal() {
        for (stderr, is_one) in [
            (
                "2026-01-01 GMT [1] FATAL:  unrecognized configuration parameter \"a\"\n",
                true,
            ),
            ("LOG:  x\npostgres: a must be less than b\n", true),
            (
                "FATAL:  could not access file \"a\": Permission denied\n",
                false,
            ),
            ("Killed\n", false),
        ] {
            let output = Output {
                status: ExitStatus::from_raw(1 << 8),
                stdout: Vec::new(),
                stderr: stderr.into(),
            };
            assert_eq!(
                matches!(ending(Ok(output)), Ending::Failure(_)),
                is_one,
                "{stderr}"
            );
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
            assert_eq!(
                ending(shell(script, 10 * SECOND)),
                Ending::NoAnswer(expected),
                "{script}"
            );
        }
    }

    #[test]
    fn what_a_killed_reader_left_is_removed() {
        let place = tempfile::tempdir().unwrap();
        for (name, age) in [("left", LEFT * 2), ("in_use", LEFT / 2)] {
            let directory = place.path().join(format!("{PREFIX}{name}"));
            fs::create_dir_all(directory.join("global")).unwrap();
            let then = std::time::SystemTime::now() - age;
            File::open(directory).unwrap().set_modified(then).unwrap();
        }
        std::os::unix::fs::symlink("/", place.path().join(format!("{PREFIX}link"))).unwrap();
        remove_left(place.path());
        let mut names: Vec<_> = fs::read_dir(place.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        names.sort();
        assert_eq!(
            names,
            [format!("{PREFIX}in_use"), format!("{PREFIX}link")].map(std::ffi::OsString::from)
        );
    }

    /// Where a server is installed.
    #[test]
    fn ask_an_installed_server() {
        let installed = (15..30).find_map(|major| {
            Some((
                major,
                super::super::packaged(major).find(|path| path.is_file())?,
            ))
        });
        let Some((major, program)) = installed else {
            return;
        };
        if rustix::process::geteuid().is_root() {
            // Its programs refuse root; the scenarios ask it as its user.
            return;
        }
        let cluster = EmptyCluster::new(&program, major, 16).unwrap();
        let place = cluster.directory.path().to_owned();
        let size = |settings: &[(&'static str, &'static str)]| {
            cluster.shared_memory(settings.iter().copied())
        };
        let answers = (
            size(&[("shared_buffers", "1GB")]),
            size(&[("shared_buffers", "2GB")]),
        );
        let (StartAnswer::Starts(small), StartAnswer::Starts(large)) = answers else {
            panic!("{answers:?}")
        };
        assert!(
            small > Bytes(1 << 30) && large.0 - small.0 > 1 << 30,
            "{small} {large}"
        );
        for (name, value) in [
            ("max_connections", "x"),
            ("max_connections", "2"),
            ("nonesuch", "1"),
            ("wal_level", "minimal"),
        ] {
            let refused = size(&[(name, value)]);
            assert!(
                matches!(&refused, StartAnswer::Refuses(error) if error.contains(name)),
                "{refused:?}"
            );
        }
        drop(cluster);
        assert!(!place.exists());
    }
}
