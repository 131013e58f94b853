//! Whether a process belongs to a server, by its name and title.

use hugepage_kernel::postgresql::postmaster_opts;
use hugepage_oracle::readers::OracleProcess;

/// What is kept of the arguments of a postmaster, in bytes.
const MAX_ARGUMENT_BYTES: usize = 64 << 10;
/// And how many.
const MAX_ARGUMENTS: usize = 1000;

/// Whether a program of this name is PostgreSQL's, also behind a wrapper of Nix: `.postgres-wrapped`, which the kernel cuts.
pub fn is_postgresql(name: &str) -> bool {
    let hidden = name.strip_prefix('.').map(|hidden| hidden.split("-w").next().unwrap_or(hidden));
    matches!(hidden.unwrap_or(name), "postgres" | "postmaster" | "edb-postgres" | "edb-postmaster")
}

/// Whether the name of its program, at most 15 bytes which a process can choose, is that of a server's process.
pub(super) fn is_of_server(name: &str) -> bool {
    let is_numbered =
        || name.strip_prefix("oracle_").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
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
