//! The metrics of a host: what the text says of facts, and that each name means one thing.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, UNIX_EPOCH};

use hugepage_assess::assessment::{Finding, Status};
use hugepage_assess::model::HugePages;
use hugepage_facts::{Landing, PageTables, PoolRow};
use hugepage_host::metrics::{InstanceMetrics, MetricsSnapshot, text};
use hugepage_kernel::memory::pool::Pool;
use hugepage_kernel::{Bytes, Pages};

#[allow(dead_code, reason = "of the tests of another crate")]
#[path = "../../hugepage-assess/tests/assessment/server.rs"]
mod server;

use server::{GIB, MIB, Server, fault, known, pool, reservation};

fn instance(name: &str, status: Status) -> InstanceMetrics {
    InstanceMetrics {
        kind: "postgresql".to_owned(),
        name: name.to_owned(),
        status,
        page_tables: PageTables::default(),
        last_regression: None,
    }
}

fn row(node: Option<u32>, pool: Pool) -> PoolRow {
    PoolRow {
        node,
        is_default: true,
        pool,
        limit: None,
    }
}

fn host(instances: Vec<InstanceMetrics>) -> String {
    let meminfo = instances
        .first()
        .map(|instance| instance.status.facts.meminfo.clone());
    text(&MetricsSnapshot {
        instances,
        stopped: Vec::new(),
        pools: vec![row(None, pool(512, 12, 2)), row(Some(0), pool(512, 12, 0))],
        meminfo,
        uninspected: 2,
        survey_duration: Some(Duration::from_millis(1500)),
    })
}

/// The samples as `name{labels}`, each once.
fn samples(text: &str) -> BTreeMap<&str, &str> {
    let lines: Vec<_> = text.lines().filter(|line| !line.starts_with('#')).collect();
    let samples: BTreeMap<_, _> = lines
        .iter()
        .map(|line| line.rsplit_once(' ').unwrap())
        .collect();
    assert_eq!(samples.len(), lines.len(), "a series twice in\n{text}");
    samples
}

fn sample<'a>(samples: &BTreeMap<&str, &'a str>, name: &str, labels: &str) -> Option<&'a str> {
    samples
        .get(format!("{name}{{kind=\"postgresql\",name=\"/pg\"{labels}}}").as_str())
        .copied()
}

#[test]
fn one_server_as_requested() {
    let text = host(vec![instance("/pg", Server::default().status())]);
    let samples = samples(&text);
    for (name, labels, value) in [
        ("hugepage_verdict", "", "0"),
        ("hugepage_landed_in", ",hugepage_landed_in=\"hugetlb\"", "1"),
        ("hugepage_landed_in", ",hugepage_landed_in=\"base\"", "0"),
        (
            "hugepage_restart_outlook",
            ",hugepage_restart_outlook=\"hugetlb\"",
            "1",
        ),
        (
            "hugepage_fallback_cause",
            ",hugepage_fallback_cause=\"pool_empty\"",
            "0",
        ),
        (
            "hugepage_instance_info",
            ",huge_pages=\"try\",huge_page_size=\"2097152\"",
            "1",
        ),
        ("hugepage_shared_memory_bytes", "", "1073741824"),
        ("hugepage_page_size_bytes", "", "2097152"),
        ("hugepage_pages_needed", "", "512"),
        ("hugepage_pages_missing", "", "0"),
    ] {
        assert_eq!(
            sample(&samples, name, labels),
            Some(value),
            "{name}{labels} in\n{text}"
        );
    }
    for (series, value) in [
        ("hugepage_pool_nr_hugepages{page_size=\"2097152\"}", "512"),
        (
            "hugepage_pool_available_hugepages{page_size=\"2097152\"}",
            "10",
        ),
        ("hugepage_host_memory_bytes", "17179869184"),
        ("hugepage_host_page_tables_bytes", "67108864"),
        ("hugepage_uninspected_instances", "2"),
        ("hugepage_survey_duration_seconds", "1.5"),
        (
            concat!(
                "hugepage_build_info{version=\"",
                env!("CARGO_PKG_VERSION"),
                "\"}"
            ),
            "1",
        ),
    ] {
        assert_eq!(samples.get(series), Some(&value), "{series} in\n{text}");
    }
}

