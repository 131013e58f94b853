//! What was recorded when an instance started: by the extension, by `watch`, or in the alert logs of Oracle.

use hugepage_assess::history::Record;
use hugepage_assess::model::{Cause, CurrentStart, Loss, Past};
use hugepage_host::ServerIdentity;
use hugepage_kernel::{Notes, Pages};

use super::HostHistory;

impl HostHistory {
    /// What was recorded at the current start of an instance. The record of the server itself comes first: the extension shows
    /// the same. A history of the server's own that cannot be read is a note; another is skipped.
    pub fn recall(&self, instance: &ServerIdentity, current: &CurrentStart<'_>, notes: &mut Notes) -> Past {
        // The newest record is that of the current shared memory, or there is none.
        let by_server = self.of_server(instance, self.last_record(instance, |record| record.event.is_start()));
        let by_server = by_server.and_then(|(_, found)| notes.keep(found)).flatten();
        let by_server = by_server.filter(|record| self.is_of_same_start(record, instance));
        let is_by_server = by_server.is_some();
        let past = by_server.or_else(|| self.start_by_watch(instance)).map_or_else(Past::default, |record| Past {
            cause_at_start: record.cause,
            // The files that `watch` read may have changed since the start.
            needed_at_start: record.pages_needed.filter(|_| is_by_server).map(Pages),
            loss: record.loss(),
        });
        // Base pages by choice are no loss.
        if past.loss.is_some() || past.cause_at_start == Some(Cause::Disabled) {
            return past;
        }
        // The start before it may be older than any record.
        Past { loss: self.loss_in_logs(instance, current, notes), ..past }
    }

    /// The record that `watch` made of the current start; `None` if there is none.
    fn start_by_watch(&self, instance: &ServerIdentity) -> Option<Record> {
        let is_its_start = |record: &Record| record.event.is_start() && self.is_of_same_start(record, instance);
        let mut unwritten = self.known.get(&self.path(instance)).into_iter().flat_map(|known| &known.unwritten);
        let unwritten = unwritten.rfind(|record| is_its_start(record)).cloned();
        unwritten.or_else(|| self.of_watch(instance, self.last_record(instance, is_its_start)).1.ok().flatten())
    }

    /// What the alert logs of an Oracle instance show that its start lost.
    fn loss_in_logs(&self, instance: &ServerIdentity, current: &CurrentStart<'_>, notes: &mut Notes) -> Option<Loss> {
        let oracle = instance.oracle()?;
        let mut logs = self.logs.borrow_mut();
        let lost = oracle.lost(current, || {
            let found = notes.keep(logs.of_running(&self.root, instance, oracle))?;
            found.notes.iter().for_each(|note| notes.add(note));
            Some(&found.starts)
        })?;
        Some(Loss { at: instance.started?, lost })
    }
}
