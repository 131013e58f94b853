//! One server, assessed once the host, the other servers and the past are known.

use hugepage_assess::StatusRow;
use hugepage_assess::assessment::Status;
use hugepage_assess::model::{
    CurrentStart, Demand, Facts, HugePages, Pending, PoolState, Requested,
};
use hugepage_facts::{Cause, Landing, ObservedMemory, Past, ServerIdentity, ServerProduct};
use hugepage_kernel::{Notes, PageSize, Pages};
use hugepage_sizing::{PoolNeed, Sizing};

use crate::pool_needs::Comparison;
use crate::server::{Server, need};

/// One server.
#[derive(Clone, Debug)]
pub struct Instance {
    /// What tells it from others, and what its files tell of it.
    pub id: ServerIdentity,
    /// The memory of its processes.
    pub memory: ObservedMemory,
    /// The assessment.
    pub status: Status,
    /// What could not be read of it.
    pub notes: Vec<String>,
}

impl Instance {
    /// The kind of pages it is in.
    pub fn landed_in(&self) -> Landing {
        self.status.facts.landing()
    }

    /// Its row, with the recommendation for the host.
    pub fn row(&self, sizings: &[Sizing]) -> StatusRow {
        StatusRow {
            recommended_nr_hugepages: self.recommended(sizings),
            ..StatusRow::new(&self.status)
        }
    }

    /// The recommended pool, which counts all instances of the host.
    pub fn recommended(&self, sizings: &[Sizing]) -> Option<Pages> {
        Sizing::of_size(sizings, self.status.facts.pool_state.huge_page_size?)?.recommended
    }

    /// Whether its memory may not be looked at, which says nothing of its pages.
    pub fn is_closed(&self) -> bool {
        self.memory.shared.is_none() && self.landed_in() == Landing::Unknown
    }

    /// What its next start needs of pages of `size`, if it runs with others.
    pub(super) fn need_next(&self, size: PageSize) -> Option<PoolNeed> {
        let facts = &self.status.facts;
        let Pending::Changed(demand, pool_state) = &facts.pending else {
            return None;
        };
        let is_other = pool_state.huge_page_size == Some(size)
            && facts.pool_state.huge_page_size != Some(size);
        (is_other && demand.requested.may_have_huge_pages()).then(|| PoolNeed {
            is_running: true,
            pages: size.pages_to_hold(demand.shared_memory),
            ..PoolNeed::of(self.id.key())
        })
    }

    /// What it needs of the pool of its page size.
    pub fn need(&self) -> PoolNeed {
        need(self.id.key(), &self.status.facts)
    }
}

impl Server<'_> {
    /// The server with its one assessment beside the others.
    pub(super) fn assess(&self, compared: &Comparison<'_>) -> Instance {
        let mut of_past = Notes::default();
        let status = Status::assess(self.facts(compared, &mut of_past));
        let mut notes = self.notes.clone();
        notes.extend(status.notes_on_outlook());
        notes.extend(&self.facts.notes_on_past);
        notes.extend(of_past.into_vec());
        Instance {
            id: self.facts.id.clone(),
            memory: self.facts.memory.clone(),
            notes: notes.into_vec(),
            status,
        }
    }

    fn facts(&self, compared: &Comparison<'_>, notes: &mut Notes) -> Facts {
        let host = compared.host;
        let held_by_user = compared.held_by_user(self);
        let alone = self.alone.clone();
        let pool_state = alone.pool_state.beside(held_by_user);
        let (requested, pending) = requested_with_past(
            &self.alone.current_start(),
            alone.pending.beside(held_by_user),
            &pool_state,
            &self.facts.past,
            notes,
        );
        let (lack, beyond) = compared
            .lack_of_others(self, pool_state.huge_page_size)
            .unzip();
        let strangers = pool_state
            .huge_page_size
            .and_then(|size| compared.strangers.get(&size))
            .cloned()
            .unwrap_or_default();
        Facts {
            requested,
            pending,
            others_lack: lack,
            others_beyond: beyond.unwrap_or_default(),
            others_may_ask_for_more: compared.may_ask_for_more_than(self),
            past: self.facts.past.clone(),
            huge_pages_is_option: huge_pages_is_option(&self.facts.id),
            memlock_setting: memlock_setting(&self.facts.id),
            largest_holder: host.holders.first().cloned(),
            strangers,
            pool_state,
            ..alone
        }
    }
}

/// What the server asked for and the next start asks for, if the past shows that its files have turned huge pages on since the
/// start: the next start is one with them and the running size, with a note. `pending`: without the past.
fn requested_with_past(
    current: &CurrentStart<'_>,
    mut pending: Pending,
    pool_state: &PoolState,
    past: &Past,
    notes: &mut Notes,
) -> (Requested, Pending) {
    let requested = current.requested;
    if past.cause_at_start != Some(Cause::Disabled) || requested.huge_pages == HugePages::Off {
        return (requested, pending);
    }
    notes.add(
        "the server started with huge_pages = off, and its files may ask for huge pages now; hugepage_preflight() in the server \
         shows what a restart would get",
    );
    let Some(segment) = current.segment else {
        return (requested, pending);
    };
    // Files that have changed may ask for another size as well, or for nothing that the server accepts.
    if pending == Pending::Unchanged {
        // An assessment does not use the number of connections.
        let demand = Demand {
            requested,
            max_connections: 0,
            shared_memory: segment.to_reserve,
        };
        pending = Pending::Changed(demand, pool_state.clone());
    }
    (
        Requested {
            huge_pages: HugePages::Off,
            ..requested
        },
        pending,
    )
}

/// Whether its command line sets `huge_pages`.
fn huge_pages_is_option(id: &ServerIdentity) -> bool {
    matches!(&id.product, ServerProduct::PostgreSql(server)
        if server.settings.configured.options.iter().any(|(name, _)| name == "huge_pages"))
}

/// What sets its limit on locked memory, by its control group; `None` for what a session started.
fn memlock_setting(id: &ServerIdentity) -> Option<String> {
    Some(match (&id.runtime, &id.service) {
        (Some(name), _) if name.starts_with("kubepods") => {
            "of the container runtime of its node".to_owned()
        }
        (Some(_), _) => "--ulimit memlock of its container".to_owned(),
        (None, service) => format!(
            "LimitMEMLOCK= in a drop-in of {}, if it is not there yet",
            service.as_ref()?
        ),
    })
}
