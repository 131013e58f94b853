//! Values of a fixed size, for shared memory: no pointers, and nothing that has to be parsed.

use std::array;

/// A text that is cut to `ROOM` bytes.
#[derive(Clone, Copy)]
pub struct SharedText<const ROOM: usize> {
    length: usize,
    bytes: [u8; ROOM],
}

impl<const ROOM: usize> SharedText<ROOM> {
    /// The beginning of `text`.
    pub fn cut(text: &str) -> Self {
        let length = text.floor_char_boundary(ROOM);
        let mut bytes = [0; ROOM];
        bytes[..length].copy_from_slice(&text.as_bytes()[..length]);
        Self { length, bytes }
    }

    /// The text as it was cut.
    pub fn get(&self) -> String {
        String::from_utf8_lossy(&self.bytes[..self.length.min(ROOM)]).into_owned()
    }
}

impl<const ROOM: usize> Default for SharedText<ROOM> {
    fn default() -> Self {
        Self::cut("")
    }
}

/// The first `ROOM` of several values.
#[derive(Clone, Copy)]
pub struct Few<T, const ROOM: usize>([Option<T>; ROOM]);

impl<T, const ROOM: usize> Few<T, ROOM> {
    /// The values.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter().flatten()
    }
}

impl<T: Copy, const ROOM: usize> Default for Few<T, ROOM> {
    fn default() -> Self {
        Self([None; ROOM])
    }
}

impl<T, const ROOM: usize> FromIterator<T> for Few<T, ROOM> {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
        let mut values = values.into_iter();
        Self(array::from_fn(|_| values.next()))
    }
}
