//! Logs, of which a survey reads so much and no more, however many instances have one.

use std::fs::File;
use std::io;
use std::sync::atomic::Ordering;

use crate::stranger::limit;
use crate::{Bytes, InstanceFiles, ReadError};

impl InstanceFiles {
    /// What `search` finds in the log `path`. It may read `left` bytes, of which it subtracts those that it has read, and all searches
    /// of one survey together [`limit::ALERT_LOGS`].
    pub fn search_log<T>(
        &self,
        path: &str,
        left: &mut u64,
        search: impl FnOnce(&mut File, &mut u64) -> io::Result<T>,
    ) -> Result<T, ReadError> {
        let mut file = self.open(path)?;
        let of_survey = self.root().logs_left();
        let most = of_survey.map_or(u64::MAX, |left| left.load(Ordering::Relaxed)).min(*left);
        let mut rest = most;
        let found = search(&mut file, &mut rest).map_err(|source| self.error("read", path, source));
        let is_exhausted = rest == 0 && most < *left;
        *left = left.saturating_sub(most - rest);
        of_survey.inspect(|left| _ = left.fetch_sub(most - rest, Ordering::Relaxed));
        if is_exhausted {
            let all = Bytes(limit::ALERT_LOGS);
            return Err(self.content(path, format!("{all} of alert logs have been searched for all instances")));
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::Root;

    #[test]
    fn all_logs_of_a_survey_together() {
        let tree = tempfile::tempdir().unwrap();
        fs::write(tree.path().join("log"), "").unwrap();
        let root = Root::at(tree.path());
        let search = |root: &Root, bytes: u64| {
            let search = |_: &mut File, left: &mut u64| {
                *left -= bytes.min(*left);
                Ok(())
            };
            InstanceFiles::own(root).search_log("/log", &mut { limit::ALERT_LOG }, search)
        };
        let survey = root.for_survey();
        let read = (0..20).filter(|_| search(&survey, limit::ALERT_LOG).is_ok()).count() as u64;
        assert_eq!(read, limit::ALERT_LOGS / limit::ALERT_LOG);
        let why = search(&survey, 1).unwrap_err().to_string();
        assert!(why.contains("512 MB of alert logs have been searched for all instances"), "{why}");
        assert!(search(&root.for_survey(), 1).is_ok() && search(&root, limit::ALERT_LOG).is_ok());
    }
}
