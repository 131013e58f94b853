//! What each instance landed in at its starts, remembered beside the files, so that a start that lost is marked.
//!
//! A loss stays marked over further starts until one is as good again.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Result;
use serde::{Deserialize, Serialize};

use crate::oracle::columns::Instance;
use crate::oracle::files::Writer;
use crate::oracle::snapshot::Snapshot;

const FILE: &str = ".landings.json";
/// An instance that has not been seen for so long is forgotten.
const FORGET_AFTER: Duration = Duration::from_secs(400 * 24 * 3600);

/// What one start landed in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Landing {
    /// `hugetlb`, `mixed`, `thp`, `partial thp` or `base`.
    landed_in: String,
    /// Bytes; `None` if unknown.
    page_size: Option<u64>,
}

/// What is remembered of an instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Memory {
    /// When it started last, in seconds since 1970.
    started: u64,
    /// When it was seen last.
    seen: u64,
    /// What that start landed in.
    now: Landing,
    /// What was lost, and when the start was that lost it.
    lost: Option<(Landing, u64)>,
}

/// Compares every instance of `snapshot` with what is remembered of it, marks it, and remembers it.
pub fn remember(writer: &Writer, snapshot: &mut Snapshot) -> Result<()> {
    // A damaged memory is no reason to write no snapshot: it begins anew.
    let mut memories: BTreeMap<String, Memory> =
        writer.memory(FILE)?.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
    let before = memories.clone();
    let seen = seconds(snapshot.taken_at);
    for instance in &mut snapshot.instances {
        recall(&mut memories, instance, seen);
    }
    memories.retain(|_, memory| seen.saturating_sub(memory.seen) < FORGET_AFTER.as_secs());
    if memories == before {
        return Ok(());
    }
    writer.keep_in_memory(FILE, &serde_json::to_string(&memories)?)
}

fn recall(memories: &mut BTreeMap<String, Memory>, instance: &mut Instance, seen: u64) {
    let key = [&instance.kind, &instance.sid, &instance.home].map(|part| part.clone().unwrap_or_default()).join("\n");
    let memory = memories.get(&key).cloned();
    let memory = match (Landing::of(instance), instance.started_utc) {
        (Some(now), Some(started)) => Some(match memory {
            Some(memory) => memory.at_start(now, seconds(started), seen),
            None => Memory { started: seconds(started), seen, now, lost: None },
        }),
        _ => memory.map(|memory| Memory { seen, ..memory }),
    };
    let lost = memory.as_ref().and_then(|memory| memory.lost.as_ref());
    instance.regression = memory.as_ref().map(|memory| memory.lost.is_some());
    instance.previous_landed_in = lost.map(|(landing, _)| landing.landed_in.clone());
    instance.regression_utc = lost.map(|(_, at)| UNIX_EPOCH + Duration::from_secs(*at));
    if let Some(memory) = memory {
        memories.insert(key, memory);
    }
}

impl Memory {
    fn at_start(self, now: Landing, started: u64, seen: u64) -> Self {
        // Ticks since boot, of which a start time is made, wander by a second against the clock.
        if self.started.abs_diff(started) <= 2 {
            return Self { now, seen, ..self };
        }
        let best = match self.lost {
            Some((landing, at)) => (landing, at),
            None => (self.now, started),
        };
        let lost = (now.compare(&best.0) == Ordering::Less).then_some(best);
        Self { started, seen, now, lost }
    }
}

impl Landing {
    /// `None` where it is not known.
    fn of(instance: &Instance) -> Option<Self> {
        let landed_in = instance.landed_in.clone().filter(|landed_in| rank(landed_in).is_some())?;
        Some(Self { landed_in, page_size: instance.page_size.map(|size| size.0) })
    }

    /// Larger huge pages are better, too.
    fn compare(&self, other: &Self) -> Ordering {
        rank(&self.landed_in).cmp(&rank(&other.landed_in)).then_with(|| match (self.page_size, other.page_size) {
            (Some(size), Some(other)) if self.landed_in == "hugetlb" => size.cmp(&other),
            _ => Ordering::Equal,
        })
    }
}

fn rank(landed_in: &str) -> Option<usize> {
    ["base", "partial thp", "thp", "mixed", "hugetlb"].iter().position(|known| *known == landed_in)
}

fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

#[cfg(test)]
mod tests {
    use hugepage_core::Bytes;

    use super::*;

    const MB: u64 = 1 << 20;

    /// Instances that start one after the other: landed_in and page size in; previous_landed_in and the number of the
    /// start that lost out.
    fn starts(landings: &[(&str, u64)]) -> Vec<Option<(String, u64)>> {
        let mut memories = BTreeMap::new();
        let mut marks = Vec::new();
        for (start, (landed_in, page_size)) in (1..).zip(landings) {
            for look in 0..2 {
                let started = UNIX_EPOCH + Duration::from_secs(1000 * start + look);
                let mut instance = Instance {
                    sid: Some("ORCL".to_owned()),
                    landed_in: Some((*landed_in).to_owned()),
                    page_size: Some(Bytes(*page_size)),
                    started_utc: Some(started),
                    ..Instance::default()
                };
                recall(&mut memories, &mut instance, 1000 * start + 500);
                let lost = instance.previous_landed_in.zip(instance.regression_utc);
                assert_eq!(instance.regression.unwrap_or_default(), lost.is_some());
                let lost = lost.map(|(landed_in, at)| (landed_in, seconds(at) / 1000));
                if look == 0 { marks.push(lost) } else { assert_eq!(marks.last(), Some(&lost)) }
            }
        }
        marks
    }

    #[test]
    fn a_loss_is_marked_until_it_is_made_good() {
        let lost = |landed_in: &str, at| Some((landed_in.to_owned(), at));
        let (huge, mixed, base) = (("hugetlb", 2 * MB), ("mixed", 2 * MB), ("base", 4096));
        assert_eq!(starts(&[huge, huge]), [None, None]);
        assert_eq!(starts(&[huge, mixed]), [None, lost("hugetlb", 2)]);
        assert_eq!(
            starts(&[huge, mixed, base, mixed, huge]),
            [None, lost("hugetlb", 2), lost("hugetlb", 2), lost("hugetlb", 2), None]
        );
        assert_eq!(starts(&[mixed, base, mixed, base]), [None, lost("mixed", 2), None, lost("mixed", 4)]);
        assert_eq!(starts(&[base, mixed, huge]), [None, None, None]);
        assert_eq!(starts(&[("hugetlb", 1024 * MB), huge]), [None, lost("hugetlb", 2)]);
        assert_eq!(starts(&[huge, ("unknown", 0), base]), [None, None, lost("hugetlb", 3)]);
        assert_eq!(starts(&[("unknown", 0), base]), [None, None]);
    }
}
