//! The answer to a question about a start, and the meaning of an error of the server's program: a start would fail as well, or only the
//! question did.

use std::path::Path;

use hugepage_facts::StartAnswer;

use crate::majors::SIZE_PARAMETERS;

/// Errors of a moment, or of the asking process alone: a full disk, limits (strerror(3), dlopen(3), setrlimit(2)).
const OF_THE_MOMENT: [&str; 9] = [
    "No space left on device",
    "Disk quota exceeded",
    "Input/output error",
    "Cannot allocate memory",
    "out of memory",
    "Too many open files",
    "Resource temporarily unavailable",
    "failed to map segment from shared object",
    "failed to initialize max_stack_depth",
];
/// Errors about files of a minimal data directory, which a start does not have.
const OF_THE_DATA_DIRECTORY: [&str; 2] =
    ["lock file \"postmaster.pid\"", "file \"global/pg_control\""];
/// Settings that the question sets and another major may not have.
const OF_THE_QUESTION: [&str; 3] = [
    "log_error_verbosity",
    "log_line_prefix",
    "log_min_error_statement",
];

/// What stands before the text of the server's program, in a reason why an answer is unknown: not everybody may see that text.
pub const SAYS: &str = "the server says: ";

/// The answers for the two ways to start: only `pg_ctl restart` repeats the options of the postmaster's command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TwoStarts<T, Text = String> {
    /// The start with the options of the command line.
    pub with_options: T,
    /// The start without these options, and why there are two starts, naming the options, a sentence for notes; `None` if they make no
    /// difference.
    pub without: Option<(T, Text)>,
}

impl<T, Text> TwoStarts<T, Text> {
    /// The same answer with other texts.
    pub fn map_text<Other>(
        answer: StartAnswer<Self, Text>,
        text: impl Fn(Text) -> Other,
    ) -> StartAnswer<TwoStarts<T, Other>, Other> {
        match answer {
            StartAnswer::Starts(TwoStarts {
                with_options,
                without,
            }) => StartAnswer::Starts(TwoStarts {
                with_options,
                without: without.map(|(demand, note)| (demand, text(note))),
            }),
            StartAnswer::Refuses(error) => StartAnswer::Refuses(text(error)),
            StartAnswer::Unknown(why) => StartAnswer::Unknown(text(why)),
        }
    }
}

impl<T: PartialEq> TwoStarts<T> {
    /// The answer for both starts. `without`: the options that the files do not set as the command line does, as
    /// `shared_buffers=64MB`, and the answer without them; `None` if there are no such options.
    pub fn of_both(
        with_options: StartAnswer<T>,
        without: Option<(&[String], impl FnOnce() -> StartAnswer<T>)>,
    ) -> StartAnswer<Self> {
        with_options.and_then(|with_options| {
            let both = |with_options, without| {
                StartAnswer::Starts(Self {
                    with_options,
                    without,
                })
            };
            let Some((options, without_options)) = without else {
                return both(with_options, None);
            };
            let note = format!(
                "the command line of the server sets {}, which only pg_ctl restart repeats",
                options.join(", ")
            );
            match without_options() {
                StartAnswer::Starts(asks_for) => {
                    let without = (asks_for != with_options).then_some((asks_for, note));
                    both(with_options, without)
                }
                StartAnswer::Refuses(error) => {
                    StartAnswer::Unknown(format!("{note}; without it {SAYS}{error}"))
                }
                StartAnswer::Unknown(why) => StartAnswer::Unknown(why),
            }
        })
    }
}

/// Whether `errors` say that the server has no parameter `name`.
pub(crate) fn lacks(errors: &str, name: &str) -> bool {
    errors.contains(&format!("unrecognized configuration parameter \"{name}\""))
}

/// The reason why an answer is unknown after the server's program has said this.
pub fn not_checked(said: &str) -> String {
    format!("could not check the configuration; {SAYS}{said}")
}

