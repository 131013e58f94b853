//! All starts of an alert log, and the history that they make.
#![no_main]

use std::io::Cursor;

use hugepage_oracle::log_history::{MAX_STARTS, remembered};
use hugepage_oracle::readers::alert_log::{last_start_in, starts_in};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut left = u64::MAX;
    let starts = starts_in(&mut Cursor::new(bytes), MAX_STARTS, &mut left).expect("memory can be read");
    assert!(starts.len() <= MAX_STARTS);
    // The last of all is what a reader of the last one finds.
    if let Some(last) = starts.first().filter(|start| start.mode.is_some()) {
        assert_eq!(
            last_start_in(&mut Cursor::new(bytes), &mut { u64::MAX }).expect("memory can be read").as_ref(),
            Some(last)
        );
    }
    let history = remembered(starts.clone());
    assert!(history.len() <= starts.len());
    for (at, one) in history.iter().enumerate() {
        assert!(one.since <= at && history[one.since].got == one.got, "{at}: {one:?}");
        assert!(one.lost.is_none() || !one.failed, "a failed start loses nothing");
    }
    let time = |at: usize| history[at].start.at.as_ref().map(|time| time.local);
    assert!((1..history.len()).all(|at| time(at - 1) <= time(at)));
});
