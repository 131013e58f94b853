//! Which servers a boot is expected to start, and what they need.

use std::path::{Path, PathBuf};
use std::time::Duration;

use hugepage_facts::{Remembered, escape};
use hugepage_host::{POSTGRESQL_DATA, told_servers};
use hugepage_kernel::{PageSize, Root};
use hugepage_sizing::{PoolNeed, StoppedDatabase, Wants};

use crate::history::remembered::remembered;
use crate::state::DIRECTORY;

/// A server that was last seen longer before the others of its boot was stopped for good: as the old one after pg_upgrade.
const BEFORE_THE_END: Duration = Duration::from_secs(60 * 60);

/// Whom `reserve` counts.
#[derive(Debug, Default)]
pub struct ServersToReserve {
    told: Vec<PathBuf>,
    /// Those that ran in the last boot, until its end.
    ran_last: Vec<Remembered>,
}

/// What they need.
#[derive(Debug, Default)]
pub struct AwaitedNeeds {
    /// The page size, or `None` for the default, and the need.
    pub counted: Vec<(Option<PageSize>, PoolNeed)>,
    /// Who is not counted, and why.
    pub uncounted: Vec<String>,
    /// Whether the need of one is unknown that should be counted.
    pub is_unknown: bool,
}

/// Those that root told, those that ran in the last boot, and if nobody is remembered Debian's with `auto` in their start.conf.
pub fn servers_to_reserve(root: &Root) -> ServersToReserve {
    // What can't be read of either is among what is found stopped.
    let told = told_servers(root).unwrap_or_default();
    ServersToReserve::new(told, remembered(root, Path::new(DIRECTORY)).0)
}

impl ServersToReserve {
    fn new(told: Vec<PathBuf>, mut remembered: Vec<Remembered>) -> Self {
        remembered.retain(|one| !one.is_gone);
        // That of the server that was seen last: a boot in which none ran, as for a rescue, takes nobody's place.
        if let Some(newest) = remembered.iter().max_by_key(|one| one.last_seen).cloned() {
            let ran_last = |one: &Remembered| {
                one.boot_id.is_some()
                    && one.boot_id == newest.boot_id
                    && one.last_seen + BEFORE_THE_END >= newest.last_seen
            };
            remembered.retain(ran_last);
        }
        Self {
            told,
            ran_last: remembered,
        }
    }

    /// The data directories of those that ran, whose files may say something else by now.
    pub fn directories(&self) -> Vec<PathBuf> {
        let of_host = self.ran_last.iter();
        let of_host = of_host.filter(|one| one.key.container.is_none());
        let names = of_host.map(|one| PathBuf::from(&one.key.name));
        names.filter(|path| path.is_absolute()).collect()
    }

    /// What they need by their files, or else needed when they ran. Who runs counts by itself.
    pub fn needs(&self, down: Vec<StoppedDatabase>) -> AwaitedNeeds {
        let mut needs = AwaitedNeeds::default();
        for one in down {
            self.add(&mut needs, one);
        }
        needs
    }

    fn add(&self, needs: &mut AwaitedNeeds, mut found: StoppedDatabase) {
        let past = self.ran_last.iter().find(|one| is_of(one, &found));
        if let (Wants::Unknown(_), Some(past)) = (&found.wants, past)
            && let Some(pages) = past.pages_needed
        {
            found.page_size = past.page_size;
            found.wants = Wants::Pages(pages);
        }
        let name = &found.key.name;
        let is_it = |told: &PathBuf| {
            Path::new(&escape::name(told.display().to_string())) == Path::new(name)
        };
        let is_told = self.told.iter().any(is_it);
        let is_unread = name == POSTGRESQL_DATA || found.key.kind == "history";
        let is_first = found.is_automatic && self.ran_last.is_empty();
        let why = match &found.wants {
            _ if past.is_none() && !is_told && !is_unread && !is_first => {
                "it did not run at the end of the last boot"
            }
            Wants::Pages(..) => return needs.counted.extend(found.need()),
            Wants::None(why) => why,
            Wants::Unknown(why) => {
                needs.is_unknown = true;
                why
            }
        };
        let remark = found.remark.as_ref();
        let remark = remark.map_or_else(String::new, |remark| format!(" ({remark})"));
        needs.uncounted.push(format!("{name}{remark}: {why}"));
    }
}

