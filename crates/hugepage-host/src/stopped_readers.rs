//! Reads servers that do not run: each service account those that it owns, and `nobody` the rest, of which it can read little.

use std::collections::{BTreeMap, BTreeSet};

use hugepage_facts::{Owner, ServerFacts, StoppedFacts, Unread};
use hugepage_kernel::source::failures;
use hugepage_kernel::{Notes, Root};
use hugepage_oracle::readers::oratab;
use hugepage_oracle::stopped::{self, Claim, ClaimOf};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::readers::{self, owner};

/// The Oracle instances of oratab that do not run, in its order.
pub(super) fn stopped_oracle(
    root: &Root,
    servers: &[ServerFacts],
    owners: &[Owner],
    unread: &mut Vec<Unread>,
    notes: &mut Notes,
) -> Vec<StoppedFacts> {
    // This host's oratab has nothing of a container.
    let ids = servers
        .iter()
        .map(|server| &server.id)
        .filter(|id| id.place.container.is_none());
    let running: Vec<_> = ids
        .filter_map(|id| Some((&*id.name, id.place.uid, id.oracle()?)))
        .collect();
    let listed = readers::read_as(&owner::nobody(root), || {
        let mut notes = Notes::default();
        let entries = oratab::read(root, &mut notes).into_iter();
        let homes: BTreeSet<_> = entries.map(|entry| entry.home).collect();
        (homes, notes.into_vec())
    });
    let (homes, unclear) = listed.unwrap_or_else(|why| (BTreeSet::new(), vec![why.to_string()]));
    if homes.is_empty() && unclear.is_empty() {
        return Vec::new();
    }
    let homes: Vec<_> = homes.into_iter().collect();
    // Nobody comes last, and what was found before counts.
    let found = by_owners(owners, &homes, unread, notes, |home, is_mine, notes| {
        stopped::stopped(root, &running, home, is_mine, notes)
    });
    let by_entry: BTreeMap<_, _> = found.into_iter().rev().collect();
    by_entry.into_values().collect()
}

/// What `find` returns for all owners, the last of whom is nobody. It gets who reads what a user owns: its own reader, for root's and for
/// what is not visible nobody's. If somebody has no answer, each of the `places` is asked by itself: one that does not answer is unread,
/// and hides no other.
#[track_caller]
pub(super) fn by_owners<T: Serialize + DeserializeOwned>(
    owners: &[Owner],
    places: &[String],
    unread: &mut Vec<Unread>,
    notes: &mut Notes,
    find: impl Fn(Option<&String>, ClaimOf<'_>, &mut Notes) -> Vec<T>,
) -> Vec<T> {
    let Some((_, accounts)) = owners.split_last() else {
        return Vec::new();
    };
    let read = |number: usize, place: Option<&String>| {
        let mut notes = Notes::default();
        let is_mine = |uid: Option<u32>| match accounts.get(number) {
            Some(owner) if uid == Some(owner.uid) => Claim::Mine,
            None if accounts.is_empty() || uid.is_none_or(|uid| uid == 0) => Claim::Mine,
            None if accounts.iter().all(|owner| uid != Some(owner.uid)) => Claim::OfNobody,
            _ => Claim::OfAnother,
        };
        let found = find(place, &is_mine, &mut notes);
        (found, notes.into_vec(), failures::has_failed())
    };
    let mut of_answers = owners.to_vec();
    let mut answers = readers::read_each(owners, |number| read(number, None));
    if !places.is_empty() && answers.iter().any(Result::is_err) {
        let at = |owner: &Owner, place: &String| Owner {
            place: place.clone(),
            ..owner.clone()
        };
        let asked: Vec<_> = owners
            .iter()
            .flat_map(|owner| places.iter().map(|place| at(owner, place)))
            .collect();
        answers = readers::read_each(&asked, |number| {
            read(number / places.len(), Some(&asked[number].place))
        });
        of_answers = asked;
    }
    let mut all = Vec::new();
    for (owner, answer) in of_answers.iter().zip(answers) {
        match answer {
            Ok((found, noted, has_failed)) => {
                all.extend(found);
                notes.extend(noted);
                has_failed.then(|| owner::unread_in_part(owner).add_to(unread));
            }
            Err(why) => why.add_to(unread),
        }
    }
    all
}
