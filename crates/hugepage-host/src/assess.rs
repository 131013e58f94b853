//! Assesses one server, once the host, the other servers and the past are known.

use hugepage_assess::assessment::Status;
use hugepage_assess::model::Facts;
use hugepage_kernel::notes::Notes;

use super::compare::Comparison;
use super::inspect::InspectedServer;
use super::instance::Instance;
use super::past::requested_with_past;

impl InspectedServer {
    /// The server with its one assessment beside the others.
    pub(super) fn assess(&self, compared: &Comparison<'_>) -> Instance {
        let mut of_past = Notes::default();
        let status = Status::assess(self.facts(compared, &mut of_past));
        let mut notes = Notes::default();
        let on_past = self.notes_on_past.iter().cloned().chain(of_past.into_vec());
        self.notes.iter().cloned().chain(status.notes_on_outlook()).chain(on_past).for_each(|note| notes.add(note));
        Instance { id: self.id.clone(), memory: self.memory.clone(), notes: notes.into_vec(), status }
    }

    fn facts(&self, compared: &Comparison<'_>, notes: &mut Notes) -> Facts {
        let (host, request) = (compared.host, &self.request);
        let held_by_user = compared.held_by_user(self);
        let pool_state = request.pool_state.clone().beside(held_by_user);
        let pending = request.pending.clone().beside(held_by_user);
        let (requested, pending) =
            requested_with_past(&request.current_start(), pending, &pool_state, &self.past, notes);
        let (lack, beyond) = compared.lack_of_others(self, pool_state.huge_page_size).unzip();
        let next_boot = pool_state.huge_page_size.map(|size| host.next_boot.pool(size));
        let strangers =
            pool_state.huge_page_size.and_then(|size| host.pages_of_strangers.get(&size)).cloned().unwrap_or_default();
        Facts {
            pending,
            others_lack: lack,
            others_beyond: beyond.unwrap_or_default(),
            others_may_ask_for_more: compared.may_ask_for_more_than(self),
            past: self.past.clone(),
            crash_recovery: request.crash_recovery.clone(),
            requested_may_differ: request.requested_may_differ,
            other_pools: self.other_pools(compared),
            largest_holder: host.holders.first().cloned(),
            strangers,
            next_boot,
            ..Facts::new(requested, request.segment.clone(), pool_state, host.meminfo.clone(), compared.reserve_percent)
        }
    }
}
