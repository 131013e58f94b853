//! Starts that the kernel stops: base pages beyond what it grants, and a signal at the first touch.

use hugepage_assess::advice::plan::Step;
use hugepage_assess::advice::{self, Plan};
use hugepage_assess::assessment::{Finding, Outlook, Severity, Status};
use hugepage_assess::model::{BaseLimit, Facts, HugePages};
use hugepage_kernel::Bytes;

use super::{GIB, MIB, Server, fault, known, pool, reservation};

fn memory(granted: u64, most: u64) -> BaseLimit {
    BaseLimit::new("MemTotal + SwapTotal", Bytes(granted), Bytes(most))
}

/// A server of 1 GB in base pages, whose pool is empty.
fn in_base_pages(huge_pages: HugePages, limits: &[BaseLimit]) -> Status {
    let mut facts: Facts = Server {
        huge_pages,
        ..Server::in_base_pages()
    }
    .facts();
    facts.pool_state.base_limits = limits.to_vec();
    Status::assess(facts)
}

#[test]
fn more_than_the_kernel_grants() {
    for (limit, outlook) in [
        (memory(GIB, GIB), Outlook::Base),
        (memory(GIB - 1, GIB), Outlook::Unknown),
        (memory(GIB - 1, GIB - 1), Outlook::Fails),
        (memory(0, u64::MAX), Outlook::Unknown),
    ] {
        for huge_pages in [HugePages::Off, HugePages::Try] {
            let status = in_base_pages(huge_pages, &[memory(u64::MAX, u64::MAX), limit.clone()]);
            assert_eq!(
                (status.forecast.outlook, status.crash.outlook),
                (outlook, outlook),
                "{limit:?}"
            );
            let starts = status.forecast.will_start(&status.facts.requested);
            let expected = match outlook {
                Outlook::Base => Some(true),
                Outlook::Fails => Some(false),
                _ => None,
            };
            assert_eq!(starts, expected, "{limit:?}");
            let critical = status.severity_of("restart_fails") == Severity::Critical;
            assert_eq!(critical, outlook == Outlook::Fails, "{limit:?}");
            let unknown = status.severity_of("outlook_unknown") == Severity::Notice;
            assert_eq!(unknown, outlook == Outlook::Unknown, "{limit:?}");
            let is_noted = status
                .notes_on_outlook()
                .any(|note| note.contains("a restart succeeds"));
            assert_eq!(is_noted, unknown, "{limit:?}");
        }
        // With "on" there are no base pages.
        assert_eq!(
            in_base_pages(HugePages::On, &[limit]).forecast.outlook,
            Outlook::Fails
        );
    }
    // Huge pages are not counted, and where they are uncertain, so is the start.
    let in_huge_pages = |hidden| {
        let mut facts = Server::default().facts();
        facts.pool_state.base_limits = vec![memory(MIB, MIB)];
        facts.pool_state.limits.as_mut().unwrap().hidden_levels = hidden;
        Status::assess(facts)
    };
    let starts = |status: &Status| status.forecast.will_start(&status.facts.requested);
    assert_eq!(
        (
            in_huge_pages(false).forecast.outlook,
            starts(&in_huge_pages(false))
        ),
        (Outlook::Hugetlb, Some(true))
    );
    assert_eq!(
        (
            in_huge_pages(true).forecast.outlook,
            starts(&in_huge_pages(true))
        ),
        (Outlook::Unknown, None)
    );
}

#[test]
fn the_limit_is_named_and_the_hint_keeps_to_it() {
    let told = |huge_pages| {
        let status = in_base_pages(huge_pages, &[memory(512 * MIB, 512 * MIB)]);
        assert_eq!(
            status.verdict(),
            (Severity::Critical, &Finding::RestartFails)
        );
        let plan = Plan::of_finding(&status, &Finding::RestartFails).unwrap();
        (
            advice::message(&status),
            advice::hint(&status).unwrap(),
            plan.steps,
        )
    };
    let (message, hint, steps) = told(HugePages::Off);
    assert_eq!(
        message,
        "The next start would fail: the kernel does not grant 1 GB of shared memory in base pages, only 512 MB for certain: \
         MemTotal + SwapTotal."
    );
    assert_eq!(
        hint,
        "Reduce shared_buffers until shared memory takes at most 512 MB."
    );
    assert_eq!(
        steps,
        [Step::Reduce {
            to: Bytes(512 * MIB)
        }]
    );
    // Huge pages would be granted.
    let (_, hint, _) = told(HugePages::Try);
    assert!(
        hint.starts_with("Run \"sysctl -w vm.nr_hugepages=512"),
        "{hint}"
    );
}