/// The meaning of `errors`, which may speak of the data directory `data` as of `stand_in`.
pub(crate) fn meaning<T>(errors: &str, stand_in: Option<&Path>, data: &Path) -> StartAnswer<T> {
    // The file of ALTER SYSTEM is a copy, in which a start meets the same error.
    let errors = in_data(errors, stand_in, data, "/postgresql.auto.conf");
    let unrecognized = |name: &&str| lacks(&errors, name);
    let says_nothing = OF_THE_MOMENT
        .iter()
        .chain(&OF_THE_DATA_DIRECTORY)
        .any(|text| errors.contains(text))
        || OF_THE_QUESTION
            .iter()
            .chain(SIZE_PARAMETERS.iter().map(|(_, name)| name))
            .any(unrecognized)
        || stand_in.is_some_and(|path| errors.contains(&*path.to_string_lossy()));
    if says_nothing {
        StartAnswer::Unknown(not_checked(&in_data(&errors, stand_in, data, "")))
    } else {
        StartAnswer::Refuses(errors)
    }
}

/// `errors` with names of `file` in the data directory, which users know, for those in what stands for it.
fn in_data(errors: &str, stand_in: Option<&Path>, data: &Path, file: &str) -> String {
    let name = |directory: &Path| format!("{}{file}", directory.display());
    stand_in.map_or_else(
        || errors.to_owned(),
        |stand_in| errors.replace(&name(stand_in), &name(data)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use StartAnswer::{Refuses, Starts, Unknown};

    /// The answer with options, the answer without them, and what both come to.
    #[test]
    fn both_starts() {
        let options = [
            "shared_buffers=64MB".to_owned(),
            "max_connections=9".to_owned(),
        ];
        let both = |with: StartAnswer<u32>, without: StartAnswer<u32>| {
            TwoStarts::of_both(with, Some((&options[..], || without)))
        };
        let note = "the command line of the server sets shared_buffers=64MB, max_connections=9, which only pg_ctl restart \
                    repeats";
        let alone = Starts(TwoStarts {
            with_options: 2,
            without: None,
        });
        assert_eq!(
            TwoStarts::of_both(Starts(2), None::<(&[String], fn() -> StartAnswer<u32>)>),
            alone
        );
        assert_eq!(both(Starts(2), Starts(2)), alone);
        let without = Some((3, note.to_owned()));
        assert_eq!(
            both(Starts(2), Starts(3)),
            Starts(TwoStarts {
                with_options: 2,
                without
            })
        );
        assert_eq!(
            both(Starts(2), Refuses("no".to_owned())),
            Unknown(format!("{note}; without it the server says: no"))
        );
        assert_eq!(
            both(Starts(2), Unknown("why".to_owned())),
            Unknown("why".to_owned())
        );
        assert_eq!(
            both(Refuses("no".to_owned()), Starts(2)),
            Refuses("no".to_owned())
        );
        assert_eq!(
            both(Unknown("why".to_owned()), Starts(2)),
            Unknown("why".to_owned())
        );
    }

    fn of_errors(errors: &str) -> StartAnswer<()> {
        meaning(errors, Some(Path::new("/tmp/own")), Path::new("/data"))
    }

    #[test]
    fn each_kind_of_error() {
        let refusal = "FATAL:  invalid value for parameter \"shared_buffers\": \"x\"";
        assert_eq!(of_errors(refusal), StartAnswer::Refuses(refusal.to_owned()));
        let unrecognized =
            |name| format!("FATAL:  unrecognized configuration parameter \"{name}\"");
        let of_server = unrecognized("io_method");
        assert_eq!(of_errors(&of_server), StartAnswer::Refuses(of_server));
        let of_question = OF_THE_QUESTION.map(unrecognized);
        let texts = OF_THE_MOMENT.iter().chain(&OF_THE_DATA_DIRECTORY).copied();
        for errors in texts.chain(of_question.iter().map(String::as_str)) {
            let expected = format!("could not check the configuration; the server says: {errors}");
            assert_eq!(of_errors(errors), StartAnswer::Unknown(expected));
        }
        assert_eq!(
            of_errors("no file \"/tmp/own/x\""),
            Unknown(not_checked("no file \"/data/x\""))
        );
        // The file of ALTER SYSTEM is a copy, one that it includes is not there.
        let in_file =
            |directory: &str| format!("syntax error in file \"{directory}/postgresql.auto.conf\"");
        assert_eq!(of_errors(&in_file("/tmp/own")), Refuses(in_file("/data")));
        let included =
            |directory: &str| format!("no file \"{directory}/x\" {}", in_file(directory));
        assert_eq!(
            of_errors(&included("/tmp/own")),
            Unknown(not_checked(&included("/data")))
        );
    }
}
