//! Notes of the views that have no column for them: kept in the session, and shown by its next `hugepage_status`.

use std::cell::RefCell;
use std::collections::BTreeMap;

use hugepage_core::notes::Notes;

thread_local! {
    static NOTES: RefCell<BTreeMap<&'static str, Vec<String>>> = const { RefCell::new(BTreeMap::new()) };
}

/// Replaces what `view` had to note before.
pub fn keep(view: &'static str, notes: Notes) {
    NOTES.with_borrow_mut(|kept| {
        kept.insert(view, notes.into_vec());
    });
}

/// Adds what the views noted last to `notes`.
pub fn add_to(notes: &mut Notes) {
    NOTES.with_borrow(|kept| kept.values().flatten().for_each(|note| notes.add(note.clone())));
}