/// 131,072 buffers less an eighth touch 80 bytes each, and 16 MB of WAL buffers are more.
#[test]
fn a_limit_below_what_a_start_touches() {
    let least = GIB / 8 * 7 / 8192 * 80 + (16 << 20);
    let server = |limit| Server {
        limits: fault(&[(limit, 0)]),
        ..Server::default()
    };
    for (limit, outlook, starts, severity) in [
        (0, Outlook::Fails, Some(false), Severity::Critical),
        (least - 1, Outlook::Fails, Some(false), Severity::Critical),
        (least, Outlook::Hugetlb, None, Severity::Critical),
        (GIB - 1, Outlook::Hugetlb, None, Severity::Critical),
        (GIB, Outlook::Hugetlb, Some(true), Severity::Ok),
    ] {
        for huge_pages in [HugePages::Try, HugePages::On] {
            let status = Server {
                huge_pages,
                ..server(limit)
            }
            .status();
            assert_eq!(
                (status.forecast.outlook, status.crash.outlook),
                (outlook, outlook),
                "{limit}"
            );
            assert_eq!(
                status.forecast.will_start(&status.facts.requested),
                starts,
                "{limit}"
            );
            assert_eq!(status.severity_of("cgroup_limit"), severity, "{limit}");
            let danger = status.forecast.danger.as_ref();
            assert_eq!(
                danger.map(|danger| danger.is_certain),
                (limit < GIB).then_some(limit < least)
            );
            let text = danger.map(advice::message::obstacle).unwrap_or_default();
            assert_eq!(
                text.contains(&format!("/sys/fs/cgroup/limit_{limit}")),
                limit < GIB,
                "{text}"
            );
        }
        // In base pages nothing is touched of it.
        let off = Server {
            huge_pages: HugePages::Off,
            ..server(limit)
        };
        let off = off.status();
        assert_eq!(off.forecast.will_start(&off.facts.requested), Some(true));
    }
}

/// What mmap(2) refuses is never touched.
#[test]
fn a_reservation_limit_is_no_signal() {
    for (huge_pages, outlook) in [
        (HugePages::Try, Outlook::Base),
        (HugePages::On, Outlook::Fails),
    ] {
        let mut facts = Server {
            huge_pages,
            pool: known(pool(512, 512, 0)),
            limits: reservation(&[(GIB - 1, 0)]),
            ..Server::in_base_pages()
        }
        .facts();
        facts.pool_state.limits.as_mut().unwrap().fault = fault(&[(0, 0)]).unwrap().fault;
        let status = Status::assess(facts);
        assert_eq!(
            (status.forecast.outlook, status.forecast.danger),
            (outlook, None)
        );
    }
}

/// The file of a pod's limit is written anew with each container.
#[test]
fn a_pods_limit_is_set_in_its_manifest() {
    let mut limits = fault(&[(0, 0), (0, 0)]).unwrap();
    limits.reservation = limits.fault.clone();
    for level in limits.fault.iter_mut().chain(&mut limits.reservation) {
        level.path = "hugepages-2Mi".to_owned();
    }
    let status = Server {
        pool: known(pool(512, 512, 0)),
        limits: Some(limits),
        ..Server::in_base_pages()
    }
    .status();
    let hint = advice::hint(&status).unwrap();
    assert_eq!(
        hint,
        "Set the limit hugepages-2Mi of the pod to at least 1024Mi in its manifest and restart the server."
    );
}
