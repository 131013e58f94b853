//! The question: the command line of `postgres -C`, and what its end says of a start.

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;

use hugepage_facts::StartAnswer;
use hugepage_kernel::{Bytes, PageSize};

use crate::majors::SIZE_PARAMETERS;
use crate::{answer, majors};

/// The page that the program counts in: each main segment is a multiple of it (ipci.c, `CalculateShmemSize`), so the count is exact.
const COUNTING_UNIT: PageSize = PageSize::new(8192).unwrap();
/// The program runs at most this often for one answer.
const MAX_ATTEMPTS: usize = 4;
/// The server's error if a checkpoint wrote pg_control while it was copied.
const TORN_CONTROL_FILE: &str = "incorrect checksum in control file";
/// The server's error for any `huge_page_size` built without MAP_HUGE_SHIFT, as for glibc 2.17 (guc.c, `check_huge_page_size`).
const NO_HUGE_PAGE_SIZES: &str = "must be 0 on this platform";
/// Settings that have no part in the answer: errors go to stderr, untranslated and bare, and no certificate is needed.
const OF_THE_QUESTION: [(&str, &str); 8] = [
    ("ssl", "off"),
    ("log_destination", "stderr"),
    ("logging_collector", "off"),
    ("log_line_prefix", ""),
    ("log_min_messages", "warning"),
    ("log_min_error_statement", "error"),
    ("log_error_verbosity", "default"),
    ("lc_messages", "C"),
];

/// A start that the server's program is asked about. Of arguments and settings with one name the last is effective.
#[derive(Debug)]
pub struct StartQuestion<'a> {
    /// The major version of the program.
    pub major: u32,
    /// The arguments of the running postmaster; empty if a start repeats none.
    pub arguments: &'a [String],
    /// The data directory, for `-D`.
    pub data: &'a Path,
    /// The settings, as `-c` takes them.
    pub settings: Vec<(&'a str, OsString)>,
    /// A minimal data directory that stands for the real one, and that errors may name; `None` if there is none.
    pub stand_in: Option<&'a Path>,
    /// The size of huge pages in which a program counts that knows no other one; `None` if the host has none.
    pub default_page_size: Option<PageSize>,
}

/// The end of the server's program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The program ended with exit status 0; its output.
    Success(String),
    /// The program ended with another status; the text of its errors, never empty.
    Failure(String),
    /// The program was not run, or its end says nothing about a start; why.
    NoAnswer(String),
}

impl Ending {
    /// What an end with this status and output says. Whoever was killed, or says nothing, did not come to an answer.
    pub fn new(status: ExitStatus, output: String, errors: &str) -> Self {
        if status.success() {
            return Self::Success(output);
        }
        match errors.trim() {
            errors if status.signal().is_none() && !errors.is_empty() => {
                Self::Failure(errors.to_owned())
            }
            _ => Self::NoAnswer(format!(
                "the check of the configuration ended with {status}"
            )),
        }
    }
}

