//! Over all kinds of hosts: no number beyond what the host can hold, none that falls short, and none that shrinks with
//! more memory to serve.

use hugepage_assess::advice::plan::{Plan, Step};
use hugepage_assess::advice::recommendation::{Area, Recommendation};
use hugepage_assess::advice::{self, events};
use hugepage_assess::assessment::Severity;
use hugepage_assess::model::HugePages;
use hugepage_kernel::PageSize;
use proptest::prelude::*;

use super::{AdviceContext, GIB, Host, MIB, page_size, recommendations, shared_memory};

fn hosts() -> impl Strategy<Value = Host> {
    let sizes = (
        16u64..20_000,
        1u64..64,
        any::<bool>(),
        any::<bool>(),
        0u64..12_000,
        0u64..12_000,
        0u64..200,
        0u64..4000,
    );
    let requested = prop_oneof![
        Just(HugePages::Try),
        Just(HugePages::On),
        Just(HugePages::Off)
    ];
    let seen = (
        proptest::option::of(0u64..64),
        any::<bool>(),
        proptest::option::weighted(0.3, 16u64..60_000),
    );
    (
        sizes,
        requested,
        proptest::option::of(0u64..20_000),
        1u64..5000,
        seen,
    )
        .prop_map(
            |(
                (megabytes, memory, huge, gigantic, idle, others, surplus, elsewhere),
                huge_pages,
                at_boot,
                connections,
                seen,
            )| {
                let size = if gigantic {
                    page_size(GIB)
                } else {
                    page_size(2 * MIB)
                };
                let own = if huge {
                    size.pages_to_hold(hugepage_kernel::Bytes(shared_memory(megabytes * MIB)))
                        .0
                } else {
                    0
                };
                let nr = own + idle + others;
                let counters = [nr, idle + own, own, surplus.min(nr), 0];
                let unused = [elsewhere, elsewhere, 0, 0, 0];
                Host {
                    huge_pages: if huge && huge_pages == HugePages::Off {
                        HugePages::Try
                    } else {
                        huge_pages
                    },
                    huge,
                    shared_buffers: megabytes * MIB,
                    page_size: size,
                    pool: if gigantic { unused } else { counters },
                    gigantic: if gigantic { counters } else { unused },
                    memory: memory * GIB,
                    connections,
                    at_boot,
                    available: seen.0.map(|available| available.min(memory) * GIB),
                    sees_others: seen.1,
                    on_disk: seen.2.map(|megabytes| megabytes * MIB),
                    ..Host::default()
                }
            },
        )
}

