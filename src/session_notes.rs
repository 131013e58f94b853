//! Notes of views without a `notes` column. The session keeps them, and its next `hugepage_status` shows them.

use std::cell::RefCell;
use std::collections::BTreeMap;

use hugepage_core::notes::Notes;

thread_local! {
    static NOTES: RefCell<BTreeMap<&'static str, Vec<String>>> = const { RefCell::new(BTreeMap::new()) };
}

/// Replaces the notes of `view`.
pub fn replace(view: &'static str, notes: Notes) {
    NOTES.with_borrow_mut(|kept| {
        kept.insert(view, notes.into_vec());
    });
}

/// Adds the notes of all views to `notes`.
pub fn add_to(notes: &mut Notes) {
    NOTES.with_borrow(|kept| kept.values().flatten().for_each(|note| notes.add(note.clone())));
}
