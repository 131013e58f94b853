//! The processes below /proc (proc(5)): their status and stat, read without a walk of page tables or the mmap lock.

use std::time::{Duration, SystemTime};

use memchr::memrchr;

use crate::fields::{fields, first_number};
use crate::host::mounts::{self, Mount};
use crate::source::root::{UPTIME, if_there};
use crate::{Bytes, ReadError, Root};

/// The unit of times in /proc (`USER_HZ`), independent of the kernel's own clock.
const TICKS_PER_SECOND: u64 = 100;

/// The memory of one process; `None` if this kernel has no such line, or the process no longer has memory of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessStatus {
    /// `PPid`: its parent.
    pub parent: Option<i32>,
    /// `VmPTE`: its page tables.
    pub page_tables: Option<Bytes>,
    /// `RssAnon` (since 4.5): resident private memory.
    pub rss_anon: Option<Bytes>,
    /// `RssFile` (since 4.5): resident file pages.
    pub rss_file: Option<Bytes>,
    /// `RssShmem` (since 4.5): resident shared memory in base or transparent huge pages, hugetlb pages not counted.
    pub rss_shmem: Option<Bytes>,
    /// `VmSwap`: its private memory in swap.
    pub swap: Option<Bytes>,
    /// `HugetlbPages` (since 4.4): a positive value proves hugetlb pages; the amount can be far too low, as processes share tables.
    pub hugetlb_pages: Option<Bytes>,
}

impl ProcessStatus {
    /// Parses the text of /proc/PID/status.
    pub fn parse(text: impl AsRef<[u8]>) -> Self {
        let mut status = Self::default();
        for (name, value) in fields(text.as_ref()) {
            let into = match name {
                b"PPid" => {
                    status.parent = first_number(value).and_then(|pid| pid.try_into().ok());
                    continue;
                }
                b"VmPTE" => &mut status.page_tables,
                b"RssAnon" => &mut status.rss_anon,
                b"RssFile" => &mut status.rss_file,
                b"RssShmem" => &mut status.rss_shmem,
                b"VmSwap" => &mut status.swap,
                b"HugetlbPages" => &mut status.hugetlb_pages,
                // The memory is before the threads, and masks and counters are behind them.
                b"Threads" => break,
                _ => continue,
            };
            *into = first_number(value).map(Bytes::from_kib);
        }
        status
    }
}

/// What /proc/PID/stat tells of one process (proc(5)), and no other file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessStat {
    /// `starttime`: when it started after boot, in hundredths of a second. With the pid it identifies a process.
    pub start_ticks: u64,
}

impl ProcessStat {
    /// Parses the text of /proc/PID/stat; `None` if it has too few fields.
    pub fn parse(text: impl AsRef<[u8]>) -> Option<Self> {
        // The second field, in brackets, may have spaces and brackets itself. The third one follows.
        let text = text.as_ref();
        let mut fields = str::from_utf8(&text[memrchr(b')', text)? + 1..])
            .ok()?
            .split_ascii_whitespace();
        Some(Self {
            start_ticks: fields.nth(19)?.parse().ok()?,
        })
    }

    /// From the boot of the machine to the start of the process, including suspended time.
    pub const fn start_after_boot(&self) -> Duration {
        Duration::from_millis(self.start_ticks.saturating_mul(1000 / TICKS_PER_SECOND))
    }
}

/// The counters of `pid`; `Ok(None)` if the process does not exist (any more).
pub fn stat(root: &Root, pid: i32) -> Result<Option<ProcessStat>, ReadError> {
    let path = format!("/proc/{pid}/stat");
    let parsed = unless_gone(root.read_short(&path, |text| ProcessStat::parse(text)))?;
    let too_few = || root.content(&path, "it has too few fields");
    parsed.map(|stat| stat.ok_or_else(too_few)).transpose()
}

/// When `pid` started, by the present clock; `Ok(None)` if the process does not exist (any more).
pub fn started(root: &Root, pid: i32) -> Result<Option<SystemTime>, ReadError> {
    let Some(stat) = stat(root, pid)? else {
        return Ok(None);
    };
    Ok(boot_time(root)?.checked_add(stat.start_after_boot()))
}

/// The status of `pid`; `Ok(None)` if the process does not exist (any more).
pub fn status(root: &Root, pid: i32) -> Result<Option<ProcessStatus>, ReadError> {
    read(root, pid, "status", |text| ProcessStatus::parse(text))
}

/// Gives `take` the text of a short file of `pid`, such as `cmdline`, where a zero byte is behind each argument; `Ok(None)` if the process
/// is gone.
pub fn read<T>(
    root: &Root,
    pid: i32,
    file: &str,
    take: impl FnOnce(&str) -> T,
) -> Result<Option<T>, ReadError> {
    unless_gone(root.read_short(&format!("/proc/{pid}/{file}"), take))
}

