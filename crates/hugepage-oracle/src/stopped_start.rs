//! What the next start of an instance that does not run asks for, and what it gets beside the others.

use hugepage_assess::assessment::advisory::Advisories;
use hugepage_assess::assessment::{Forecast, Outlook};
use hugepage_assess::model::{LockLimit, PoolState};
use hugepage_facts::{Landing, StoppedFacts};
use hugepage_kernel::{Bytes, CgroupLimits, Notes, Pages, Rlimit};
use hugepage_sizing::Wants;

use crate::readers::startup::{failed, lacked_memory, landed, refusal};
use crate::settings::NextRequest;
use crate::start_limits::{self, HostOfStarts, LackedMemlock};
use crate::stopped::{NO_CALL, StoppedOracle, StoppedState};

/// All of them beside each other.
pub fn stopped_oracle(facts: &[StoppedFacts], host: &HostOfStarts<'_>) -> Vec<StoppedOracle> {
    let alone = facts.iter().map(|one| StoppedOracle::alone(one, host));
    let found: Vec<_> = alone.collect();
    let all: Pages = found.iter().filter_map(StoppedOracle::takes).sum();
    let beside = |one: &StoppedOracle| one.clone().beside_others(&found, all, host);
    found.iter().map(beside).collect()
}

impl HostOfStarts<'_> {
    /// What refuses the owner segments of at least `size` bytes: memlock, by the last start in the log, and the group that the kernel
    /// lets have huge pages (`can_do_hugetlb_shm` in fs/hugetlbfs/inode.c); `None` if nothing does. What is unknown is a note.
    /// `locks_sga`: whether it locks all of its SGA, in whichever pages.
    pub(crate) fn refusals(
        &self,
        facts: &StoppedFacts,
        is_asking: bool,
        locks_sga: bool,
        size: Bytes,
        notes: &mut Notes,
    ) -> (Option<LackedMemlock>, Option<LockLimit>) {
        let of_pages = self.permission(facts, size).filter(|_| is_asking);
        let start = facts.settings.start.as_ref();
        let limit = start.and_then(|start| start.memlock);
        let os_error = start.and_then(|start| start.os_error);
        let is_refused = limit.is_none() && os_error == Some(libc::EPERM.unsigned_abs());
        let needed = match of_pages {
            Some(LockLimit::Memlock { others, .. }) => Some(size.saturating_add(others)),
            Some(LockLimit::Either { .. }) => Some(size),
            Some(LockLimit::Unexplained) if is_refused => Some(size),
            _ => locks_sga.then_some(size),
        };
        let is_lacked = |needed: &Bytes| {
            limit.is_none_or(|limit| limit.bytes().is_some_and(|limit| limit < *needed))
        };
        if let Some(needed) = needed.filter(is_lacked) {
            let limit = limit.and_then(Rlimit::bytes);
            return (
                Some(LackedMemlock { limit, needed }),
                Some(LockLimit::Unexplained),
            );
        }
        if of_pages == Some(LockLimit::Unexplained) {
            notes.add(match start.and_then(|start| refusal(start, size)) {
                Some(_) => "its last start found enough huge pages and did not take them",
                None => "whether its owner may have huge pages is unknown: no start in an alert log had them",
            });
        }
        (None, of_pages)
    }

    fn permission(&self, facts: &StoppedFacts, size: Bytes) -> Option<LockLimit> {
        let (owner, is_member) = (facts.account.as_ref(), facts.is_in_shm_group);
        let others = owner.map_or(Bytes(0), |owner| (self.held)(owner.uid));
        let release = self.kernel.release.as_deref()?;
        let start = facts.settings.start.as_ref();
        let logged = start.and_then(|start| start.memlock);
        let refused = start.and_then(|start| refusal(start, size));
        // EPERM with a sufficient memlock limit: the kernel has the change of 5.18.
        let has_changed = refused == Some(LockLimit::Unexplained) && start?.os_error == Some(1);
        let counts_memlock = Advisories::known()
            .affects("shm_memlock", release)
            .or(has_changed.then_some(false));
        // The kernel let the owner have huge pages.
        let was_let = others > Bytes(0) || start.and_then(landed) == Some(Landing::Hugetlb);
        match (counts_memlock, logged) {
            _ if is_member == Some(true) => None,
            (Some(false), _) if is_member == Some(false) && !was_let => {
                Some(LockLimit::ShmGroup { gid: owner?.gid })
            }
            (Some(true), Some(Rlimit::Unlimited)) => refused,
            (counts, Some(Rlimit::At(limit))) if counts.unwrap_or(was_let) => {
                Some(LockLimit::Memlock { limit, others })
            }
            (None, Some(limit)) if !was_let => Some(LockLimit::Either {
                gid: owner?.gid,
                limit: limit.bytes(),
            }),
            _ if was_let => refused,
            _ => refused.or(Some(LockLimit::Unexplained)),
        }
    }
}

