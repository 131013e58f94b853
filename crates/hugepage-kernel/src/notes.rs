//! What could not be read and why, collected beside the answer, which is returned all the same.

use crate::ReadError;

/// Notes for users, one sentence each, without repetitions.
#[derive(Debug, Default)]
pub struct Notes(Vec<String>);

impl Notes {
    /// Adds one note unless it is there already.
    pub fn add(&mut self, note: impl Into<String>) {
        let note = note.into();
        if !self.0.contains(&note) {
            self.0.push(note);
        }
    }

    /// The value, or `None` and a note on why there is none.
    pub fn keep<T>(&mut self, result: Result<T, ReadError>) -> Option<T> {
        result.map_err(|error| self.add(error.to_string())).ok()
    }

    /// All notes in the order in which they came.
    pub fn into_vec(self) -> Vec<String> {
        self.0
    }
}