/// The threads of `pid`, ascending; none if it is gone.
pub fn threads(root: &Root, pid: i32) -> Vec<i32> {
    numbers(root, &format!("/proc/{pid}/task")).unwrap_or_default()
}

/// The command line of `pid`, which a server process uses as its title; empty for a process that is ending.
pub fn title(root: &Root, pid: i32) -> Result<Option<String>, ReadError> {
    let text = unless_gone(root.read(&format!("/proc/{pid}/cmdline")))?;
    Ok(text.map(|text| {
        text.split('\0')
            .next()
            .unwrap_or_default()
            .trim_end()
            .to_owned()
    }))
}

/// All visible processes, ascending.
pub fn pids(root: &Root) -> Result<Vec<i32>, ReadError> {
    numbers(root, "/proc")
}

/// The descriptors of the process named `process` below /proc, ascending (proc(5), `fd`).
pub fn descriptors(root: &Root, process: &str) -> Result<Vec<i32>, ReadError> {
    numbers(root, &format!("/proc/{process}/fd"))
}

/// The numbers among the names in the directory `path`, ascending.
fn numbers(root: &Root, path: &str) -> Result<Vec<i32>, ReadError> {
    let mut numbers = Vec::new();
    root.each_name(path, |name| numbers.extend(name.parse::<i32>()))?;
    numbers.sort_unstable();
    Ok(numbers)
}

/// Whether /proc hides the processes of other users from this one: `hidepid`, and not even the first process can be seen (proc(5)).
pub fn hides_others(root: &Root) -> bool {
    let hides = |option: &String| {
        option
            .strip_prefix("hidepid=")
            .is_some_and(|value| !matches!(value, "0" | "off"))
    };
    let is_set = |mount: Mount| mount.kind == "proc" && mount.options.iter().any(hides);
    mounts::seen_at(root, "/proc").is_some_and(is_set) && root.read("/proc/1/status").is_err()
}

/// The target of a link of `pid`, such as `exe` or `cwd`; `Ok(None)` if the process does not exist or is ending, and where a tree has a
/// directory in its place.
pub fn link(root: &Root, pid: i32, name: &str) -> Result<Option<String>, ReadError> {
    match root.read_link(&format!("/proc/{pid}/{name}")) {
        Err(ReadError::Io { source, .. }) if source.raw_os_error() == Some(libc::EINVAL) => {
            Ok(None)
        }
        target => unless_gone(target),
    }
}

/// When this machine was booted, by its clock now, to a hundredth of a second; of a tree by the clock of its host. The
/// clock and /proc/uptime are read one after the other, however long ago a survey began. If this program has to wait
/// between the two, the result is too early, so that a file rather seems newer than a process than older.
pub fn boot_time(root: &Root) -> Result<SystemTime, ReadError> {
    let booted = root.now().checked_sub(uptime(root)?);
    booted.ok_or_else(|| root.content(UPTIME, "it is more than the clock shows"))
}

/// The time since this machine was booted.
pub fn uptime(root: &Root) -> Result<Duration, ReadError> {
    let seconds = |text: &str| {
        text.split_ascii_whitespace()
            .next()
            .and_then(|seconds| seconds.parse::<f64>().ok())
    };
    let uptime = root.read_short(UPTIME, seconds)?;
    let uptime = uptime.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    uptime.ok_or_else(|| root.content(UPTIME, "it does not begin with a number"))
}

