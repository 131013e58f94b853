//! Reads servers that do not run: each service account those that it owns, and `nobody` the rest, of which it can read little.

use std::collections::BTreeMap;

use hugepage_assess::assessment::Outlook;
use hugepage_assess::stopped_databases::Wants;
use hugepage_kernel::notes::Notes;
use hugepage_kernel::{Bytes, Pages};
use hugepage_oracle::stopped::{self, Claim, HostOfStarts, NamedOracle, StoppedOracle};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::readers::{self, Owner, Unread};

/// The Oracle instances of oratab that do not run, in its order.
pub(super) fn stopped_oracle(
    owners: &[Owner],
    host: &HostOfStarts<'_>,
    running: &[NamedOracle<'_>],
    unread: &mut Vec<Unread>,
    notes: &mut Notes,
) -> Vec<StoppedOracle> {
    let find =
        |is_mine: &dyn Fn(Option<u32>) -> Claim, notes: &mut Notes| stopped::stopped(host, running, is_mine, notes);
    let mut found = by_owners(owners, unread, notes, find);
    let wants = |one: &StoppedOracle| one.wants.pages().filter(|_| one.outlook() == Outlook::Hugetlb);
    let all = found.iter().filter_map(wants).fold(Pages(0), Pages::saturating_add);
    let running = running.iter().filter_map(|one| one.oracle.last_start.as_ref()?.parameters.memory_target());
    let targets = found.iter().filter_map(|one| one.memory_target).chain(running).fold(Bytes(0), Bytes::saturating_add);
    let in_shm = |one: &&mut StoppedOracle| one.memory_target.is_some() && matches!(one.wants, Wants::None(_));
    for one in found.iter_mut().filter(in_shm).filter(|one| one.dev_shm.is_some_and(|size| size < targets)) {
        let why = format!("MEMORY_TARGET: its SGA is files in /dev/shm, too small for the {targets} of all");
        one.wants = Wants::None(why.into());
    }
    let alone = found.iter_mut().filter(|one| wants(one).is_some()).filter_map(|one| one.forecast.as_mut());
    for forecast in alone.filter(|forecast| forecast.guaranteed.is_some_and(|pages| pages < all)) {
        forecast.outlook = Outlook::Unknown;
    }
    found
}

/// What `find` returns for all owners, the last of whom is nobody, by its key. It gets who reads what a user owns: its own reader, for
/// root's and for what is not visible nobody's; one that a service account has found does not count for nobody.
#[track_caller]
pub(super) fn by_owners<K: Ord + Serialize + DeserializeOwned, T: Serialize + DeserializeOwned>(
    owners: &[Owner],
    unread: &mut Vec<Unread>,
    notes: &mut Notes,
    find: impl Fn(&dyn Fn(Option<u32>) -> Claim, &mut Notes) -> Vec<(K, T)>,
) -> Vec<T> {
    let Some((_, accounts)) = owners.split_last() else { return Vec::new() };
    let read = |number: usize| {
        let mut notes = Notes::default();
        let is_mine = |uid: Option<u32>| match accounts.get(number) {
            Some(owner) if uid == Some(owner.uid) => Claim::Mine,
            None if accounts.is_empty() || uid.is_none_or(|uid| uid == 0) => Claim::Mine,
            None if accounts.iter().all(|owner| uid != Some(owner.uid)) => Claim::OfNobody,
            _ => Claim::OfAnother,
        };
        let found = find(&is_mine, &mut notes);
        (found, notes.into_vec())
    };
    let mut found = BTreeMap::new();
    for answer in readers::read_each(owners, read) {
        match answer {
            Ok((some, noted)) => {
                noted.into_iter().for_each(|note| notes.add(note));
                // Nobody comes last.
                some.into_iter().for_each(|(key, one)| _ = found.entry(key).or_insert(one));
            }
            Err(why) => why.add_to(unread),
        }
    }
    found.into_values().collect()
}
