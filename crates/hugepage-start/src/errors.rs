//! The meaning of an error of the server's program: a start would fail as well, or only the question did.

use std::path::Path;

use crate::StartAnswer;
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
const OF_THE_DATA_DIRECTORY: [&str; 2] = ["lock file \"postmaster.pid\"", "file \"global/pg_control\""];
/// Settings that the question sets and another major may not have.
const OF_THE_QUESTION: [&str; 3] = ["log_error_verbosity", "log_line_prefix", "log_min_error_statement"];

/// Whether `errors` say that the server has no parameter `name`.
pub(crate) fn lacks(errors: &str, name: &str) -> bool {
    errors.contains(&format!("unrecognized configuration parameter \"{name}\""))
}

/// The meaning of `errors`, which may speak of the data directory `data` as of `stand_in`.
pub(crate) fn meaning<T>(errors: &str, stand_in: Option<&Path>, data: &Path) -> StartAnswer<T> {
    let unrecognized = |name: &&str| lacks(errors, name);
    let stand_in = stand_in.map(Path::to_string_lossy);
    let says_nothing = OF_THE_MOMENT.iter().chain(&OF_THE_DATA_DIRECTORY).any(|text| errors.contains(text))
        || OF_THE_QUESTION.iter().chain(SIZE_PARAMETERS.iter().map(|(_, name)| name)).any(unrecognized)
        || stand_in.as_ref().is_some_and(|path| errors.contains(&**path));
    if !says_nothing {
        return StartAnswer::Refuses(errors.to_owned());
    }
    // Users know the data directory, not what stands for it.
    let errors = stand_in.map_or_else(|| errors.to_owned(), |path| errors.replace(&*path, &data.to_string_lossy()));
    StartAnswer::Unknown(format!("could not check the configuration: {errors}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_errors(errors: &str) -> StartAnswer<()> {
        meaning(errors, Some(Path::new("/tmp/own")), Path::new("/data"))
    }

    #[test]
    fn each_kind_of_error() {
        let refusal = "FATAL:  invalid value for parameter \"shared_buffers\": \"x\"";
        assert_eq!(of_errors(refusal), StartAnswer::Refuses(refusal.to_owned()));
        let unrecognized = |name| format!("FATAL:  unrecognized configuration parameter \"{name}\"");
        let of_server = unrecognized("io_method");
        assert_eq!(of_errors(&of_server), StartAnswer::Refuses(of_server));
        let of_question = OF_THE_QUESTION.map(unrecognized);
        let texts = OF_THE_MOMENT.iter().chain(&OF_THE_DATA_DIRECTORY).copied();
        for errors in texts.chain(of_question.iter().map(String::as_str)) {
            let expected = format!("could not check the configuration: {errors}");
            assert_eq!(of_errors(errors), StartAnswer::Unknown(expected));
        }
        let expected = "could not check the configuration: no file \"/data/x\"".to_owned();
        assert_eq!(of_errors("no file \"/tmp/own/x\""), StartAnswer::Unknown(expected));
    }
}
