//! The pages that the servers of a host need, running or stopped, and the output of `size` as it is in JSON.

use hugepage_assess::assessment::Start;
use hugepage_assess::assessment::page_tables::tables;
use hugepage_assess::columns;
use hugepage_assess::model::Pending;
use hugepage_facts::HostFacts;
use hugepage_host::host_advice::pool_step;
use hugepage_host::{Instance, Survey};
use hugepage_kernel::{Bytes, Notes, PageSize, Pages};
use hugepage_oracle::stopped::StoppedOracle;
use hugepage_sizing::{Misfit, PoolNeed, Sizing, StoppedDatabase, Wants};
use serde::Serialize;

const NO_POOL: &str = "this kernel has no pool of the pages that it asks for";

/// The recommended pools of a host, and what they were derived from.
pub struct HostSizing {
    pub survey: Survey,
    pub down: Vec<StoppedDatabase>,
    pub sizings: Vec<Sizing>,
    pub notes: Vec<String>,
}

impl HostSizing {
    /// Sizes the pools of a host. `counts_stopped`: whether servers count that do not run.
    pub fn new(mut survey: Survey, counts_stopped: bool) -> Self {
        let mut down = Vec::new();
        let mut notes = Vec::new();
        if counts_stopped {
            down.extend(survey.stopped.iter().map(StoppedOracle::database));
            down.extend(survey.stopped_clusters.iter().cloned());
            let HostFacts {
                stopped_servers,
                unread,
                ..
            } = &mut survey.host;
            notes.clone_from(&stopped_servers.notes);
            for one in &stopped_servers.unread {
                one.clone().add_to(unread);
            }
        }
        let needs: Vec<_> = down.iter().filter_map(StoppedDatabase::need).collect();
        let sizings = survey.sizings_beside(&needs);
        Self {
            survey,
            down,
            sizings,
            notes,
        }
    }

    /// Whom the numbers count, and how others are told: what nobody has seen or told is not known.
    pub fn counted(&self) -> String {
        let unknown = |one: &&StoppedDatabase| one.wants.pages().is_none();
        let unknown = self.down.iter().filter(unknown).count();
        let running = self.survey.instances.len();
        let stopped = self.down.len() - unknown;
        let unknown = match unknown {
            0 => String::new(),
            _ => format!(", {unknown} unknown"),
        };
        format!(
            "Counted: {running} running, {stopped} stopped{unknown}. For others: --postgresql-data DIR"
        )
    }
}

/// The output of the command.
#[derive(Debug, Serialize)]
pub struct SizeOutput {
    /// Whom the numbers count, and how others are told.
    pub counted: String,
    pub pools: Vec<PoolSizing>,
    /// Servers that need no huge pages, or whose need is unknown, and why.
    pub not_counted: Vec<UncountedServer>,
    /// The forecast for sessions; null without --sessions.
    pub sessions: Option<SessionsOutput>,
    pub notes: Vec<String>,
}

columns! {
    /// A pool and the servers that need it.
    PoolSizing(survey: &Survey, sizing: &Sizing) where {
        let size = sizing.page_size;
        let pool = survey.host.pool(size);
    } {
        page_size: PageSize = size,
        is_default: bool = survey.host.default_page_size() == Some(size),
        nr_hugepages: Pages = pool.map_or(Pages(0), |pool| pool.nr),
        recommended_nr_hugepages: Option<Pages> = sizing.recommended,
        needed_in_all: Pages = sizing.total,
        capacity: Option<Pages> = sizing.capacity.map(|capacity| capacity.most),
        capacity_within_reserve: Option<Pages> = sizing.capacity.map(|capacity| capacity.within_reserve),
        caution: Option<String> = caution(sizing),
        remains_for_base_pages: Option<Bytes> = sizing.remains,
        held_by_others: Pages = sizing.others,
        held_by_strangers: Pages = sizing.strangers.pages,
        needs: Vec<PoolNeed> = sizing.needs.clone(),
        does_not_fit: Vec<Misfit> = sizing.misfits.clone(),
        command: Option<String> = pool_step(survey, sizing).and_then(|step| step.command()),
    } shown {
        /// Those of them that are surplus.
        surplus: Pages = pool.and_then(|pool| pool.surplus).unwrap_or_default(),
        /// Whose those are.
        strangers: String = sizing.strangers.holder(),
        /// What frees them.
        removal: Option<String> = sizing.strangers.removal(),
        /// A clause on servers that do not run, which other outputs may not count.
        by_stopped: Option<String> = sizing.by_stopped(),
    }
}

#[derive(Debug, Serialize)]
pub struct UncountedServer {
    pub instance: String,
    pub kind: String,
    pub reason: String,
    pub is_known: bool,
}

