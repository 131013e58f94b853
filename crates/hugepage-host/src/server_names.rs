//! Whether a process belongs to a server, by its name and title.

use hugepage_kernel::postgresql::postmaster_opts;
use hugepage_oracle::readers::{OracleProcess, OracleRole};

/// What is kept of the arguments of a postmaster, in bytes.
const MAX_ARGUMENT_BYTES: usize = 64 << 10;
/// And how many.
const MAX_ARGUMENTS: usize = 1000;

/// Whether a program of this name is PostgreSQL's, also behind a wrapper of Nix: `.postgres-wrapped`, which the kernel cuts.
pub fn is_postgresql(name: &str) -> bool {
    let hidden = name.strip_prefix('.').map(|hidden| hidden.split("-w").next().unwrap_or(hidden));
    matches!(hidden.unwrap_or(name), "postgres" | "postmaster" | "edb-postgres" | "edb-postmaster")
}

/// What the name of its program says of a process: at most 15 bytes, which it can choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ServerName {
    /// A postmaster or PMON; backends have the name of their postmaster.
    Head,
    /// Another process of Oracle, or PMON under the name of its program.
    Member,
}

impl ServerName {
    pub(super) fn of_program(name: &str) -> Option<Self> {
        let of_oracle = || OracleProcess::parse(name).map(|process| process.role);
        match name {
            name if is_postgresql(name) => Some(Self::Head),
            name if of_oracle() == Some(OracleRole::Pmon) || name.starts_with("ora_pmon_") => Some(Self::Head),
            name => {
                let is_numbered =
                    || name.strip_prefix("oracle_").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
                (name == "oracle" || is_numbered() || of_oracle().is_some()).then_some(Self::Member)
            }
        }
    }
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
    cmdline
        .trim_end_matches('\0')
        .split('\0')
        .skip(1)
        .take(MAX_ARGUMENTS)
        .take_while(is_kept)
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_arguments() {
        let long = format!("postgres\0-D\0{}\0-c\0a=b\0", "x".repeat(1 << 20));
        let Some(Seen::Postmaster(arguments)) = Seen::parse(&long) else { panic!() };
        assert_eq!(arguments, ["-D"], "cut before the argument that is too long");
    }
}
