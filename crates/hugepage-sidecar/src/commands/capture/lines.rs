//! Selects lines of a file.

/// The lines for which `is_kept` holds.
pub fn lines(text: &str, is_kept: impl Fn(&str) -> bool) -> String {
    text.lines().filter(|line| is_kept(line)).flat_map(|line| [line, "\n"]).collect()
}
