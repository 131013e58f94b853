//! /proc/PID/limits: the resource limits that apply to a process, whatever limits.conf or a unit says. Every user may
//! read it, also that of a process that is not dumpable (proc(5), getrlimit(2)).

use serde::{Deserialize, Serialize};

use crate::proc::process::unless_gone;
use crate::{Bytes, ReadError, Root};

/// A resource limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Rlimit {
    /// No limit (`unlimited`, RLIM_INFINITY).
    Unlimited,
    /// This number of bytes.
    At(Bytes),
}

impl Rlimit {
    /// The bytes; `None` for no limit.
    pub const fn bytes(self) -> Option<Bytes> {
        match self {
            Self::Unlimited => None,
            Self::At(limit) => Some(limit),
        }
    }
}

/// The soft limit of a process on locked memory (RLIMIT_MEMLOCK); `None` if the line is missing or invalid.
pub fn memlock(text: &str) -> Option<Rlimit> {
    let values = text
        .lines()
        .find_map(|line| line.strip_prefix("Max locked memory"))?;
    match values.split_ascii_whitespace().next()? {
        "unlimited" => Some(Rlimit::Unlimited),
        bytes => bytes.parse().ok().map(|bytes| Rlimit::At(Bytes(bytes))),
    }
}

/// The limit of `pid` on locked memory; `Ok(None)` also if the process does not exist (any more).
pub fn locked_memory(root: &Root, pid: i32) -> Result<Option<Rlimit>, ReadError> {
    Ok(unless_gone(root.read_short(&format!("/proc/{pid}/limits"), memlock))?.flatten())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_in_its_forms() {
        let at = |bytes| Some(Rlimit::At(Bytes(bytes)));
        for (line, soft) in [
            (
                "Max locked memory         8388608              8388608              bytes",
                at(8 << 20),
            ),
            (
                "Max locked memory         65536                unlimited            bytes",
                at(65536),
            ),
            (
                "Max locked memory         unlimited            unlimited            bytes",
                Some(Rlimit::Unlimited),
            ),
            ("Max locked memory         -1 x", None),
            ("Max locked memory", None),
            (
                "Max file locks            unlimited            unlimited            locks",
                None,
            ),
        ] {
            let text = format!(
                "Limit                     Soft Limit           Hard Limit           Units\n{line}\n"
            );
            assert_eq!(memlock(&text), soft, "{line}");
        }
    }

    #[test]
    fn own_limits_are_what_getrlimit_says() {
        let mut limit = libc::rlimit {
            rlim_cur: 0,
            rlim_max: 0,
        };
        // SAFETY: getrlimit writes one struct, which belongs to this function.
        #[allow(unsafe_code)]
        let result = unsafe { libc::getrlimit(libc::RLIMIT_MEMLOCK, &raw mut limit) };
        assert_eq!(result, 0);
        let expected = match limit.rlim_cur {
            libc::RLIM_INFINITY => Rlimit::Unlimited,
            bytes => Rlimit::At(Bytes(bytes)),
        };
        let pid = i32::try_from(std::process::id()).unwrap();
        assert_eq!(locked_memory(&Root::live(), pid).unwrap(), Some(expected));
        assert_eq!(locked_memory(&Root::live(), i32::MAX).unwrap(), None);
    }
}