/// Whether `pid` has a ring of io_uring open (proc(5), `fd`).
pub fn has_rings(root: &Root, pid: i32) -> Result<bool, ReadError> {
    for descriptor in descriptors(root, &pid.to_string())? {
        let path = format!("/proc/{pid}/fd/{descriptor}");
        // A descriptor may be closed meanwhile.
        if if_there(root.read_link(&path))?.is_some_and(|target| target == "anon_inode:[io_uring]")
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The children of `pid` (`children`, since 3.5 if configured). One that ends meanwhile may hide another: compare other sources.
pub fn children(root: &Root, pid: i32) -> Result<Vec<i32>, ReadError> {
    let path = format!("/proc/{pid}/task/{pid}/children");
    let pid = |word: &str| {
        let none = |_| root.content(&path, format!("\"{word}\" is not a process"));
        word.parse().map_err(none)
    };
    // A record for each.
    let text = root.read(&path)?;
    text.split_ascii_whitespace().map(pid).collect()
}

/// The process that /proc/self shows. Another number than that of getpid(2) means that /proc shows another PID namespace.
pub fn own_pid(root: &Root) -> Result<i32, ReadError> {
    const PATH: &str = "/proc/self";
    let link = root.read_link(PATH)?;
    link.parse()
        .map_err(|_| root.content(PATH, format!("\"{link}\" is not a process")))
}

/// A process can end between open and read, which then fails with ESRCH.
pub fn unless_gone<T>(result: Result<T, ReadError>) -> Result<Option<T>, ReadError> {
    match result {
        Err(ReadError::Io { source, .. }) if source.raw_os_error() == Some(libc::ESRCH) => Ok(None),
        result => if_there(result),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zombie_has_no_memory() {
        let zombie = ProcessStatus::parse("Name:\tpostgres\nState:\tZ (zombie)\nPPid:\t7\n");
        assert_eq!(
            zombie,
            ProcessStatus {
                parent: Some(7),
                ..ProcessStatus::default()
            }
        );
    }

    /// A name may have any bytes, and what is behind the threads is not memory.
    #[test]
    fn memory_is_before_the_threads() {
        let text =
            b"Name:\tRssAnon: \xff 7\nPPid:\t7\nVmPTE:\t    48 kB\nThreads:\t1\nVmSwap:\t4 kB\n";
        let found = ProcessStatus::parse(text);
        let expected = ProcessStatus {
            page_tables: Some(Bytes(48 << 10)),
            parent: Some(7),
            ..ProcessStatus::default()
        };
        assert_eq!(found, expected);
        assert_eq!(
            ProcessStatus::parse("VmPTE:\t48 kB").page_tables,
            Some(Bytes(48 << 10)),
            "without an end"
        );
        for nothing in ["", " ", " kB", "4x kB", "-4 kB", "18446744073709551616 kB"] {
            assert_eq!(
                ProcessStatus::parse(format!("VmPTE:{nothing}\n")).page_tables,
                None,
                "{nothing}"
            );
        }
        let without_brackets = ProcessStat::parse(
            b"1 (\xff) b) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21",
        );
        assert_eq!(without_brackets, Some(ProcessStat { start_ticks: 19 }));
    }

    /// The field number of proc(5): starttime is the 22nd.
    #[test]
    fn fields_of_stat() {
        let fields: Vec<_> = (4..=52).map(|number| number.to_string()).collect();
        let text = format!("1 (a) b (c) S {}\n", fields.join(" "));
        assert_eq!(
            ProcessStat::parse(&text),
            Some(ProcessStat { start_ticks: 22 })
        );
        assert_eq!(ProcessStat::parse("1 (a) S 1 2 3\n"), None);
    }

    /// A command line can be longer than what is read at once.
    #[test]
    fn a_long_command_line() {
        let long = "a".repeat(10_000);
        let mut child = std::process::Command::new("/bin/sh")
            .args(["-c", "read line", &long])
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let root = Root::live();
        let pid = i32::try_from(child.id()).unwrap();
        // The kernel gives it to the process a moment after the memory that spawn waits for.
        let text = || read(&root, pid, "cmdline", str::to_owned).unwrap().unwrap();
        let found = std::iter::repeat_with(text)
            .find(|text| text.starts_with("/bin/sh"))
            .unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(
            found.ends_with(&format!("\0{long}\0")),
            "{} bytes",
            found.len()
        );
        assert_eq!(read(&root, pid, "cmdline", |_| ()).unwrap(), None);
    }

    /// The kernel gives as many as fit into a page, and then the others.
    #[test]
    fn many_children() {
        use std::io::BufRead;
        let mut shell = std::process::Command::new("/bin/sh")
            .args(["-c", "for i in $(seq 1100); do sleep 60 & done; echo; wait"])
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let output = shell.stdout.take().unwrap();
        std::io::BufReader::new(output)
            .read_line(&mut line)
            .unwrap();
        let found = children(&Root::live(), shell.id().cast_signed()).unwrap();
        for pid in &found {
            let pid = rustix::process::Pid::from_raw(*pid).unwrap();
            rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        }
        shell.kill().unwrap();
        shell.wait().unwrap();
        assert_eq!(found.len(), 1100);
    }

    #[test]
    fn boot_time_late_in_a_survey() {
        const SURVEY: Duration = Duration::from_millis(500);
        let root = Root::live();
        // On a busy machine some are too early.
        let latest = || {
            std::iter::repeat_with(|| boot_time(&root).unwrap())
                .take(10)
                .max()
                .unwrap()
        };
        let first = latest();
        std::thread::sleep(SURVEY);
        let apart = latest()
            .duration_since(first)
            .unwrap_or_else(|earlier| earlier.duration());
        assert!(
            apart < SURVEY / 2,
            "{apart:?}: the survey keeps what it has read, and the clock goes on"
        );
    }

    #[test]
    fn own_process() {
        let root = Root::live();
        let pid = i32::try_from(std::process::id()).unwrap();
        assert_eq!(own_pid(&root).unwrap(), pid);
        assert!(status(&root, pid).unwrap().unwrap().page_tables.unwrap() > Bytes(0));
        assert_eq!(status(&root, i32::MAX).unwrap(), None);
        assert!(stat(&root, pid).unwrap().unwrap().start_ticks > 0);
        assert_eq!(stat(&root, i32::MAX).unwrap(), None);
    }
}