#[test]
fn what_is_wrong_has_its_gravity() {
    let lost = Server {
        size: GIB,
        ..Server::in_base_pages()
    };
    let small = Server {
        size: 512 * MIB,
        ..Server::in_base_pages()
    };
    let fails = Server {
        huge_pages: HugePages::On,
        ..Server::in_base_pages()
    };
    let surplus = known(Pool {
        surplus: Some(Pages(512)),
        ..pool(512, 0, 0)
    });
    let loses = Server {
        pool: surplus.clone(),
        ..Server::default()
    };
    let trap = Server {
        limits: fault(&[(GIB - 1, 0)]),
        ..Server::default()
    };
    let tables = |page_tables| Server {
        page_tables,
        memory: 1000 * MIB,
        ..Server::default()
    };
    for (finding, server, verdict) in [
        ("base_pages", lost, "2"),
        ("base_pages", small, "1"),
        ("restart_fails", fails, "3"),
        ("restart_loses", loses.clone(), "2"),
        ("cgroup_limit", trap, "3"),
        ("page_tables", tables(51 * MIB), "2"),
        ("page_tables", tables(101 * MIB), "3"),
    ] {
        let text = host(vec![instance("/pg", server.status())]);
        let samples = samples(&text);
        assert_eq!(
            sample(
                &samples,
                "hugepage_finding_severity",
                &format!(",finding=\"{finding}\"")
            ),
            Some(verdict),
            "{finding}"
        );
        assert_eq!(
            sample(&samples, "hugepage_verdict", ""),
            Some(verdict),
            "{finding}"
        );
    }
    // What is not the most severe is told too.
    let both = Server {
        page_tables: 2 * GIB,
        pool: surplus,
        ..Server::default()
    };
    let text = host(vec![instance("/pg", both.status())]);
    let samples = samples(&text);
    assert_eq!(
        sample(
            &samples,
            "hugepage_finding_severity",
            ",finding=\"page_tables\""
        ),
        Some("3")
    );
    assert_eq!(
        sample(
            &samples,
            "hugepage_finding_severity",
            ",finding=\"restart_loses\""
        ),
        Some("2")
    );
}

/// Also a name that looks as if it were numbered.
#[test]
fn names_that_escape_to_the_same_text() {
    let names = ["/pg\u{1b}", "/pg\\x1b", "/pg\\x1b (2)", "/pg\u{9b}"];
    let text = host(
        names
            .map(|name| instance(name, Server::default().status()))
            .into(),
    );
    let samples = samples(&text);
    let verdicts = samples
        .keys()
        .filter_map(|series| series.strip_prefix("hugepage_verdict"));
    let expected = [
        "/pg\\\\x1b",
        "/pg\\\\x1b (2)",
        "/pg\\\\x1b (2) (2)",
        "/pg\\\\x9b",
    ]
    .map(|name| format!("{{kind=\"postgresql\",name=\"{name}\"}}"));
    assert_eq!(
        BTreeSet::from_iter(verdicts),
        BTreeSet::from_iter(expected.iter().map(String::as_str))
    );
}

#[test]
fn unknown_has_no_sample() {
    let text = host(vec![instance(
        "/pg",
        Server {
            landing: None,
            limits: None,
            ..Server::default()
        }
        .status(),
    )]);
    let samples = samples(&text);
    for name in [
        "hugepage_shared_memory_bytes",
        "hugepage_page_size_bytes",
        "hugepage_pages_needed",
    ] {
        assert_eq!(sample(&samples, name, ""), None, "{name}");
    }
    for name in ["hugepage_cgroup_limit_bytes", "hugepage_page_tables_bytes"] {
        assert!(!text.contains(name), "{name} in\n{text}");
    }
    assert_eq!(
        sample(
            &samples,
            "hugepage_landed_in",
            ",hugepage_landed_in=\"unknown\""
        ),
        Some("1")
    );

    let nothing = MetricsSnapshot {
        instances: Vec::new(),
        stopped: Vec::new(),
        pools: Vec::new(),
        meminfo: None,
        uninspected: 0,
        survey_duration: None,
    };
    let text = hugepage_host::metrics::text(&nothing);
    let names: Vec<_> = text
        .lines()
        .filter_map(|line| line.split(['{', ' ']).next().filter(|name| *name != "#"))
        .collect();
    assert_eq!(
        names,
        ["hugepage_uninspected_instances", "hugepage_build_info"],
        "{text}"
    );
}

