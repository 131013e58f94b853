//! Errors of a server's program that was asked about a start, which say nothing about that start.

/// Errors of a moment, or of the asking process alone: a full disk, limits (strerror(3), dlopen(3)).
const OF_THE_MOMENT: [&str; 8] = [
    "No space left on device",
    "Disk quota exceeded",
    "Input/output error",
    "Cannot allocate memory",
    "out of memory",
    "Too many open files",
    "Resource temporarily unavailable",
    "failed to map segment from shared object",
];

/// Whether the error is one of a moment, or of the asking process alone.
pub fn are_of_the_moment(errors: &str) -> bool {
    OF_THE_MOMENT.iter().any(|text| errors.contains(text))
}
