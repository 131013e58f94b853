//! The pages that the servers of a host need, running or stopped.

use std::path::PathBuf;

use hugepage_assess::assessment::Sizing;
use hugepage_assess::stopped_databases::StoppedDatabase;
use hugepage_host::{AskStart, Survey, stopped_clusters};
use hugepage_kernel::{Notes, Pages, Root};
use hugepage_oracle::stopped::StoppedOracle;

use crate::commands::survey::{SurveyOptions, survey_with_history};

/// The recommended pools of a host, and what they were derived from.
pub struct HostSizing {
    pub survey: Survey,
    pub down: Vec<StoppedDatabase>,
    pub sizings: Vec<Sizing>,
    /// Which servers only people start, and what is enough without them.
    pub by_hand: Vec<String>,
    pub notes: Vec<String>,
}

/// Surveys the host and sizes its pools. `stopped`: data directories of stopped PostgreSQL servers in addition to those in the
/// directories of packages; `None` for running servers only. `ask`: whom it asks what a start asks for.
pub fn host_sizing(
    root: &Root,
    options: &SurveyOptions,
    stopped: Option<&[PathBuf]>,
    ask: Option<&AskStart<'_>>,
) -> HostSizing {
    let mut survey = survey_with_history(root, options, ask);
    let mut notes = Notes::default();
    let mut down = Vec::new();
    if let Some(postgresql_data) = stopped {
        down = survey.stopped.iter().map(StoppedOracle::database).collect();
        let (clusters, unread) = stopped_clusters(root, &survey, postgresql_data, ask, &mut notes);
        for unread in unread {
            notes.add(unread.to_string());
            unread.add_to(&mut survey.unread);
        }
        down.extend(clusters.into_iter().map(|cluster| cluster.database));
    }
    let needs: Vec<_> = down.iter().filter_map(StoppedDatabase::need).collect();
    let sizings = survey.sizings(&needs, options.reserve_percent);
    let at_boot: Vec<_> = down.iter().filter(|one| !one.is_manual).filter_map(StoppedDatabase::need).collect();
    let at_boot = survey.sizings(&at_boot, options.reserve_percent);
    let enough = |all: &Sizing| {
        let without = Sizing::of_size(&at_boot, all.page_size)?.recommended;
        let without = without.filter(|without| Some(*without) < all.recommended)?;
        Some(format!("{without} pages of {} are enough without what is manual", all.page_size))
    };
    let by_hand = down.iter().filter(|one| one.is_manual && one.wants.pages() != Some(Pages(0)));
    let by_hand = by_hand.map(|one| format!("{} is manual in its start.conf: it does not start at boot", one.name));
    let by_hand = by_hand.chain(sizings.iter().filter_map(enough)).collect();
    HostSizing { survey, down, sizings, by_hand, notes: notes.into_vec() }
}
