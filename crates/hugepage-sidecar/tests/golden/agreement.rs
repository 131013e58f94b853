//! Over random hosts: every face gives the same answer, and no command asks for less than is needed, in use or there.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use serde_json::Value;

use crate::builder::{KERNELS, LoggedStart, MIB, OracleHost, Running};
use crate::program::run;

const PAGE: u64 = 2 * MIB;
const SIDS: [&str; 3] = ["one", "two", "three"];

/// An instance: pages of its SGA, how many of them are huge, and use_large_pages.
#[derive(Clone, Debug)]
struct Database {
    pages: u64,
    huge: u64,
    setting: &'static str,
}

#[derive(Clone, Debug)]
struct RandomHost {
    kernel: usize,
    memory_gib: u64,
    spare: u64,
    at_boot: Option<u64>,
    databases: Vec<Database>,
}

fn hosts() -> impl Strategy<Value = RandomHost> {
    let settings = prop_oneof![
        Just("TRUE"),
        Just("FALSE"),
        Just("ONLY"),
        Just("AUTO"),
        Just("AUTO_ONLY")
    ];
    let databases = (100u64..9000, 0u64..3, settings).prop_map(|(pages, huge, setting)| {
        let huge = [0, pages / 2, pages][usize::try_from(huge).unwrap()];
        Database {
            pages,
            huge: if setting == "FALSE" { 0 } else { huge },
            setting,
        }
    });
    let spare = prop_oneof![Just(0u64), 1u64..300, 1000u64..9000];
    (
        0..KERNELS.len(),
        prop_oneof![32u64..64, 32u64..600],
        spare,
        proptest::option::of(0u64..20_000),
        prop::collection::vec(databases, 0..=3),
    )
        .prop_map(
            |(kernel, memory_gib, spare, at_boot, databases)| RandomHost {
                kernel,
                memory_gib,
                spare,
                at_boot,
                databases,
            },
        )
}

impl RandomHost {
    fn in_use(&self) -> u64 {
        self.databases.iter().map(|database| database.huge).sum()
    }

    /// What all need that ask for huge pages.
    fn needed(&self) -> u64 {
        self.databases
            .iter()
            .filter(|database| database.setting != "FALSE")
            .map(|database| database.pages)
            .sum()
    }

    fn build(&self) -> OracleHost {
        let nr = self.in_use() + self.spare;
        let host = OracleHost::new(KERNELS[self.kernel], self.memory_gib, (nr, self.spare));
        host.write("/proc/cmdline", "BOOT_IMAGE=/vmlinuz quiet\n");
        host.write("/run/systemd/system/own.conf", "");
        host.write("/etc/hugepage-sidecar/next-boot", "");
        if let Some(pages) = self.at_boot {
            host.write(
                "/etc/sysctl.d/90-hugepages.conf",
                &format!("vm.nr_hugepages = {pages}\n"),
            );
        }
        for (index, (database, sid)) in self.databases.iter().zip(SIDS).enumerate() {
            let pid = 4000 + 10 * u32::try_from(index).unwrap();
            let parts = [
                (database.huge * PAGE, 2048),
                ((database.pages - database.huge) * PAGE, 4),
            ];
            let segments = parts.into_iter().filter(|(size, _)| *size > 0).collect();
            host.run(&Running {
                pid,
                sid,
                segments,
                ..Running::default()
            });
            let parameters = vec![format!("use_large_pages = \"{}\"", database.setting)];
            host.log(
                sid,
                sid,
                &host.start(&LoggedStart {
                    pmon: Some(pid),
                    parameters,
                    ..LoggedStart::default()
                }),
            );
        }
        host
    }
}

/// The values of `name` by the labels behind it.
fn metrics<'a>(text: &'a str, name: &str) -> BTreeMap<&'a str, &'a str> {
    let lines = text
        .lines()
        .filter_map(|line| line.strip_prefix(name)?.strip_prefix('{')?.split_once("} "));
    lines.collect()
}

