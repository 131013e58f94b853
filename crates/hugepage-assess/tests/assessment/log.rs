//! What goes into a server's log, in PostgreSQL's style: the message lower case without a period, the rest sentences.

use hugepage_assess::advice::events::{LogMessage, allocated, threat_is_over, threatened};
use hugepage_assess::assessment::{Severity, Status, Threat};
use hugepage_assess::model::{Facts, HugePages, PoolFact};
use hugepage_facts::{Cause, Landing, Loss, Lost, PageKind, Past};
use hugepage_kernel::PageSize;

use super::{GIB, MIB, Server, fault, hidden, known, pool};

fn assert_style(message: &LogMessage) {
    let is_sentence = |line: &str| line.ends_with('.') && line.starts_with(char::is_uppercase);
    assert!(
        message.message.starts_with(char::is_lowercase) && !message.message.ends_with('.'),
        "{message:?}"
    );
    assert!(
        message
            .detail
            .iter()
            .flat_map(|detail| detail.lines())
            .all(is_sentence),
        "{message:?}"
    );
    assert!(
        message.hint.as_deref().is_none_or(is_sentence),
        "{message:?}"
    );
}

fn lost(only_outlook: bool) -> Lost {
    let kind = |landing, kib| PageKind {
        landing,
        size: PageSize::from_kib(kib),
    };
    let was = kind(Landing::Hugetlb, 2048);
    if only_outlook {
        Lost::Outlook(was)
    } else {
        Lost::Pages {
            was,
            is: kind(Landing::Base, 4),
        }
    }
}

#[test]
fn blocks() {
    let huge = Server::default();
    let base = Server::in_base_pages();
    let run = seen!(
        "Run \"sysctl -w vm.nr_hugepages=512",
        " and restart the server."
    );
    let cases = [
        (
            huge.clone(),
            None,
            false,
            "shared memory landed in 512 huge pages of 2 MB",
            None,
        ),
        (
            base.clone(),
            None,
            true,
            "shared memory did not land in huge pages [base_pages]",
            Some(run),
        ),
        (
            base.clone(),
            Some(lost(false)),
            true,
            "shared memory regressed: it was in huge pages of 2 MB, is in 4 kB pages [regressed]",
            Some(run),
        ),
        (
            Server {
                huge_pages: HugePages::Off,
                ..base.clone()
            },
            None,
            false,
            "shared memory landed in 4 kB pages, as requested by huge_pages = off",
            None,
        ),
        (
            Server {
                landing: Some(Landing::Unknown),
                ..huge.clone()
            },
            None,
            true,
            "the pages of shared memory could not be determined [landing_unknown]",
            None,
        ),
        (
            Server {
                pool: PoolFact::Unknown,
                ..base
            },
            None,
            true,
            "shared memory did not land in huge pages [base_pages]",
            Some("Read the notes, which name what could not be determined."),
        ),
    ];
    for (server, lost, is_bad, message, hint) in cases {
        let block = allocated(
            &server.status(),
            lost.as_ref(),
            &["could not open /proc/x".to_owned()],
        );
        assert_eq!(
            (block.is_bad, block.message.as_str(), block.hint.as_deref()),
            (is_bad, message, hint)
        );
        assert!(
            block
                .detail
                .as_ref()
                .unwrap()
                .ends_with("\nNote: could not open /proc/x.")
        );
        assert_style(&block);
    }
}

#[test]
fn figures() {
    let detail = |server: Server| allocated(&server.status(), None, &[]).detail.unwrap();
    assert_eq!(
        detail(Server {
            pool: known(pool(600, 588, 500)),
            ..Server::default()
        }),
        "Shared memory in huge pages: 1 GB of 1 GB (100%).\nHuge pages of 2 MB: 512 needed, 0 missing, 88 available; the \
         pool has 600, of them 588 free, 500 reserved, 0 surplus.\nAs configured: huge_pages = try."
    );
    assert_eq!(
        detail(Server {
            page_size: None,
            pool: PoolFact::Unsupported(Vec::new()),
            ..Server::in_base_pages()
        }),
        "Shared memory in huge pages: 0 bytes of 1 GB (0%).\nCause: page_size_unsupported (huge_pages = try)."
    );
}