impl StartQuestion<'_> {
    /// The size of the main segment that the start would ask for. `run` runs the program with these arguments, up to four
    /// times: again with a new copy of pg_control where the first was torn, without a unit where the program takes none, and with
    /// another name of the parameter where it has not the first.
    pub fn ask(&self, mut run: impl FnMut(&[OsString]) -> Ending) -> StartAnswer<Bytes> {
        let (mut unit, mut torn) = (Some(COUNTING_UNIT), String::new());
        let [(_, mut name), (renaming_major, new_name)] = SIZE_PARAMETERS;
        for _ in 0..MAX_ATTEMPTS {
            return match run(&self.command_line(unit, name)) {
                Ending::Success(output) => self.answer(&output, unit),
                Ending::Failure(errors) if errors.contains(TORN_CONTROL_FILE) => {
                    torn = errors;
                    continue;
                }
                Ending::Failure(errors)
                    if unit.is_some() && errors.contains(NO_HUGE_PAGE_SIZES) =>
                {
                    unit = None;
                    continue;
                }
                Ending::Failure(errors)
                    if self.major >= renaming_major
                        && answer::lacks(&errors, name)
                        && name != new_name =>
                {
                    name = new_name;
                    continue;
                }
                Ending::Failure(errors) => answer::meaning(&errors, self.stand_in, self.data),
                Ending::NoAnswer(why) => StartAnswer::Unknown(why),
            };
        }
        StartAnswer::Refuses(torn)
    }

    /// The command line that prints the parameter `name` as the start would have it: in its unit, or in pages of `unit`.
    pub fn command_line(&self, unit: Option<PageSize>, name: &str) -> Vec<OsString> {
        let mut line: Vec<OsString> = self.arguments.iter().map(OsString::from).collect();
        line.extend(["-D".into(), self.data.into()]);
        let mut set = |name: &str, value: OsString| {
            let mut assignment = OsString::from(format!("{name}="));
            assignment.push(value);
            line.extend(["-c".into(), assignment]);
        };
        self.settings
            .iter()
            .for_each(|(name, value)| set(name, value.clone()));
        OF_THE_QUESTION
            .iter()
            .for_each(|(name, value)| set(name, value.into()));
        if let Some(size) = unit {
            set("huge_page_size", size.setting().into());
        }
        line.extend(["-C".into(), name.into()]);
        line
    }

    fn answer(&self, output: &str, unit: Option<PageSize>) -> StartAnswer<Bytes> {
        let size = output.trim().parse().ok().and_then(|counted| match unit {
            Some(unit) => majors::exact_count(self.major, counted)?.checked_mul(unit.bytes().0),
            None => self.default_page_size?.bytes().0.checked_mul(counted),
        });
        match size {
            Some(size) => StartAnswer::Starts(Bytes(size)),
            None => StartAnswer::Unknown(answer::not_checked(output.trim())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn question<'a>(major: u32, stand_in: Option<&'a Path>) -> StartQuestion<'a> {
        StartQuestion {
            major,
            arguments: &[],
            data: Path::new("/data"),
            settings: vec![("shared_buffers", "1GB".into())],
            stand_in,
            default_page_size: PageSize::new(2 * MIB),
        }
    }

    #[test]
    fn the_command_line() {
        let arguments = ["-c".to_owned(), "shared_buffers=2GB".to_owned()];
        let start = StartQuestion {
            arguments: &arguments,
            ..question(15, None)
        };
        let line = start
            .command_line(Some(COUNTING_UNIT), SIZE_PARAMETERS[0].1)
            .join(" ".as_ref())
            .into_string()
            .unwrap();
        assert!(
            line.starts_with("-c shared_buffers=2GB -D /data -c shared_buffers=1GB -c ssl=off "),
            "{line}"
        );
        assert!(
            line.ends_with(" -c huge_page_size=8kB -C shared_memory_size_in_huge_pages"),
            "{line}"
        );
        assert!(
            !start
                .command_line(None, "a")
                .iter()
                .any(|argument| argument.to_string_lossy().contains("huge_page_size"))
        );
    }

    #[test]
    fn majors_count_differently() {
        let size = |major| question(major, None).ask(|_| Ending::Success("18945\n".to_owned()));
        assert_eq!(size(18), StartAnswer::Starts(Bytes(148 * MIB)));
        assert_eq!(size(19), StartAnswer::Starts(Bytes(148 * MIB + 8192)));
        let odd = question(15, None).ask(|_| Ending::Success("-1\n".to_owned()));
        assert_eq!(odd, StartAnswer::Unknown(answer::not_checked("-1")));
    }

    #[test]
    fn the_question_is_repeated() {
        let mut runs = 0;
        let without_unit = question(15, None).ask(|line| {
            runs += 1;
            match line.iter().any(|argument| argument == "huge_page_size=8kB") {
                true => Ending::Failure(format!("FATAL:  huge_page_size {NO_HUGE_PAGE_SIZES}")),
                false => Ending::Success("75".to_owned()),
            }
        });
        assert_eq!(
            (runs, without_unit),
            (2, StartAnswer::Starts(Bytes(150 * MIB)))
        );
        for (major, size) in [
            (19, None),
            (20, Some(StartAnswer::Starts(Bytes(8192 * 18945)))),
        ] {
            let renamed = question(major, None).ask(|line| match line.last().unwrap().to_str() {
                Some("shared_memory_initial_size_in_huge_pages") => {
                    Ending::Success("18945".to_owned())
                }
                name => Ending::Failure(format!(
                    "FATAL:  unrecognized configuration parameter {:?}",
                    name.unwrap()
                )),
            });
            match size {
                Some(size) => assert_eq!(renamed, size),
                None => assert!(matches!(renamed, StartAnswer::Unknown(_)), "{renamed:?}"),
            }
        }
        let mut runs = 0;
        let refused = question(15, None).ask(|_| {
            runs += 1;
            Ending::Failure("FATAL:  no".to_owned())
        });
        assert_eq!(
            (runs, refused),
            (1, StartAnswer::Refuses("FATAL:  no".to_owned()))
        );
        let torn = format!("FATAL:  {TORN_CONTROL_FILE}");
        let mut runs = 0;
        let answer = question(15, None).ask(|_| {
            runs += 1;
            Ending::Failure(torn.clone())
        });
        assert_eq!((runs, answer), (MAX_ATTEMPTS, StartAnswer::Refuses(torn)));
    }

    #[test]
    fn errors_that_say_nothing_of_a_start() {
        let own = Path::new("/tmp/own");
        for (errors, is_refusal) in [
            ("FATAL:  unrecognized configuration parameter \"a\"", true),
            (
                "FATAL:  could not open file \"/tmp/own/global/x\": Is a directory",
                false,
            ),
            (
                "FATAL:  could not load library \"a\": failed to map segment from shared object",
                false,
            ),
            (
                "FATAL:  unrecognized configuration parameter \"shared_memory_size_in_huge_pages\"",
                false,
            ),
            (
                "FATAL:  could not create lock file \"postmaster.pid\": Permission denied",
                false,
            ),
        ] {
            let answer = question(15, Some(own)).ask(|_| Ending::Failure(errors.to_owned()));
            assert_eq!(
                matches!(answer, StartAnswer::Refuses(_)),
                is_refusal,
                "{answer:?}"
            );
            assert!(!format!("{answer:?}").contains("/tmp/own"), "{answer:?}");
        }
    }
}
