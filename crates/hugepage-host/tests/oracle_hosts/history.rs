//! What the alert logs remember of instances that run or are stopped: what a start lost before anybody watched.

use hugepage_assess::model::Landing;
use hugepage_kernel::{InstanceFiles, Notes};
use hugepage_oracle::log_history::{RememberedStart, starts_in};

use crate::builder::*;

const DAY: u64 = 86_400;

fn start(host: &OracleHost, ago: u64, pmon: Option<u32>, allocated: u64, setting: &str) -> String {
    host.start(&LoggedStart {
        ago,
        pmon,
        parameters: vec!["sga_max_size = 4G".to_owned(), format!("use_large_pages = \"{setting}\"")],
        table: vec![("4K", None, 4, 4 + (2048 - allocated) * 512), ("2048K", Some(allocated), 2048, allocated)],
        errors: if pmon.is_some() { Vec::new() } else { vec!["ORA-27102: out of memory"] },
        ..LoggedStart::default()
    })
}

fn starts_in_log(host: &OracleHost, log: Option<&String>) -> Vec<RememberedStart> {
    let mut notes = Notes::default();
    let starts = starts_in(&InstanceFiles::own(&host.root()), log.unwrap(), &mut notes);
    assert!(notes.into_vec().is_empty());
    starts
}

/// An instance that started 25 hours ago, with starts that got so many pages 20 and 10 days ago; `None` failed.
fn host(before: [Option<u64>; 2], now: u64, setting: &str) -> OracleHost {
    let host = OracleHost::new(KERNELS[1], 64, (2048, 2048));
    host.run(&Running { segments: vec![(4 * GIB, if now == 2048 { 2048 } else { 4 })], ..Running::default() });
    let earlier = before
        .iter()
        .zip([20, 10])
        .map(|(pages, days)| start(&host, days * DAY, pages.is_some().then_some(3000), pages.unwrap_or(0), setting));
    let earlier: String = earlier.collect();
    let current = start(&host, LoggedStart::default().ago, Some(4000), now, setting);
    host.log("orcl", "orcl", &(earlier + &current));
    host
}

#[test]
fn a_loss_before_anybody_watched() {
    for (before, now, setting, is_lost) in [
        ([Some(2048), Some(2048)], 0, "TRUE", true),
        // A start that failed lies between.
        ([Some(2048), None], 0, "TRUE", true),
        // The start before had lost them already.
        ([Some(2048), Some(0)], 0, "TRUE", false),
        ([Some(0), Some(0)], 0, "TRUE", false),
        ([Some(2048), Some(2048)], 2048, "TRUE", false),
        // Base pages by choice.
        ([Some(2048), Some(2048)], 0, "FALSE", false),
        ([None, None], 0, "TRUE", false),
    ] {
        let host = host(before, now, setting);
        let survey = host.survey();
        let instance = running(&survey, "orcl");
        let starts = starts_in_log(&host, instance.id.oracle().unwrap().alert_log.as_ref());
        let current = instance.status.facts.current_start();
        let found = instance.id.oracle().unwrap().lost(&current, || Some(&starts));
        let wanted = is_lost.then(|| "was in huge pages of 2 MB, is in 4 kB pages".to_owned());
        assert_eq!(found.map(|lost| lost.to_string()), wanted, "{before:?} {now} {setting}");
    }
}

/// Of a start that is not in the log nothing is compared.
#[test]
fn no_loss_without_the_log_of_this_start() {
    let host = host([Some(2048), Some(2048)], 0, "TRUE");
    host.log("orcl", "orcl", &start(&host, 20 * DAY, Some(3000), 2048, "TRUE"));
    let survey = host.survey();
    let instance = running(&survey, "orcl");
    let current = instance.status.facts.current_start();
    let starts = starts_in_log(&host, instance.id.oracle().unwrap().alert_log.as_ref());
    assert_eq!(instance.id.oracle().unwrap().lost(&current, || Some(&starts)), None);
    assert_eq!(starts.len(), 1);
}

#[test]
fn the_starts_of_a_stopped_instance() {
    let host = OracleHost::new(KERNELS[1], 64, (2048, 2048));
    host.home(DB_HOME);
    host.write("/etc/oratab", &format!("orcl:{DB_HOME}:N\n"));
    let log = start(&host, 20 * DAY, Some(3000), 2048, "TRUE") + &start(&host, DAY, None, 0, "ONLY");
    host.log("orcl", "orcl", &log);
    let survey = host.survey();
    let starts = starts_in_log(&host, stopped(&survey, "orcl").alert_log.as_ref());
    let seen: Vec<_> = starts.iter().map(|one| (one.got.landing, one.failed)).collect();
    assert_eq!(seen, [(Landing::Hugetlb, false), (Landing::Unknown, true)]);
}