#[test]
fn threats() {
    let lowered = known(pool(100, 100, 0));
    let cases = [
        (Server::default(), vec![]),
        (
            Server {
                pool: lowered.clone(),
                ..Server::default()
            },
            vec![Threat::RestartLoses],
        ),
        (
            Server {
                pool: lowered.clone(),
                huge_pages: HugePages::On,
                ..Server::default()
            },
            vec![Threat::RestartFails],
        ),
        (
            Server {
                limits: fault(&[(GIB - MIB, 0)]),
                ..Server::default()
            },
            vec![Threat::CgroupLimit],
        ),
        (
            Server {
                pool: lowered,
                limits: fault(&[(GIB - MIB, 0)]),
                ..Server::default()
            },
            vec![Threat::CgroupLimit, Threat::RestartLoses],
        ),
        (
            Server {
                limits: hidden(),
                ..Server::default()
            },
            vec![],
        ),
        (Server::in_base_pages(), vec![]),
    ];
    for (server, expected) in cases {
        let status = server.status();
        assert_eq!(status.threats(), expected);
        for threat in Threat::ALL {
            let (warning, over) = (threatened(&status, threat), threat_is_over(&status, threat));
            assert!(warning.is_bad && !over.is_bad);
            assert_style(&warning);
            assert_style(&over);
        }
        for threat in expected {
            assert!(threatened(&status, threat).hint.is_some(), "{threat}");
        }
    }
}

#[test]
fn what_is_uncertain_is_not_called_well() {
    let uncertain = Server {
        limits: hidden(),
        ..Server::default()
    }
    .status();
    assert!(
        threat_is_over(&uncertain, Threat::RestartLoses)
            .message
            .ends_with("not guaranteed (also after a crash)")
    );
    let well = Server::default().status();
    assert!(
        threat_is_over(&well, Threat::RestartLoses)
            .message
            .ends_with("its huge pages again (also after a crash)")
    );
}

/// A loss is a warning whatever the size; one of the outlook alone as long as it is so.
#[test]
fn verdict_after_a_loss() {
    let verdict = |server: Server, only_outlook: bool| {
        let loss = Loss {
            at: humantime::parse_rfc3339("2026-11-21T10:00:00Z").unwrap(),
            lost: lost(only_outlook),
        };
        let past = Past {
            loss: Some(loss),
            ..Past::default()
        };
        let status = Status::assess(Facts {
            past,
            ..server.facts()
        });
        (
            status.verdict().0,
            hugepage_assess::advice::message(&status),
        )
    };
    let small = Server {
        size: 100 * MIB,
        ..Server::in_base_pages()
    };
    let (severity, message) = verdict(small, false);
    assert_eq!(severity, Severity::Warning);
    assert_eq!(
        message,
        "Shared memory (100 MB) regressed at the start recorded at 2026-11-21 10:00:00 UTC: it was in huge pages of 2 MB, is in \
         4 kB pages: the pool of 2 MB pages is empty; 50 are needed."
    );
    assert_eq!(verdict(Server::default(), true).0, Severity::Ok);
    assert_eq!(
        verdict(
            Server {
                pool: known(pool(100, 100, 0)),
                ..Server::default()
            },
            true
        )
        .0,
        Severity::Warning
    );
}

/// Once nothing stands in the way any more, what was seen at the start is the cause.
#[test]
fn cause_of_the_start() {
    let grown = Server {
        pool: known(pool(512, 512, 0)),
        ..Server::in_base_pages()
    };
    let cause = |cause_at_start| {
        let past = Past {
            cause_at_start,
            ..Past::default()
        };
        Status::assess(Facts {
            past,
            ..grown.clone().facts()
        })
        .cause
    };
    assert_eq!(cause(None), Some(Cause::Unknown));
    assert_eq!(cause(Some(Cause::PoolTooSmall)), Some(Cause::PoolTooSmall));
}
