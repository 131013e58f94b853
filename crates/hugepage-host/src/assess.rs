//! Assesses one server, once the host, the other servers and the past are known.

use hugepage_assess::assessment::Status;
use hugepage_assess::model::{Facts, Past, Pending};
use hugepage_kernel::notes::Notes;

use super::compare::OtherServers;
use super::inspect::InspectedServer;
use super::instance::Instance;
use super::past::requested_with_past;
use super::snapshot::HostFacts;

impl InspectedServer {
    /// The server with its one assessment.
    pub(super) fn assess(&self, host: &HostFacts, reserve_percent: u32, others: &OtherServers) -> Instance {
        let mut of_past = Notes::default();
        let facts = self.facts(host, reserve_percent, others, &self.past, &mut of_past);
        // The notes on the outlook are of what is seen now; only what decides on them is assessed without the past.
        let may_differ = facts.past.cause_at_start.is_some() || facts.requested_may_differ;
        let seen =
            may_differ.then(|| self.facts(host, reserve_percent, others, &Past::default(), &mut Notes::default()));
        let (status, seen) = (Status::assess(facts), seen.map(Status::assess));
        let mut notes = Notes::default();
        let on_outlook = seen.as_ref().unwrap_or(&status).notes_on_outlook();
        let on_past = self.notes_on_past.iter().cloned().chain(of_past.into_vec());
        self.notes.iter().cloned().chain(on_outlook).chain(on_past).for_each(|note| notes.add(note));
        Instance {
            id: self.id.clone(),
            memory: self.memory.clone(),
            evidence: self.evidence.clone(),
            notes: notes.into_vec(),
            status,
        }
    }

    fn facts(
        &self,
        host: &HostFacts,
        reserve_percent: u32,
        others: &OtherServers,
        past: &Past,
        notes: &mut Notes,
    ) -> Facts {
        let request = &self.request;
        let current = request.current_start();
        let pool_state = request.pool_state.clone().beside(others.held_by_user);
        let pending = request.pending.clone().beside(others.held_by_user);
        let changed = |demand| Pending::Changed(demand, pool_state.clone());
        let (requested, pending) = requested_with_past(&current, pending, changed, past, notes);
        let next_boot = pool_state.huge_page_size.map(|size| host.next_boot.pool(size));
        let strangers =
            pool_state.huge_page_size.and_then(|size| host.pages_of_strangers.get(&size)).cloned().unwrap_or_default();
        Facts {
            pending,
            others_lack: others.lack,
            others_beyond: others.beyond,
            others_may_ask_for_more: others.may_ask_for_more,
            past: past.clone(),
            crash_recovery: request.crash_recovery.clone(),
            requested_may_differ: request.requested_may_differ,
            other_pools: others.other_pools.clone(),
            largest_holder: host.holders.first().cloned(),
            strangers,
            next_boot,
            ..Facts::new(requested, request.segment.clone(), pool_state, host.meminfo.clone(), reserve_percent)
        }
    }
}