impl StoppedOracle {
    /// The instance, as if no other started before it.
    fn alone(facts: &StoppedFacts, host: &HostOfStarts<'_>) -> Self {
        let mut notes = Notes::default();
        notes.extend(&facts.notes);
        let settings = &facts.settings;
        let request = NextRequest::new(settings);
        let (page_size, pool) = host.pool();
        let start = settings.start.as_ref();
        // The first Windows Subsystem for Linux.
        let has_no_memory = start.is_some_and(|start| start.has_error(NO_CALL))
            && host.kernel.system_v.shmall.is_none();
        let wants = if has_no_memory {
            Wants::Unknown("this kernel shows no System V shared memory".into())
        } else {
            request.wants(page_size, facts.kind, &facts.home)
        };
        let (is_asking, locks_sga) = (!matches!(wants, Wants::None(_)), request.locks_sga());
        let size = request.least_segments(&wants, page_size);
        let of_host = size.and_then(|size| start_limits::of_host(host.kernel, size, Bytes(0)));
        let (memlock, of_owner) = size
            .map(|size| host.refusals(facts, is_asking, locks_sga, size, &mut notes))
            .unwrap_or_default();
        let pool_state = PoolState {
            huge_page_size: page_size,
            pool,
            limits: Some(CgroupLimits::default()),
            nodes: None,
            lock_limit: of_host.or(of_owner),
            base_limits: Vec::new(),
        };
        let has_failed = start.is_some_and(failed);
        let mut forecast = request.forecast(&wants, &pool_state);
        // Of a start that failed for a reason that the log does not tell nothing is foretold.
        if has_failed
            && !start.is_some_and(lacked_memory)
            && let Some(forecast) = &mut forecast
            && forecast.outlook == Outlook::Hugetlb
        {
            forecast.outlook = Outlook::Unknown;
            notes.add("why its last start failed is in its alert log, and may stop the next one");
        }
        if let Wants::Unknown(why) = &wants {
            notes.add(why.clone());
        }
        Self {
            kind: facts.kind,
            name: facts.name.clone(),
            home: facts.home.clone(),
            owner: facts.owner,
            starts_at_boot: facts.starts_at_boot,
            state: if has_failed {
                StoppedState::Failed
            } else {
                StoppedState::Stopped
            },
            wants,
            use_large_pages: request.use_large_pages,
            memory_target: request.memory_target,
            dev_shm: host.dev_shm,
            forecast,
            pool_state,
            memlock,
            limits: of_host
                .into_iter()
                .chain(of_owner)
                .filter(|limit| size.is_some_and(|size| limit.refuses(size)))
                .collect(),
            last_start: settings.start.clone(),
            notes: notes.into_vec(),
        }
    }

    /// The huge pages that it takes if it starts first.
    fn takes(&self) -> Option<Pages> {
        let pages = self.wants.pages();
        pages.filter(|_| self.outlook() == Outlook::Hugetlb)
    }

    /// The instance where another of `found` may start first, which take `all`: what is not enough for all is then unknown, be it pages,
    /// the memlock of a user, or System V memory.
    fn beside_others(self, found: &[Self], all: Pages, host: &HostOfStarts<'_>) -> Self {
        if !self.may_lack(found, all, host) {
            return self;
        }
        let unknown = |forecast| Forecast {
            outlook: Outlook::Unknown,
            ..forecast
        };
        Self {
            forecast: self.forecast.map(unknown),
            ..self
        }
    }

    fn may_lack(&self, found: &[Self], all: Pages, host: &HostOfStarts<'_>) -> bool {
        let guaranteed = self.forecast.as_ref().and_then(|one| one.guaranteed);
        let (Some(takes), Some(size)) = (self.takes(), self.pool_state.huge_page_size) else {
            return false;
        };
        let is_other = |other: &&Self| (&other.name, &other.home) != (&self.name, &self.home);
        let mut others = found.iter().filter(is_other);
        if others.any(|other| other.wants.pages().is_none()) {
            return true;
        }
        let of_owner = found.iter().filter(|other| other.owner == self.owner);
        let of_owner = size.times(of_owner.filter_map(Self::takes).sum());
        let is_refused = |limit: LockLimit| limit.refuses(of_owner);
        takes < all
            && (guaranteed.is_some_and(|guaranteed| guaranteed < all)
                || self.pool_state.lock_limit.is_some_and(is_refused)
                || start_limits::of_host(host.kernel, size.times(all), Bytes(0)).is_some())
    }
}
