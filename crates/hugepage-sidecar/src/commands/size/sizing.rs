//! The pages that the servers of a host need, running or stopped.

use hugepage_host::Survey;
use hugepage_kernel::Pages;
use hugepage_oracle::stopped::StoppedOracle;
use hugepage_sizing::{Sizing, StoppedDatabase};

/// The recommended pools of a host, and what they were derived from.
pub struct HostSizing {
    pub survey: Survey,
    pub down: Vec<StoppedDatabase>,
    pub sizings: Vec<Sizing>,
    /// Which servers only people start, and what is enough without them.
    pub by_hand: Vec<String>,
    pub notes: Vec<String>,
}

impl HostSizing {
    /// Sizes the pools of a host. `counts_stopped`: whether servers count that do not run.
    pub fn new(mut survey: Survey, counts_stopped: bool) -> Self {
        let (mut down, mut notes) = (Vec::new(), Vec::new());
        if counts_stopped {
            let clusters = &survey.host.stopped_clusters;
            down.extend(survey.host.stopped.iter().map(StoppedOracle::database));
            down.extend(clusters.found.iter().cloned());
            notes.extend(clusters.notes.iter().cloned());
            clusters.unread.iter().cloned().for_each(|unread| unread.add_to(&mut survey.host.unread));
        }
        let needs: Vec<_> = down.iter().filter_map(StoppedDatabase::need).collect();
        let sizings = survey.sizings_beside(&needs);
        let at_boot: Vec<_> = down.iter().filter(|one| !one.is_manual).filter_map(StoppedDatabase::need).collect();
        let at_boot = survey.sizings_beside(&at_boot);
        let enough = |all: &Sizing| {
            let without = Sizing::of_size(&at_boot, all.page_size)?.recommended;
            let without = without.filter(|without| Some(*without) < all.recommended)?;
            Some(format!("{without} pages of {} are enough without what is manual", all.page_size))
        };
        let by_hand = down.iter().filter(|one| one.is_manual && one.wants.pages() != Some(Pages(0)));
        let by_hand = by_hand.map(|one| format!("{} is manual in its start.conf: it does not start at boot", one.name));
        let by_hand = by_hand.chain(sizings.iter().filter_map(enough)).collect();
        Self { survey, down, sizings, by_hand, notes }
    }
}
