//! What an error of the program means: that a start would fail as well, or only that this check did.

use std::path::Path;

use hugepage_start::errors;

use super::Answer;

/// Errors about the files of the stub, which a start does not have.
const OF_THE_STUB: [&str; 2] = ["lock file \"postmaster.pid\"", "file \"global/pg_control\""];
/// Settings that only this program asks for; another major may not have them.
const OF_THE_CHECK: [&str; 3] = ["shared_memory_size_in_huge_pages", "log_error_verbosity", "log_line_prefix"];

/// The meaning of `errors`, which speak of the data directory `data` as of `stub`.
pub fn meaning(errors: &str, stub: &Path, data: &Path) -> Answer {
    let unrecognized = |name: &&str| errors.contains(&format!("unrecognized configuration parameter \"{name}\""));
    let stub = stub.to_string_lossy();
    let says_nothing = errors::are_of_the_moment(errors)
        || OF_THE_STUB.iter().any(|text| errors.contains(text))
        || OF_THE_CHECK.iter().any(unrecognized)
        || errors.contains(&*stub);
    if says_nothing {
        // Users know the data directory, not the stub.
        let errors = errors.replace(&*stub, &data.to_string_lossy());
        return Answer::Unknown(format!("could not check the configuration: {errors}"));
    }
    Answer::Refuses(errors.to_owned())
}