proptest! {
    #[test]
    fn never_more_than_the_host_holds_and_never_fewer_than_needed(host in hosts()) {
        let status = host.context().status;
        let page_size = status.facts.pool_state.huge_page_size.unwrap();
        let capacity = status.capacity.unwrap().most.0;
        let share = status.share.unwrap();
        for row in host.recommendations() {
            let Some(recommended) = &row.recommended else {
                prop_assert!(row.command.is_none());
                continue;
            };
            if row.setting.contains("nr_hugepages") && row.setting.contains("1048576") == (page_size.bytes().0 >= GIB) {
                let pages: u64 = recommended.parse().unwrap();
                prop_assert!(pages <= capacity, "{row:?} of {capacity}");
                let pool = status.facts.pool_state.pool.known().unwrap();
                prop_assert!(pages >= pool.in_use().unwrap().0, "{row:?} {pool:?}");
                prop_assert!(host.sees_others || pages >= pool.persistent().0 || row.area == Area::Boot, "{row:?}");
                if host.huge_pages != HugePages::Off {
                    // What is on disk may fit where what runs does not.
                    let is_same = status.forecast.huge_page_size == Some(page_size);
                    let needed = status.crash.needed.min(status.forecast.needed.filter(|_| is_same).or(status.crash.needed));
                    prop_assert!(pages >= share.others.0 + needed.unwrap().0, "{row:?} {status:?}");
                }
            }
            if row.setting == "shared_buffers" {
                let megabytes: u64 = recommended.strip_suffix("MB").unwrap().parse().unwrap();
                let size = hugepage_kernel::Bytes(shared_memory(megabytes * MIB));
                prop_assert!(page_size.pages_to_hold(size).0 + share.others.0 <= capacity, "{row:?}");
            }
            if row.setting == "vm.nr_overcommit_hugepages" {
                let pages: u64 = recommended.parse().unwrap();
                prop_assert!(pages + share.persistent.0 <= capacity, "{row:?}");
            }
        }
    }

    /// What the hint says in words is in the rows, and no row says another number for the same setting.
    #[test]
    fn rows_are_the_steps_of_the_hint(host in hosts()) {
        let context = host.context();
        let rows = host.recommendations();
        let hint = hugepage_assess::advice::hint(&context.status).unwrap_or_default();
        let steps = Plan::of_finding(&context.status, context.status.verdict().1).map(|plan| plan.steps).unwrap_or_default();
        // The pool of a smaller server has no row, because it is of no use to the present one.
        let waits = steps.iter().any(|step| matches!(step, Step::Reduce { .. }));
        for step in steps.into_iter().filter(|_| !waits) {
            let (setting, number) = match step {
                Step::SetPool { size, is_default: true, pages, .. } if size == host.page_size => {
                    ("vm.nr_hugepages".to_owned(), pages.to_string())
                }
                Step::SetPool { size, pages, .. } => (format!("{}/nr_hugepages", size.sysfs_name()), pages.to_string()),
                _ => continue,
            };
            prop_assert!(hint.contains(&number), "{hint}");
            let of_setting = |row: &&Recommendation| row.setting == setting && row.area != Area::Boot;
            let said: Vec<_> = rows.iter().filter(of_setting).collect();
            let by_choice = host.huge_pages == HugePages::Off && said.is_empty();
            prop_assert!(by_choice || said.len() == 1 && said[0].recommended.as_ref() == Some(&number), "{hint} {said:?}");
        }
    }

    /// No output has a command that takes pages from somebody, or leaves none: not the hint, the rows or the log.
    #[test]
    fn no_command_takes_pages_from_anybody(host in hosts()) {
        let context = host.context();
        let status = &context.status;
        let size = status.facts.pool_state.huge_page_size.unwrap();
        let pool = status.facts.pool_state.pool.known().unwrap();
        let in_use = pool.in_use().unwrap().0;
        let is_wasted = status.severity_of("pool_wasted") > Severity::Ok;
        for (output, text, why) in outputs(&context) {
            for pages in pages_set(&text, size) {
                prop_assert!(pages > 0 && pages >= in_use, "{output}: {text}");
                let is_less = pages < pool.persistent().0;
                prop_assert!(!is_less || why.contains("unused") || is_wasted && why.contains("next boot"), "{output}: {text} of {}: {why}", pool.persistent());
                let most = status.capacity.unwrap().most.max(pool.persistent()).0;
                prop_assert!(pages <= most, "{output}: {text}");
            }
            prop_assert!(!text.contains("hugepage_") && !why.contains("no shared_buffers fit"), "{output}: {text} {why}");
        }
    }

    #[test]
    fn monotonic_in_shared_buffers(host in hosts(), more in 1u64..4096) {
        let larger = Host { shared_buffers: host.shared_buffers + more * MIB, huge: false, ..host.clone() };
        let host = Host { huge: false, ..host };
        let (before, after) = (host.context().status, larger.context().status);
        prop_assert!(after.to_land >= before.to_land && (after.recommended >= before.recommended || after.does_not_fit()));
    }
}

/// Each text with commands, and the text that says why.
fn outputs(context: &AdviceContext) -> Vec<(&'static str, String, String)> {
    let status = &context.status;
    let mut all = vec![(
        "hint",
        advice::hint(status).unwrap_or_default(),
        advice::message(status),
    )];
    let rows = recommendations(context).into_iter();
    all.extend(rows.map(|row| ("row", row.command.unwrap_or_default(), row.reason)));
    let threats = status
        .threats()
        .into_iter()
        .map(|threat| events::threatened(status, threat));
    let entries = threats.chain([events::allocated(status, None, &[])]);
    all.extend(entries.map(|entry| ("log", entry.hint.unwrap_or_default(), String::new())));
    all
}

/// The sizes of the host's pool that a text sets.
fn pages_set(text: &str, size: PageSize) -> Vec<u64> {
    let number = |text: &str| {
        text.trim_start_matches([' ', '='])
            .split(|c: char| !c.is_ascii_digit())
            .next()?
            .parse()
            .ok()
    };
    let of_file = format!(
        " > /sys/kernel/mm/hugepages/{}/nr_hugepages",
        size.sysfs_name()
    );
    // The default size.
    let sysctl = (size == page_size(2 * MIB)).then_some("vm.nr_hugepages");
    let of_sysctl = sysctl.into_iter().flat_map(|name| text.match_indices(name));
    let of_sysctl = of_sysctl.filter_map(|(at, name)| number(&text[at + name.len()..]));
    let of_boot = text
        .match_indices(" hugepages=")
        .filter_map(|(at, name)| number(&text[at + name.len()..]));
    let of_echo = text
        .match_indices(&of_file)
        .filter_map(|(at, _)| text[..at].rsplit("echo ").next()?.parse().ok());
    of_sysctl.chain(of_boot).chain(of_echo).collect()
}