/// The pages of 2 MB that commands in `text` set.
fn commanded(text: &str) -> BTreeSet<u64> {
    // Tables and sentences break lines within a command.
    let text = text
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .replace("vm.nr_hugepages = ", "vm.nr_hugepages=");
    let numbers = text.split("vm.nr_hugepages=").skip(1);
    numbers
        .filter_map(|rest| {
            rest.split(|c: char| !c.is_ascii_digit())
                .next()?
                .parse()
                .ok()
        })
        .collect()
}

fn check(random: &RandomHost) -> Result<(), TestCaseError> {
    let host = random.build();
    let of = |call: &[&str]| run(&host.path("/"), call);
    let json = |call: &[&str]| -> Value { serde_json::from_str(&of(call).stdout).unwrap() };
    let (status, size) = (
        json(&["status", "--format", "json"]),
        json(&["size", "--format", "json"]),
    );
    let (table, sizes, metrics_text) = (
        of(&["status"]).stdout,
        of(&["size"]).stdout,
        of(&["metrics"]).stdout,
    );
    let (line, report) = (of(&["check"]), of(&["report", "--html", "-"]).stdout);
    let records = of(&["oracle", "print", "hp_instance.dat"]).stdout;
    let levels = ["ok", "notice", "warning", "critical"];
    let verdicts = metrics(&metrics_text, "hugepage_verdict");
    for instance in status["instances"].as_array().unwrap() {
        let (name, verdict) = (
            instance["name"].as_str().unwrap(),
            instance["verdict"].as_str().unwrap(),
        );
        let labels = format!("kind=\"oracle\",name=\"{name}\"");
        prop_assert_eq!(
            levels[verdicts[&*labels].parse::<usize>().unwrap()],
            verdict
        );
        let record: Vec<_> = records
            .lines()
            .map(|row| row.split('|').collect::<Vec<_>>())
            .find(|row| row[5] == name)
            .unwrap();
        let columns: Vec<_> = records.lines().next().unwrap().split('|').collect();
        let of_record =
            |column: &str| record[columns.iter().position(|one| *one == column).unwrap()];
        prop_assert_eq!(of_record("verdict"), verdict);
        prop_assert_eq!(of_record("landed_in"), &instance["landed_in"]);
        prop_assert_eq!(of_record("restart_outlook"), &instance["restart_outlook"]);
        prop_assert_eq!(
            of_record("cause"),
            instance["cause"].as_str().unwrap_or_default()
        );
        let (whole, recorded) = (instance["message"].as_str().unwrap(), of_record("message"));
        match recorded.strip_suffix(" ...") {
            // Its column has 300 bytes, and a longer sentence ends between two words (docs/architecture.md).
            Some(cut) => {
                let rest = whole.strip_prefix(cut).unwrap_or_default();
                let next = rest.trim_start().split(' ').next().unwrap_or_default();
                let is_between = rest.starts_with(' ')
                    && whole.len() > 300
                    && recorded.len() + 1 + next.len() > 300;
                prop_assert!(is_between, "{recorded}\n{whole}");
            }
            None => prop_assert_eq!(recorded, whole),
        }
        prop_assert!(
            verdict != "warning" && verdict != "critical" || instance["hint"].is_string(),
            "{instance}"
        );
        prop_assert!(verdict != "ok" || instance["hint"].is_null(), "{instance}");
        // What the next boot loses is told where it is, and not where nothing can be lost.
        let finding = metrics(&metrics_text, "hugepage_finding_severity");
        let boot_loses = ["boot_loses", "boot_unknown"]
            .iter()
            .any(|name| finding[&*format!("{labels},finding=\"{name}\"")] != "0");
        let is_kept =
            instance["landed_in"] == "hugetlb" && instance["restart_outlook"] == "hugetlb";
        if is_kept {
            // A boot with a line that the memory does not hold beside programs is unknown.
            let is_held = |pages: &u64| pages * PAGE < (random.memory_gib << 30) / 100 * 95;
            let at_boot = random.at_boot.filter(is_held).unwrap_or(0);
            let all_fit = instance["recommended_nr_hugepages"]
                .as_u64()
                .is_none_or(|of| of >= random.needed());
            match all_fit {
                true => prop_assert_eq!(boot_loses, at_boot < random.needed(), "{}", instance),
                // One that does not fit is to take nothing from those that do.
                false => prop_assert!(
                    boot_loses || at_boot >= instance["pages_held"].as_u64().unwrap(),
                    "{instance}"
                ),
            }
        } else {
            prop_assert!(
                !boot_loses || instance["landed_in"] == "hugetlb",
                "{instance}"
            );
        }
    }
    // One number in every face.
    let recommended = &status["pools"][0]["recommended_nr_hugepages"];
    prop_assert_eq!(recommended, &size["pools"][0]["recommended_nr_hugepages"]);
    for value in metrics(&metrics_text, "hugepage_recommended_nr_hugepages").values() {
        prop_assert_eq!(recommended.as_u64(), value.parse().ok());
    }
    // One sentence in both, and the exit status of that verdict.
    let message = status["message"].as_str().unwrap();
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in message
        .split('"')
        .map(|part| part.trim_start_matches([',', '.', ';']))
    {
        prop_assert!(words(&table).contains(&words(part)), "{message}\n{table}");
    }
    let exit = match status["verdict"].as_str().unwrap() {
        "critical" => 2,
        "warning" => 1,
        "unknown" => 3,
        _ => 0,
    };
    prop_assert_eq!(line.exit(), exit, "{}", &line.stdout);
    // No command takes away what is there, in use, or needed.
    let nr = random.in_use() + random.spare;
    for (face, text) in [
        ("status", &table),
        ("size", &sizes),
        ("check", &line.stdout),
        ("report", &report),
    ] {
        for pages in commanded(text) {
            prop_assert!(pages > 0 && pages >= random.in_use(), "{face}: {pages}");
            // All servers are seen here, so that a pool may be called too large.
            prop_assert!(
                pages >= nr || pages >= random.needed(),
                "{face}: {pages} of {nr}"
            );
            // Whoever turns huge pages on needs them too.
            let is_more = random.databases.iter().any(|one| one.setting == "FALSE");
            // And where one is to become smaller, all fit.
            let reduces = words(text).to_lowercase().contains("reduce sga_max_size");
            let is_more = is_more || reduces;
            let is_right = |wanted| pages == wanted || pages < nr || is_more && pages > wanted;
            prop_assert!(
                recommended.as_u64().is_none_or(is_right),
                "{face}: {pages}, not {recommended}"
            );
        }
    }
    Ok(())
}

