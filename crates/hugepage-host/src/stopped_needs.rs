//! What servers that do not run need, decided from what was read of them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use hugepage_assess::model::{HugePages, Requested};
use hugepage_facts::{
    ClusterFacts, ClusterFiles, ClusterFound, InstanceKey, Remembered, Snapshot, StartAnswer,
    UnreadList,
};
use hugepage_kernel::{Notes, PageSize, Pages};
use hugepage_oracle::stopped;
use hugepage_sizing::{StoppedDatabase, Wants};

use crate::postgresql_settings::{option_with_effect, requested_by_settings};

/// What is in each place where a cluster was looked for; `None` for what is known and no cluster.
type ByPlace = BTreeMap<PathBuf, Option<StoppedDatabase>>;

/// The servers that do not run, but the Oracle instances of oratab.
pub(super) fn stopped_clusters(snapshot: &Snapshot) -> Vec<StoppedDatabase> {
    let servers = &snapshot.host.stopped_servers;
    let default = snapshot.host.default_page_size();
    let mut clusters = ByPlace::new();
    for (place, found) in &servers.places {
        let found = found.as_ref().map(|found| cluster(found, default));
        add_place(&mut clusters, place.clone(), found);
    }
    let unknown = |one: &&Remembered| !is_known(&one.key, snapshot, &clusters);
    let seen = servers.remembered.iter().filter(unknown);
    let seen: Vec<_> = seen.map(remembered).collect();
    let running = snapshot.servers.iter();
    let running = running.filter_map(|server| Some(server.id.oracle()?.kind));
    let listed = snapshot.host.stopped.iter().map(|one| one.kind);
    let unlisted = stopped::unlisted(servers.has_grid_registry, running.chain(listed));
    let lists = servers.unread_lists.iter().map(unread_list);
    let found = clusters.into_values().flatten();
    found.chain(seen).chain(unlisted).chain(lists).collect()
}

/// Whether it is a PostgreSQL server whose data directory the host has under its name.
pub(super) fn is_cluster_of_host(key: &InstanceKey) -> bool {
    key.kind == "postgresql" && key.container.is_none()
}

/// Adds what a reader found in a place: who knows what is there comes before who does not.
fn add_place(all: &mut ByPlace, place: PathBuf, found: Option<StoppedDatabase>) {
    let is_unknown = |found: &Option<StoppedDatabase>| {
        found
            .as_ref()
            .is_some_and(|found| found.wants.pages().is_none())
    };
    let before = all.get(&place);
    if before.is_none_or(|before| is_unknown(before) && !is_unknown(&found)) {
        all.insert(place, found);
    }
}

/// Whether a server that was seen runs, or is found where stopped servers are.
fn is_known(key: &InstanceKey, snapshot: &Snapshot, clusters: &ByPlace) -> bool {
    let is_in_oratab = || {
        let mut listed = snapshot.host.stopped.iter();
        listed.any(|one| one.name == key.name && key.home.as_ref() == Some(&one.home))
    };
    snapshot
        .servers
        .iter()
        .any(|server| server.id.key() == *key)
        || is_cluster_of_host(key) && clusters.contains_key(Path::new(&key.name))
        || key.container.is_none() && is_in_oratab()
}

/// What it counts as while it does not run: what it was.
fn remembered(was: &Remembered) -> StoppedDatabase {
    let wants = match was.pages_needed {
        Some(Pages(0)) => Wants::None("it asked for none when it was last seen".into()),
        Some(pages) => Wants::Pages(pages),
        None => Wants::Unknown("its need was unknown when it was last seen".to_owned()),
    };
    let last_seen = humantime::format_rfc3339_seconds(was.last_seen);
    StoppedDatabase {
        key: was.key.clone(),
        page_size: was.page_size,
        wants,
        is_automatic: false,
        remark: Some(format!("last seen {last_seen}")),
    }
}

fn unread_list(list: &UnreadList) -> StoppedDatabase {
    let UnreadList { kind, name, why } = list;
    StoppedDatabase::named(kind, name.clone(), Wants::Unknown(why.clone()))
}

