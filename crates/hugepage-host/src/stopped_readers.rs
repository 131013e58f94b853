//! Reads servers that do not run: each service account those that it owns, and `nobody` the rest, of which it can read little.

use std::collections::{BTreeMap, BTreeSet};

use hugepage_assess::assessment::Outlook;
use hugepage_kernel::{Bytes, Notes, Pages};
use hugepage_oracle::readers::oratab;
use hugepage_oracle::start_limits::{self, HostOfStarts};
use hugepage_oracle::stopped::{self, Claim, StoppedOracle};
use hugepage_sizing::Wants;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::context::InspectContext;
use crate::inspect::InspectedServer;
use crate::readers::{self, Owner, Unread};

impl InspectContext<'_> {
    /// The Oracle instances of oratab that do not run, in its order.
    pub(super) fn stopped_oracle(
        &self,
        servers: &[InspectedServer],
        owners: &[Owner],
        unread: &mut Vec<Unread>,
        notes: &mut Notes,
    ) -> Vec<StoppedOracle> {
        let root = self.root;
        let held = |uid| {
            let of_user = servers.iter().filter(|server| server.id.place.uid == Some(uid));
            of_user.map(InspectedServer::held).fold(Bytes(0), Bytes::saturating_add)
        };
        let host = HostOfStarts { root, meminfo: self.meminfo.as_ref(), pools: &self.pools, held: &held };
        // This host's oratab has nothing of a container.
        let ids = servers.iter().map(|server| &server.id).filter(|id| id.place.container.is_none());
        let running: Vec<_> = ids.filter_map(|id| Some((&*id.name, id.oracle()?))).collect();
        let entries = || oratab::read(root, &mut Notes::default()).into_iter();
        let homes = || entries().map(|entry| entry.home).collect::<BTreeSet<_>>();
        let homes = || Vec::from_iter(readers::read_as(&Owner::nobody(root), homes).unwrap_or_default());
        let find = |home: Option<&String>, is_mine: &dyn Fn(Option<u32>) -> Claim, notes: &mut Notes| {
            stopped::stopped(&host, &running, home, is_mine, notes)
        };
        // Nobody comes last, and what was found before counts.
        let by_entry: BTreeMap<_, _> = by_owners(owners, homes, unread, notes, find).into_iter().rev().collect();
        let mut found: Vec<_> = by_entry.into_values().collect();
        let wants = |one: &StoppedOracle| one.wants.pages().filter(|_| one.outlook() == Outlook::Hugetlb);
        let all = found.iter().filter_map(wants).fold(Pages(0), Pages::saturating_add);
        let running = running.iter().filter_map(|(_, oracle)| oracle.memory_target);
        let targets =
            found.iter().filter_map(|one| one.memory_target).chain(running).fold(Bytes(0), Bytes::saturating_add);
        let in_shm = |one: &&mut StoppedOracle| one.memory_target.is_some() && matches!(one.wants, Wants::None(_));
        for one in found.iter_mut().filter(in_shm).filter(|one| one.dev_shm.is_some_and(|size| size < targets)) {
            let why = format!("MEMORY_TARGET: its SGA is files in /dev/shm, too small for the {targets} of all");
            one.wants = Wants::None(why.into());
        }
        // Who starts first gets what is not enough for all: pages, the memlock of a user, and System V memory.
        let lacks = |one: &StoppedOracle| {
            let size = one.pool_state.huge_page_size?;
            let of_owner = found.iter().filter(|other| other.owner == one.owner).filter_map(wants);
            let of_owner = size.times(of_owner.fold(Pages(0), Pages::saturating_add));
            let refuses = one.pool_state.lock_limit.is_some_and(|limit| limit.refuses(of_owner))
                || start_limits::of_host(root, size.times(all), Bytes(0)).is_some();
            Some(wants(one)? < all && (refuses || one.forecast.as_ref()?.guaranteed? < all))
        };
        let lacking: Vec<_> = found.iter().map(|one| lacks(one) == Some(true)).collect();
        for (one, _) in found.iter_mut().zip(lacking).filter(|(_, lacks)| *lacks) {
            one.forecast.iter_mut().for_each(|forecast| forecast.outlook = Outlook::Unknown);
        }
        found
    }
}

/// What `find` returns for all owners, the last of whom is nobody. It gets who reads what a user owns: its own reader, for root's and for
/// what is not visible nobody's. If somebody has no answer, each of the `places` is asked by itself: one that does not answer is unread,
/// and hides no other.
#[track_caller]
pub(super) fn by_owners<T: Serialize + DeserializeOwned>(
    owners: &[Owner],
    places: impl Fn() -> Vec<String>,
    unread: &mut Vec<Unread>,
    notes: &mut Notes,
    find: impl Fn(Option<&String>, &dyn Fn(Option<u32>) -> Claim, &mut Notes) -> Vec<T>,
) -> Vec<T> {
    let Some((_, accounts)) = owners.split_last() else { return Vec::new() };
    let read = |number: usize, place: Option<&String>| {
        let mut notes = Notes::default();
        let is_mine = |uid: Option<u32>| match accounts.get(number) {
            Some(owner) if uid == Some(owner.uid) => Claim::Mine,
            None if accounts.is_empty() || uid.is_none_or(|uid| uid == 0) => Claim::Mine,
            None if accounts.iter().all(|owner| uid != Some(owner.uid)) => Claim::OfNobody,
            _ => Claim::OfAnother,
        };
        let found = find(place, &is_mine, &mut notes);
        (found, notes.into_vec())
    };
    let mut answers = readers::read_each(owners, |number| read(number, None));
    let places = if answers.iter().any(Result::is_err) { places() } else { Vec::new() };
    if !places.is_empty() {
        let at = |owner: &Owner, place: &String| Owner { place: place.clone(), ..owner.clone() };
        let asked: Vec<_> = owners.iter().flat_map(|owner| places.iter().map(|place| at(owner, place))).collect();
        answers = readers::read_each(&asked, |number| read(number / places.len(), Some(&asked[number].place)));
    }
    let known = answers.into_iter().filter_map(|answer| answer.map_err(|why| why.add_to(unread)).ok());
    let found = known.flat_map(|(some, noted)| {
        noted.into_iter().for_each(|note| notes.add(note));
        some
    });
    found.collect()
}