/// Two that do not fit together.
#[test]
fn every_face_counts_what_fits() {
    let database = |pages, setting| Database {
        pages,
        huge: 0,
        setting,
    };
    let databases = vec![database(5574, "TRUE"), database(4911, "ONLY")];
    check(&RandomHost {
        kernel: 0,
        memory_gib: 32,
        spare: 0,
        at_boot: None,
        databases,
    })
    .unwrap();
}

/// A pool that is larger than what fits needs, and one at boot between both.
#[test]
fn every_face_knows_a_boot_for_what_fits() {
    let database = |pages, huge, setting| Database {
        pages,
        huge,
        setting,
    };
    let databases = vec![
        database(1152, 0, "TRUE"),
        database(3710, 3710, "ONLY"),
        database(8736, 0, "TRUE"),
    ];
    check(&RandomHost {
        kernel: 0,
        memory_gib: 32,
        spare: 6528,
        at_boot: Some(8128),
        databases,
    })
    .unwrap();
}

/// A sentence that is longer than its column in Oracle.
#[test]
fn every_face_has_a_long_sentence() {
    let database = |pages, huge, setting| Database {
        pages,
        huge,
        setting,
    };
    let databases = vec![database(8014, 4007, "ONLY"), database(3865, 1932, "TRUE")];
    check(&RandomHost {
        kernel: 0,
        memory_gib: 32,
        spare: 0,
        at_boot: None,
        databases,
    })
    .unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn every_face_gives_one_answer(random in hosts()) {
        check(&random)?;
    }
}
