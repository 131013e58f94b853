//! What counts as a loss: every pair of states.

use hugepage_core::history::Record;
use hugepage_core::history::regression::regression;
use hugepage_core::model::Lost;

use super::record;

const LANDINGS: [(&str, Option<u64>); 6] = [
    ("hugetlb", Some(1 << 30)),
    ("hugetlb", Some(2 << 20)),
    ("thp", Some(4 << 10)),
    ("partial thp", Some(4 << 10)),
    ("base", Some(4 << 10)),
    ("unknown", None),
];
const OUTLOOKS: [&str; 4] = ["hugetlb", "base", "fails", "unknown"];

/// A row for each state before, a column for each state now, in the order of `LANDINGS`: L where it is a loss.
const LOSSES: [&str; 6] = [".LLLL.", "..LLL.", "...LL.", "....L.", "......", "......"];

fn state((landed_in, page_size): (&str, Option<u64>), outlook: &str) -> Record {
    Record { landed_in: landed_in.to_owned(), page_size, restart_outlook: outlook.to_owned(), ..record(1) }
}

#[test]
fn every_pair() {
    for (row, was) in LANDINGS.iter().enumerate() {
        for (column, is) in LANDINGS.iter().enumerate() {
            for was_outlook in OUTLOOKS {
                for outlook in OUTLOOKS {
                    let lost = regression(&state(*was, was_outlook), &state(*is, outlook));
                    let both_huge = row < 2 && column < 2;
                    let unsafe_now = was_outlook == "hugetlb" && matches!(outlook, "base" | "fails");
                    let expected = match LOSSES[row].as_bytes()[column] {
                        b'L' => Some(false),
                        _ => (both_huge && unsafe_now).then_some(true),
                    };
                    let found = lost.map(|lost| lost.only_outlook);
                    assert_eq!(found, expected, "{was:?} {was_outlook} -> {is:?} {outlook}");
                }
            }
        }
    }
}

#[test]
fn words() {
    let was = state(LANDINGS[0], "hugetlb");
    for (now, what) in [
        (state(LANDINGS[1], "hugetlb"), "was in huge pages of 1 GB, is in huge pages of 2 MB"),
        (state(LANDINGS[2], "base"), "was in huge pages of 1 GB, is in transparent huge pages"),
        (state(LANDINGS[3], "base"), "was in huge pages of 1 GB, is in partly transparent huge pages"),
        (state(LANDINGS[4], "base"), "was in huge pages of 1 GB, is in 4 kB pages"),
        (state(LANDINGS[0], "base"), "would have kept huge pages of 1 GB at a restart, and would lose them now"),
    ] {
        let Some(Lost { what: found, .. }) = regression(&was, &now) else { panic!("{what}") };
        assert_eq!(found, what);
    }
}

#[test]
fn a_record_tells_what_it_lost_and_what_changed() {
    let before = record(1);
    let mut now = Record { nr_hugepages: Some(140), restart_outlook: "base".to_owned(), ..record(2) };
    let changes = now.changes_since(&before);
    assert_eq!(changes, ["restart_outlook from hugetlb to base", "nr_hugepages from 70 to 140"]);
    assert!(now.compare_with(&before).is_some());
    now.add_detail(&changes[..1]);
    let lost = now.lost.unwrap();
    assert_eq!((lost.restart_outlook.as_str(), lost.recorded_at), ("hugetlb", before.recorded_at.clone()));
    let detail = now.detail.unwrap();
    assert!(detail.ends_with("would lose them now; restart_outlook from hugetlb to base"), "{detail}");

    let mut same = Record { free_hugepages: Some(0), page_tables: None, ..record(3) };
    assert!(same.changes_since(&before).is_empty(), "what moves on every busy host");
    same.add_detail(&[]);
    assert_eq!(same.detail, None);
}
