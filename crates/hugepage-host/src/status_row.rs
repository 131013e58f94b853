//! The row of one instance of a survey.

use hugepage_assess::StatusRow;
use hugepage_sizing::Sizing;

use crate::Instance;

/// The row of `instance`; its recommendation counts all instances of the host.
pub fn status_row(instance: &Instance, sizings: &[Sizing]) -> StatusRow {
    let row = StatusRow::new(&instance.status);
    let size = instance.status.facts.pool_state.huge_page_size;
    let sizing = size.and_then(|size| Sizing::of_size(sizings, size));
    StatusRow { recommended_nr_hugepages: sizing.and_then(|sizing| sizing.recommended), ..row }
}