impl SizeOutput {
    pub fn new(host: &HostSizing, sessions: Option<u64>) -> Self {
        let HostSizing {
            survey,
            down,
            sizings,
            ..
        } = host;
        let mut said = Notes::default();
        // An empty pool hides them: a start gets 4 kB pages.
        for one in &survey.instances {
            for excess in one
                .status
                .facts
                .start_next()
                .iter()
                .flat_map(Start::excesses)
            {
                said.add(format!(
                    "before the pool has these pages, raise {} of {}, which allows {}: a start that gets more may be killed",
                    excess.path,
                    one.id.key(),
                    excess.limit
                ));
            }
        }
        let of_instances = survey.instances.iter().flat_map(|instance| &instance.notes);
        let of_stopped = survey.stopped.iter().flat_map(|stopped| &stopped.notes);
        let notes = host.notes.iter().chain(&survey.notes);
        let not_counted = not_counted(survey, down);
        // Why a need is unknown is said where it is not counted.
        let is_reason = |note: &str| not_counted.iter().any(|one| one.reason.contains(note));
        notes
            .chain(of_instances)
            .chain(of_stopped)
            .filter(|note| !is_reason(note))
            .for_each(|note| said.add(note));
        Self {
            counted: host.counted(),
            pools: sizings
                .iter()
                .map(|sizing| PoolSizing::new(survey, sizing))
                .collect(),
            not_counted,
            sessions: sessions.and_then(|sessions| SessionsOutput::new(host, sessions)),
            notes: said.into_vec(),
        }
    }
}

fn caution(sizing: &Sizing) -> Option<String> {
    let (left, percent) = sizing
        .capacity?
        .leaves_less(sizing.recommended?, sizing.page_size)?;
    Some(format!(
        "it leaves {left} to base pages, less than {percent}% of memory"
    ))
}

fn not_counted(survey: &Survey, down: &[StoppedDatabase]) -> Vec<UncountedServer> {
    let running = survey.instances.iter().filter_map(|instance| {
        let facts = &instance.status.facts;
        let (reason, is_known) = match &facts.pending {
            _ if facts.segment.is_none() => (
                "its shared memory could not be inspected: run this on the host as root".into(),
                false,
            ),
            Pending::Refused(error) => (
                format!("what its next start needs: its next start would fail: {error}"),
                false,
            ),
            Pending::Unknown => (
                format!(
                    "what its next start needs, which is unknown: {}",
                    instance.notes.join("; ")
                ),
                false,
            ),
            _ if instance.need().pages > Pages(0) => return None,
            _ if facts.requested.never_in_huge_pages() => (
                "its kind of shared memory cannot be in huge pages".into(),
                true,
            ),
            _ if facts.may_request_next() && facts.pool_state.pool.known().is_none() => {
                (NO_POOL.into(), false)
            }
            _ => (
                "huge pages are turned off in its configuration".into(),
                true,
            ),
        };
        Some(UncountedServer {
            instance: instance.id.key().to_string(),
            kind: instance.id.kind(),
            reason,
            is_known,
        })
    });
    let down = down.iter().filter_map(|down| {
        let size = down.page_size.or(survey.host.default_page_size());
        let (why, is_known) = match &down.wants {
            // A pool that is not seen has no recommendation.
            Wants::Pages(..) if size.is_none_or(|size| survey.host.pool(size).is_none()) => {
                (NO_POOL.to_owned(), false)
            }
            Wants::Pages(..) => return None,
            Wants::None(why) => (why.to_string(), true),
            Wants::Unknown(why) => (why.clone(), false),
        };
        Some(UncountedServer {
            instance: down.key.to_string(),
            kind: down.key.kind.clone(),
            reason: match &down.remark {
                Some(remark) => format!("{why} ({remark})"),
                None => why,
            },
            is_known,
        })
    });
    let strangers = survey
        .host
        .strangers
        .first
        .iter()
        .map(|one| UncountedServer {
            instance: format!("{} (process {})", one.name, one.pid),
            kind: "stranger".to_owned(),
            reason: one.reason.clone(),
            is_known: true,
        });
    running.chain(down).chain(strangers).collect()
}

/// The part of the output that `--sessions` adds.
#[derive(Debug, Serialize)]
pub struct SessionsOutput {
    pub sessions: u64,
    pub instances: Vec<SessionRow>,
}

/// The sessions of one server; sizes are in bytes.
#[derive(Debug, Serialize)]
pub struct SessionRow {
    pub instance: String,
    pub shared_memory: Bytes,
    /// Page tables that each session needs for other memory, by the smallest process; null if unknown, and then not counted.
    pub own_per_session: Option<Bytes>,
    pub page_tables_base: Bytes,
    /// In huge pages of the default size; null if the kernel has none.
    pub page_tables_huge: Option<Bytes>,
}

impl SessionsOutput {
    fn new(host: &HostSizing, sessions: u64) -> Option<Self> {
        let survey = &host.survey;
        let base = survey.host.base_page_size?;
        let huge = survey.host.default_page_size();
        let row = |instance: &String, shared_memory, own_per_session: Option<Bytes>| {
            let own = Bytes(
                own_per_session
                    .unwrap_or_default()
                    .0
                    .saturating_mul(sessions),
            );
            let at = |size| own.saturating_add(tables(sessions, shared_memory, size));
            SessionRow {
                instance: instance.clone(),
                shared_memory,
                own_per_session,
                page_tables_base: at(base),
                page_tables_huge: huge.map(at),
            }
        };
        let of = |one: &Instance| {
            Some(row(
                &one.id.key().to_string(),
                one.status.facts.segment_size()?,
                one.memory.page_tables.min,
            ))
        };
        let running = survey.instances.iter().filter_map(of);
        let down = host.down.iter().filter_map(|down| match down.wants {
            Wants::Pages(pages) => Some(row(
                &down.key.to_string(),
                down.page_size.or(huge)?.times(pages),
                None,
            )),
            _ => None,
        });
        Some(Self {
            sessions,
            instances: running.chain(down).collect(),
        })
    }
}