/// What it needs. `default`: the size of huge pages without `huge_page_size`.
pub(super) fn cluster(cluster: &ClusterFacts, default: Option<PageSize>) -> StoppedDatabase {
    let (page_size, wants) = match &cluster.found {
        ClusterFound::OfNobody => (None, Wants::None("its owner is no service account".into())),
        ClusterFound::Unread(why) => (None, Wants::Unknown(why.clone())),
        ClusterFound::Cluster(files) => wants(files, default),
    };
    let start = cluster.start.as_ref();
    let found = StoppedDatabase {
        page_size,
        is_automatic: start.is_some_and(|word| word == "auto"),
        remark: start.map(|word| format!("start.conf: {word}")),
        ..StoppedDatabase::named("postgresql", cluster.name.clone(), wants)
    };
    match &cluster.found {
        ClusterFound::Cluster(files) if found.wants.pages().is_none() => {
            as_its_worker_saw(files, found, default)
        }
        _ => found,
    }
}

/// Why it is not known what the next start asks for, whatever a program says.
pub(super) fn unclear(files: &ClusterFiles) -> Option<String> {
    let ClusterFiles {
        configured,
        pg_ctl_option,
        unread,
        ..
    } = files;
    let missing = configured.missing.as_ref();
    let missing = missing.map(|error| format!("its next start would fail: {error}"));
    let option = pg_ctl_option.as_ref();
    let option = option
        .map(|option| format!("its pg_ctl.conf has {option}, whose effect is not known here"));
    let of_last_start = option_with_effect(configured).map(|name| {
        format!("its last start had {name} on its command line, which the next need not have")
    });
    missing
        .or_else(|| configured.unclear.clone())
        .or(option)
        .or(of_last_start)
        .or_else(|| unread.clone())
}

/// A cluster whose need is unknown, as its worker recorded it last; or as it is.
fn as_its_worker_saw(
    files: &ClusterFiles,
    found: StoppedDatabase,
    default: Option<PageSize>,
) -> StoppedDatabase {
    let Some(was) = files.by_worker.as_ref().filter(|_| default.is_some()) else {
        return found;
    };
    let was = remembered(was);
    let remarks: Vec<_> = [found.remark, was.remark].into_iter().flatten().collect();
    StoppedDatabase {
        is_automatic: found.is_automatic,
        remark: Some(remarks.join(", ")),
        ..was
    }
}

/// Whether the next start asks for huge pages, so that a program can say how many.
pub(super) fn asks_for_pages(files: &ClusterFiles) -> bool {
    requested(files).may_have_huge_pages()
}

fn requested(files: &ClusterFiles) -> Requested {
    requested_by_settings(&files.configured.with(&[]), &mut Notes::default())
}

/// The size of the pages that it asks for, and what it needs of them.
fn wants(files: &ClusterFiles, default: Option<PageSize>) -> (Option<PageSize>, Wants) {
    let requested = requested(files);
    let size = requested.huge_page_size;
    let wants = match (size.or(default), &files.answer) {
        _ if let Some(why) = unclear(files) => Wants::Unknown(why),
        _ if requested.huge_pages == HugePages::Off => Wants::None("huge_pages = off".into()),
        _ if requested.never_in_huge_pages() => Wants::None("shared_memory_type = sysv".into()),
        (None, _) => Wants::Unknown("the size of huge pages is unknown".to_owned()),
        (Some(size), Some(StartAnswer::Starts(memory))) => {
            Wants::Pages(size.pages_to_hold(*memory))
        }
        (_, Some(StartAnswer::Refuses(why))) => {
            Wants::Unknown(format!("its next start would fail: {why}"))
        }
        (_, Some(StartAnswer::Unknown(why))) => Wants::Unknown(why.clone()),
        (_, None) => {
            Wants::Unknown("unknown: only on the host itself a program is asked".to_owned())
        }
    };
    (size, wants)
}
