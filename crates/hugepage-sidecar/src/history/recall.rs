//! What was recorded when an instance started: by the extension, by `watch`, or in the alert logs of Oracle.

use std::path::{Path, PathBuf};

use hugepage_assess::history::Record;
use hugepage_assess::model::{Cause, CurrentStart, Loss, Past};
use hugepage_host::{ServerIdentity, readers};
use hugepage_kernel::{InstanceFiles, Notes, Pages};

use super::HostHistory;
use super::start_record::StartRecord;
use crate::{state, stored_history};

impl HostHistory {
    /// What was recorded at the current start of an instance. The record of the server itself comes first: the extension shows
    /// the same. A history of the server's own that cannot be read is a note; another is skipped.
    pub fn recall(&self, instance: &ServerIdentity, current: &CurrentStart<'_>, notes: &mut Notes) -> Past {
        let path = self.path(instance);
        let start = self.start(instance, &path, notes);
        let past = start.map_or_else(Past::default, |StartRecord { record, is_by_server }| Past {
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
        Past { loss: self.loss_in_logs(instance, current, path, notes), ..past }
    }

    /// The record of the current start, that of the server itself if there is one. `path`: the history file of the instance.
    fn start(&self, instance: &ServerIdentity, path: &Path, notes: &mut Notes) -> Option<StartRecord> {
        // Only the segment tells a crash from its process.
        let is_known = |StartRecord { record, .. }: &&StartRecord| {
            instance.allocation.is_some() && record.segment == instance.allocation && record.boot_id == self.boot_id
        };
        let known = self.starts.borrow().get(path).filter(is_known).cloned();
        if known.as_ref().is_some_and(|start| start.is_by_server) {
            return known;
        }
        let by_server = stored_history::last_start_of_server(&self.root, instance).unwrap_or_else(|note| {
            notes.add(note);
            None
        });
        // The newest record is that of the current shared memory, or there is none.
        let by_server = by_server.filter(|record| self.is_of_same_start(record, instance));
        let by_server = by_server.map(|record| StartRecord { record, is_by_server: true });
        let by_watch = || Some(StartRecord { record: self.start_by_watch(instance, path)?, is_by_server: false });
        let start = by_server.or(known).or_else(by_watch)?;
        self.starts.borrow_mut().insert(path.to_owned(), start.clone());
        Some(start)
    }

    /// What the alert logs of an Oracle instance show that its start lost.
    fn loss_in_logs(
        &self,
        instance: &ServerIdentity,
        current: &CurrentStart<'_>,
        path: PathBuf,
        notes: &mut Notes,
    ) -> Option<Loss> {
        let oracle = instance.oracle()?;
        let mut known = self.losses_in_logs.borrow_mut();
        let of_instance = known.entry(path).or_insert((0, None));
        if of_instance.0 != instance.pid {
            let read = || {
                let mut notes = Notes::default();
                let lost = oracle.lost(&InstanceFiles::of_process(&self.root, instance.pid), current, &mut notes);
                (lost, notes.into_vec())
            };
            let (lost, noted) = match readers::read_as(&instance.reader, read) {
                Ok(answer) => answer,
                Err(why) => {
                    // It is asked again.
                    notes.add(why.to_string());
                    return None;
                }
            };
            noted.into_iter().for_each(|note| notes.add(note));
            *of_instance = (instance.pid, lost.and_then(|lost| Some(Loss { at: instance.started?, lost })));
        }
        of_instance.1.clone()
    }

    /// The record that `watch` made of the current start; `None` if there is none.
    fn start_by_watch(&self, instance: &ServerIdentity, path: &Path) -> Option<Record> {
        let identity = state::instance_identity(instance, self.machine.clone());
        let is_its_start = |record: &Record| {
            record.event.is_start() && record.instance.is_past_of(&identity) && self.is_of_same_start(record, instance)
        };
        self.last_matching(instance, path, is_its_start).ok().flatten()
    }
}
