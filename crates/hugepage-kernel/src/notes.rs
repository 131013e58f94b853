//! What could not be read and why, collected beside the answer, which is returned all the same.

use std::fmt::Display;

/// The bytes of one note; a path has up to 4096.
const MAX_NOTE_BYTES: usize = 1000;
/// The bytes of all notes: who owns the files that are read chooses their number and their names.
const MAX_BYTES: usize = 16 << 10;

/// Notes for users, one sentence each, without repetitions, and of a bounded length in all.
#[derive(Clone, Debug, Default)]
pub struct Notes {
    kept: Vec<String>,
    bytes: usize,
    left_out: usize,
}

impl Notes {
    /// Adds one note unless it is there already.
    pub fn add(&mut self, note: impl Into<String>) {
        let note = cut(note.into());
        if self.kept.contains(&note) {
            return;
        }
        if self.bytes + note.len() > MAX_BYTES {
            self.left_out += 1;
            return;
        }
        self.bytes += note.len();
        self.kept.push(note);
    }

    /// The value, or `None` and a note on why there is none.
    pub fn keep<T>(&mut self, result: Result<T, impl Display>) -> Option<T> {
        result.map_err(|error| self.add(error.to_string())).ok()
    }

    /// All notes in the order in which they came, and how many more there were.
    pub fn into_vec(mut self) -> Vec<String> {
        if self.left_out > 0 {
            self.kept
                .push(format!("{} more notes were left out", self.left_out));
        }
        self.kept
    }
}

impl<N: Into<String>> Extend<N> for Notes {
    fn extend<I: IntoIterator<Item = N>>(&mut self, notes: I) {
        for note in notes {
            self.add(note);
        }
    }
}

/// A note of a bounded length, of which the middle is left out.
fn cut(mut note: String) -> String {
    if note.len() > MAX_NOTE_BYTES {
        let begin = MAX_NOTE_BYTES / 2;
        let end = note.len() - MAX_NOTE_BYTES / 2;
        note.replace_range(
            note.floor_char_boundary(begin)..note.ceil_char_boundary(end),
            "...",
        );
    }
    note
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_bounded() {
        let mut notes = Notes::default();
        for note in ["one", "two", "one"] {
            notes.add(note);
        }
        for number in 0..10_000 {
            notes.add(format!("{number}{}end", "é".repeat(4096)));
        }
        let notes = notes.into_vec();
        assert_eq!(notes[..2], ["one", "two"]);
        assert!(
            notes[2].starts_with("0éé") && notes[2].contains("é...é") && notes[2].ends_with("éend"),
            "{}",
            notes[2]
        );
        assert!(
            notes.iter().map(String::len).sum::<usize>() < 17 << 10,
            "{}",
            notes.len()
        );
        assert_eq!(
            notes.last().unwrap(),
            &format!("{} more notes were left out", 10_003 - notes.len())
        );
    }
}
