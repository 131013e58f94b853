//! What the status and the command line of a process say of it (proc(5)).

use hugepage_kernel::fields::value;
use hugepage_kernel::postgresql::postmaster_opts;
use hugepage_kernel::proc::process::{self, ProcessStatus};
use hugepage_kernel::{Bytes, Root};
use hugepage_oracle::readers::OracleProcess;

/// What is kept of the arguments of a postmaster, in bytes.
const MAX_ARGUMENT_BYTES: usize = 64 << 10;
/// And how many.
const MAX_ARGUMENTS: usize = 1000;

/// User and groups of one process. In a user namespace the numbers are those of this program's own (user_namespaces(7)).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Credentials {
    /// The real user: the first number of `Uid`.
    pub real: u32,
    /// The effective user: the second number of `Uid`.
    pub effective: u32,
    /// The saved user: the third number of `Uid`.
    pub saved: u32,
    /// The real one of `Gid`, and `Groups`.
    pub groups: Vec<u32>,
}

impl Credentials {
    /// The user and groups of `pid`; `None` if there is no such process, or a tree has nothing of it.
    pub fn read(root: &Root, pid: i32) -> Option<Self> {
        root.read_short(&format!("/proc/{pid}/status"), Self::parse)
            .ok()?
    }

    fn parse(text: &str) -> Option<Self> {
        let numbers = |name| -> Option<Vec<u32>> {
            value(text, name)?
                .split_ascii_whitespace()
                .map(|word| word.parse().ok())
                .collect()
        };
        let &[real, effective, saved, _] = numbers("Uid")?.as_slice() else {
            return None;
        };
        let mut groups = vec![*numbers("Gid")?.first()?];
        groups.extend(numbers("Groups").unwrap_or_default());
        Some(Self {
            real,
            effective,
            saved,
            groups,
        })
    }

    /// All users whose powers it has.
    pub fn users(&self) -> [u32; 3] {
        [self.real, self.effective, self.saved]
    }
}

/// What the status of a process says of it: whether it is worth a second look.
#[derive(Clone, Debug)]
pub struct ProcessGlance {
    pub pid: i32,
    /// `Name`: at most 15 bytes of the program's name, or of the one that the process has given itself.
    pub name: String,
    /// The users of the process; `None` in a tree that does not tell them.
    pub users: Option<Credentials>,
    /// The parent and the memory of the process.
    pub status: ProcessStatus,
}

impl ProcessGlance {
    /// `None` if it has ended meanwhile, or is hidden. After the end of its first thread another one tells its memory.
    pub fn read(root: &Root, pid: i32) -> Option<Self> {
        let parse = |text: &str| {
            let glance = Self {
                pid,
                name: value(text, "Name").unwrap_or_default().trim().to_owned(),
                users: Credentials::parse(text),
                status: ProcessStatus::parse(text),
            };
            (
                glance,
                value(text, "Threads").is_some_and(|count| count.trim() != "1"),
            )
        };
        let of = |thread| process::read(root, thread, "status", parse).ok().flatten();
        let is_alive = |glance: &Self| glance.status.rss_anon.is_some();
        let (first, has_others) = of(pid)?;
        if !has_others || is_alive(&first) {
            return Some(first);
        }
        let alive = process::threads(root, pid)
            .into_iter()
            .filter_map(|thread| Some(of(thread)?.0))
            .find(is_alive);
        Some(alive.unwrap_or(first))
    }

    /// Whether the process may be one of a server's, all of which share memory.
    pub fn may_be_in_server(&self) -> bool {
        self.status.hugetlb_pages > Some(Bytes(0))
            || self.status.rss_shmem.is_none_or(|memory| memory > Bytes(0))
    }

    /// The resident memory of the process.
    pub fn resident(&self) -> Bytes {
        let of = self.status;
        [of.rss_anon, of.rss_file, of.rss_shmem, of.hugetlb_pages]
            .into_iter()
            .flatten()
            .sum()
    }
}

/// Whether a program of this name is PostgreSQL's, also behind a wrapper of Nix: `.postgres-wrapped`, which the kernel cuts.
pub fn is_postgresql(name: &str) -> bool {
    let hidden = name
        .strip_prefix('.')
        .map(|hidden| hidden.split("-w").next().unwrap_or(hidden));
    matches!(
        hidden.unwrap_or(name),
        "postgres" | "postmaster" | "edb-postgres" | "edb-postmaster"
    )
}

/// Whether the name of its program, at most 15 bytes which a process can choose, is that of a server's process.
pub(super) fn is_of_server(name: &str) -> bool {
    let is_numbered = || {
        name.strip_prefix("oracle_")
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    is_postgresql(name) || name == "oracle" || is_numbered() || OracleProcess::parse(name).is_some()
}

/// What a command line shows.
pub(super) enum Seen {
    Oracle(OracleProcess),
    Postmaster(Vec<String>),
    Backend,
}

impl Seen {
    pub(super) fn parse(cmdline: &str) -> Option<Self> {
        if let Some(process) = OracleProcess::parse(cmdline) {
            return Some(Self::Oracle(process));
        }
        if cmdline.starts_with("postgres: ") {
            return Some(Self::Backend);
        }
        let program = cmdline.split('\0').next()?.rsplit('/').next()?;
        let arguments = is_postgresql(program).then(|| arguments(cmdline))?;
        postmaster_opts::serves(&arguments).then_some(Self::Postmaster(arguments))
    }
}

/// The arguments in a command line.
pub(super) fn arguments(cmdline: &str) -> Vec<String> {
    let mut left = MAX_ARGUMENT_BYTES;
    let is_kept = |word: &&str| {
        let fits = word.len() < left;
        left = left.saturating_sub(word.len() + 1);
        fits
    };
    let words = cmdline
        .trim_end_matches('\0')
        .split('\0')
        .skip(1)
        .take(MAX_ARGUMENTS);
    words.take_while(is_kept).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_of_a_status() {
        let text = "Name:\tpostgres\nUid:\t101\t101\t101\t101\nGid:\t104\t104\t104\t104\nGroups:\t103 104 \n";
        let found = Credentials::parse(text).unwrap();
        assert_eq!(
            (found.users(), found.groups.as_slice()),
            ([101; 3], &[104, 103, 104][..])
        );
        assert_eq!(Credentials::parse("Name:\tpostgres\nPPid:\t1\n"), None);
        assert_eq!(Credentials::parse("Uid:\t1\t2\nGid:\t1\t1\t1\t1\n"), None);
    }

    #[test]
    fn long_arguments() {
        let long = format!("postgres\0-D\0{}\0-c\0a=b\0", "x".repeat(1 << 20));
        let Some(Seen::Postmaster(arguments)) = Seen::parse(&long) else {
            panic!()
        };
        assert_eq!(
            arguments,
            ["-D"],
            "cut before the argument that is too long"
        );
    }
}