#[test]
fn what_is_counted_elsewhere() {
    let sum = PageTables {
        processes: 7,
        total: Some(Bytes(700)),
        max: Some(Bytes(300)),
        min: Some(Bytes(10)),
        of_shared_memory: Some(Bytes(600)),
    };
    let limited = Server {
        limits: reservation(&[(2 * GIB, GIB)]),
        ..Server::default()
    };
    let lost = Some(UNIX_EPOCH + Duration::from_secs(1_700_000_000));
    let counted = InstanceMetrics {
        page_tables: sum,
        last_regression: lost,
        ..instance("/pg", limited.status())
    };
    let text = host(vec![counted]);
    let samples = samples(&text);
    for (name, value) in [
        ("hugepage_page_tables_processes", "7"),
        ("hugepage_page_tables_bytes", "700"),
        ("hugepage_page_tables_max_bytes", "300"),
        ("hugepage_page_tables_saving_bytes", "600"),
        ("hugepage_last_regression_timestamp_seconds", "1700000000"),
        ("hugepage_cgroup_limit_bytes", "2147483648"),
        ("hugepage_cgroup_usage_bytes", "1073741824"),
    ] {
        assert_eq!(sample(&samples, name, ""), Some(value), "{name} in\n{text}");
    }
}

/// A family's lines stand together under one HELP and one TYPE, whatever the number of instances.
#[test]
fn several_instances_and_odd_names() {
    let other = instance("/var/lib/a \"b\"\\c\nd", Server::in_base_pages().status());
    let oracle = InstanceMetrics {
        kind: "oracle".to_owned(),
        ..instance("/pg", Server::default().status())
    };
    let text = host(vec![
        instance("/pg", Server::default().status()),
        other,
        oracle,
    ]);
    assert!(
        text.contains(r#"hugepage_verdict{kind="postgresql",name="/var/lib/a \"b\"\\c\nd"} 2"#),
        "{text}"
    );
    assert!(
        text.contains(r#"hugepage_verdict{kind="oracle",name="/pg"} 0"#),
        "{text}"
    );
    assert!(text.ends_with("# EOF\n"));

    let mut seen = BTreeSet::new();
    let mut current = String::new();
    for line in text.lines().filter(|line| *line != "# EOF") {
        let mut words = line.split(' ');
        match (words.next(), words.next()) {
            (Some("#"), Some("HELP")) => {
                current = words.next().unwrap().to_owned();
                assert!(seen.insert(current.clone()), "{current} twice");
                assert!(
                    current.starts_with("hugepage_") && line.ends_with('.'),
                    "{line}"
                );
            }
            (Some("#"), Some("TYPE")) => assert_eq!(line, format!("# TYPE {current} gauge")),
            (Some(series), _) => {
                assert_eq!(series.split('{').next(), Some(current.as_str()), "{line}")
            }
            _ => panic!("{line}"),
        }
    }
}

/// Whatever is found has one of the names that have a series, and landings and causes too.
#[test]
fn every_text_has_a_series() {
    for landing in Landing::ALL {
        let status = Server {
            landing: Some(landing),
            ..Server::default()
        }
        .status();
        assert!(
            status
                .findings
                .iter()
                .all(|(_, finding)| Finding::NAMES.contains(&finding.name()))
        );
        let text = host(vec![instance("/pg", status.clone())]);
        for (metric, holds) in [
            ("hugepage_landed_in", Some(landing.to_string())),
            (
                "hugepage_restart_outlook",
                Some(status.forecast.outlook.to_string()),
            ),
            (
                "hugepage_fallback_cause",
                status.cause.map(|cause| cause.to_string()),
            ),
        ] {
            let ones: Vec<_> = text
                .lines()
                .filter(|line| line.starts_with(&format!("{metric}{{")) && line.ends_with(" 1"))
                .collect();
            assert_eq!(
                ones.len(),
                usize::from(holds.is_some()),
                "{landing}: {ones:?}"
            );
            assert!(
                holds.is_none_or(|text| ones[0].contains(&format!("=\"{text}\"}}"))),
                "{landing}: {ones:?}"
            );
        }
    }
}