/// Whether `found` is the server that was seen.
fn is_of(seen: &Remembered, found: &StoppedDatabase) -> bool {
    let seen = &seen.key;
    let found = &found.key;
    let is_same = (&seen.kind, &seen.container) == (&found.kind, &found.container);
    is_same && Path::new(&seen.name) == Path::new(&found.name)
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use hugepage_facts::InstanceKey;
    use hugepage_kernel::Pages;

    use super::*;

    fn seen(kind: &str, name: &str, boot: Option<&str>, seconds: u64) -> Remembered {
        Remembered {
            key: InstanceKey {
                kind: kind.to_owned(),
                name: name.to_owned(),
                ..InstanceKey::default()
            },
            page_size: None,
            pages_needed: Some(Pages(seconds)),
            last_seen: SystemTime::UNIX_EPOCH + Duration::from_secs(seconds),
            boot_id: boot.map(str::to_owned),
            is_gone: false,
        }
    }

    fn stopped(name: &str, is_automatic: bool, wants: Wants) -> StoppedDatabase {
        StoppedDatabase {
            key: seen("postgresql", name, None, 0).key,
            page_size: None,
            wants,
            is_automatic,
            remark: None,
        }
    }

    /// The pages that count for one that is found, and whether they are unknown.
    fn added(servers: &ServersToReserve, found: StoppedDatabase) -> (Option<u64>, bool) {
        let mut needs = AwaitedNeeds::default();
        servers.add(&mut needs, found);
        let counted = needs.counted.first().map(|(_, need)| need.pages.0);
        assert_eq!(counted.is_none(), needs.uncounted.len() == 1);
        (counted, needs.is_unknown)
    }

    /// 15 and 17 after pg_upgrade are not both counted, unless root wants it so.
    #[test]
    fn who_ran_in_the_last_boot() {
        let gone = Remembered {
            is_gone: true,
            ..seen("postgresql", "/gone", Some("c"), 9_000)
        };
        let remembered = vec![
            seen("postgresql", "/data/14", Some("a"), 10),
            seen("postgresql", "/data/15", Some("b"), 20),
            seen("postgresql", "/data/17", Some("b"), 4_000),
            seen("oracle", "ORCL", Some("b"), 400),
            seen("postgresql", "/old", None, 1),
            gone,
        ];
        let servers = ServersToReserve::new(vec!["/told".into()], remembered.clone());
        let names = servers.ran_last.iter().map(|one| &*one.key.name);
        assert_eq!(names.collect::<Vec<_>>(), ["/data/17", "ORCL"]);
        assert_eq!(servers.directories(), [PathBuf::from("/data/17")]);
        let wants = || Wants::Pages(Pages(7));
        for (name, counted) in [
            ("/data/14", None),
            ("/data/15", None),
            ("/data/17", Some(7)),
            ("/told/", Some(7)),
        ] {
            assert_eq!(
                added(&servers, stopped(name, true, wants())).0,
                counted,
                "{name}"
            );
        }
        let with_both = ServersToReserve::new(vec!["/data/15".into()], remembered);
        assert_eq!(
            added(&with_both, stopped("/data/15", false, wants())).0,
            Some(7)
        );
    }

    #[test]
    fn debians_clusters_if_nobody_is_remembered() {
        let servers = ServersToReserve::new(Vec::new(), Vec::new());
        let wants = || Wants::Pages(Pages(7));
        assert_eq!(added(&servers, stopped("/main", true, wants())).0, Some(7));
        assert_eq!(added(&servers, stopped("/by-hand", false, wants())).0, None);
    }

    /// Its files decide; what it needed when it ran counts only where they can't tell.
    #[test]
    fn what_a_server_needs() {
        let remembered = vec![seen("postgresql", "/data", Some("a"), 72)];
        let servers = ServersToReserve::new(vec!["/told".into()], remembered);
        let late = || Wants::Unknown("late".to_owned());
        for (name, wants, expected) in [
            ("/data/", Wants::Pages(Pages(90)), (Some(90), false)),
            ("/data", Wants::None("off".into()), (None, false)),
            ("/data", late(), (Some(72), false)),
            ("/told", late(), (None, true)),
            (POSTGRESQL_DATA, late(), (None, true)),
            ("/other", late(), (None, false)),
        ] {
            assert_eq!(
                added(&servers, stopped(name, false, wants)),
                expected,
                "{name}"
            );
        }
    }
}
