//! What counts as a loss: every pair of states.

use hugepage_assess::assessment::{Outlook, Threat};
use hugepage_assess::history::Record;
use hugepage_assess::history::record::Before;
use hugepage_assess::history::regression;
use hugepage_facts::{Cause, Landing};
use hugepage_kernel::{PageSize, Pages};

use super::record;

const LANDINGS: [(Landing, Option<u64>); 6] = [
    (Landing::Hugetlb, Some(1 << 30)),
    (Landing::Hugetlb, Some(2 << 20)),
    (Landing::Thp, Some(4 << 10)),
    (Landing::PartialThp, Some(4 << 10)),
    (Landing::Base, Some(4 << 10)),
    (Landing::Unknown, None),
];
const OUTLOOKS: [Outlook; 4] = [
    Outlook::Hugetlb,
    Outlook::Base,
    Outlook::Fails,
    Outlook::Unknown,
];

/// A row for each state before, a column for each state now, in the order of `LANDINGS`: L where it is a loss.
const LOSSES: [&str; 6] = [".LLLL.", "..LLL.", "...LL.", "....L.", "......", "......"];

fn state((landed_in, page_size): (Landing, Option<u64>), restart_outlook: Outlook) -> Record {
    Record {
        landed_in,
        page_size: page_size.and_then(PageSize::new),
        restart_outlook,
        ..record(1)
    }
}

#[test]
fn every_pair() {
    for (row, was) in LANDINGS.iter().enumerate() {
        for (column, is) in LANDINGS.iter().enumerate() {
            for was_outlook in OUTLOOKS {
                for outlook in OUTLOOKS {
                    let lost = regression(
                        &Before::state_of(&state(*was, was_outlook)),
                        &state(*is, outlook),
                    );
                    let both_huge = row < 2 && column < 2;
                    let unsafe_now = was_outlook == Outlook::Hugetlb
                        && matches!(outlook, Outlook::Base | Outlook::Fails);
                    let expected = match LOSSES[row].as_bytes()[column] {
                        b'L' => Some(false),
                        _ => (both_huge && unsafe_now).then_some(true),
                    };
                    let found = lost.map(|lost| lost.only_outlook());
                    assert_eq!(found, expected, "{was:?} {was_outlook} -> {is:?} {outlook}");
                }
            }
        }
    }
}

#[test]
fn base_pages_by_choice_are_no_loss() {
    let was = state(LANDINGS[1], Outlook::Hugetlb);
    for (cause, is_loss) in [(Cause::PoolEmpty, true), (Cause::Disabled, false)] {
        let now = Record {
            cause: Some(cause),
            ..state(LANDINGS[4], Outlook::Base)
        };
        assert_eq!(
            regression(&Before::state_of(&was), &now).is_some(),
            is_loss,
            "{cause}"
        );
    }
}

#[test]
fn words() {
    let was = state(LANDINGS[0], Outlook::Hugetlb);
    for (now, what) in [
        (
            state(LANDINGS[1], Outlook::Hugetlb),
            "was in huge pages of 1 GB, is in huge pages of 2 MB",
        ),
        (
            state(LANDINGS[2], Outlook::Base),
            "was in huge pages of 1 GB, is in transparent huge pages",
        ),
        (
            state(LANDINGS[3], Outlook::Base),
            "was in huge pages of 1 GB, is in partly transparent huge pages",
        ),
        (
            state(LANDINGS[4], Outlook::Base),
            "was in huge pages of 1 GB, is in 4 kB pages",
        ),
        (
            state(LANDINGS[0], Outlook::Base),
            "would have kept huge pages of 1 GB at a restart, and would lose them now",
        ),
    ] {
        assert_eq!(
            regression(&Before::state_of(&was), &now)
                .unwrap()
                .to_string(),
            what
        );
    }
}

#[test]
fn a_record_tells_what_it_lost_and_what_changed() {
    let before = record(1);
    let mut now = Record {
        nr_hugepages: Some(Pages(140)),
        restart_outlook: Outlook::Base,
        ..record(2)
    };
    let changes = now.changes_since(&before);
    assert_eq!(
        changes,
        [
            "restart_outlook from hugetlb to base",
            "nr_hugepages from 70 to 140"
        ]
    );
    assert!(now.compare_with(&before).is_some());
    now.add_detail(&changes[..1]);
    let lost = now.lost.unwrap();
    assert_eq!(
        (lost.restart_outlook, lost.recorded_at),
        (Outlook::Hugetlb, before.recorded_at.clone())
    );
    let detail = now.detail.unwrap();
    assert!(
        detail.ends_with("would lose them now; restart_outlook from hugetlb to base"),
        "{detail}"
    );

    let mut same = Record {
        free_hugepages: Some(Pages(0)),
        page_tables: None,
        ..record(3)
    };
    assert!(
        same.changes_since(&before).is_empty(),
        "what moves on every busy host"
    );
    same.add_detail(&[]);
    assert_eq!(same.detail, None);
}

/// Files have the same texts as views and metrics.
#[test]
fn texts_of_the_file() {
    fn assert_texts<T: serde::Serialize + std::fmt::Display>(all: &[T]) {
        for value in all {
            assert_eq!(
                serde_json::to_string(value).unwrap(),
                format!("\"{value}\"")
            );
        }
    }
    assert_texts(&Landing::ALL);
    assert_texts(&Outlook::ALL);
    assert_texts(&Cause::ALL);
    assert_texts(&Threat::ALL);
}

#[test]
fn words_of_a_later_version() {
    let record = Record {
        cause: Some(Cause::Unknown),
        landed_in: Landing::Unknown,
        ..record(1)
    };
    let json = serde_json::to_string(&record).unwrap();
    let later = json
        .replace(r#""landed_in":"unknown""#, r#""landed_in":"new""#)
        .replace(r#""cause":"unknown""#, r#""cause":"new""#)
        .replace(r#""threats":[]"#, r#""threats":["new"]"#);
    assert_ne!(later, json);
    assert_eq!(serde_json::from_str::<Record>(&later).unwrap(), record);
}
