//! The rows and the sentences of `hugepage-sidecar benefit`.

use std::time::Duration;

use hugepage_assess::assessment::sessions::HUGE_SIZES;
use hugepage_assess::model::Landing;
use hugepage_kernel::{Bytes, PageSize};

use crate::Benefit;
use crate::benefit_value::{BenefitValue, Confidence};

/// A row, the same for SQL and for the sidecar.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct BenefitRow {
    /// The name of the figure, such as `fault_cpu`.
    pub figure: &'static str,
    /// The unit of the three values; `None` for the summary.
    pub unit: Option<&'static str>,
    /// The value in base pages; `None` if unknown.
    pub base: Option<f64>,
    /// The value in pages of 2 MB; `None` if unknown, or if the kernel has no such pages.
    pub huge_2mb: Option<f64>,
    /// The value in pages of 1 GB.
    pub huge_1gb: Option<f64>,
    /// The way in which the value for base pages was found.
    pub confidence: Confidence,
    /// The meaning of the figure, in a sentence or two.
    pub detail: String,
}

/// The unit of shares of one CPU.
pub const CPU: &str = "CPU seconds per second";
const PER_SESSION: &str = "CPU seconds per session";
/// The unit of memory.
pub const BYTES: &str = "bytes";

/// All rows, the summary first; the summary alone where huge pages have nothing to save.
pub fn rows(benefit: &Benefit) -> Vec<BenefitRow> {
    let summary_confidence = match benefit.is_worth_it {
        Some(_) => Confidence::Modelled,
        None => Confidence::Unknown,
    };
    let summary = BenefitRow {
        figure: "summary",
        unit: None,
        base: None,
        huge_2mb: None,
        huge_1gb: None,
        confidence: summary_confidence,
        detail: summary(benefit),
    };
    if benefit.landing == Landing::Hugetlb {
        return vec![summary];
    }
    let faults = match benefit.misses_short_sessions {
        true => "Page faults on shared memory, without those of sessions that began and ended within the interval.",
        false => "Page faults on shared memory within the interval.",
    };
    let freed = match benefit.frees_at_least {
        true => {
            "Memory that the page tables would give back; a lower bound, because those for other memory could not be counted."
        }
        false => "Memory that the page tables would give back.",
    };
    let row = |figure, unit, values: &BenefitValue, detail: &str| BenefitRow {
        figure,
        unit: Some(unit),
        base: values.base.map(three_digits),
        huge_2mb: values.huge[0].map(three_digits),
        huge_1gb: values.huge[1].map(three_digits),
        confidence: values.confidence,
        detail: detail.to_owned(),
    };
    vec![
        summary,
        row("fault_cpu", CPU, &benefit.fault_cpu, faults),
        row(
            "warm_up",
            PER_SESSION,
            &benefit.warm_up,
            "Page faults until a new session has mapped the shared memory that the median session has.",
        ),
        row(
            "fork",
            PER_SESSION,
            &benefit.fork,
            "Copying page tables of shared memory when a session begins: the kernel copies none, whatever the page size.",
        ),
        row("exit", PER_SESSION, &benefit.exit, "Removal of that memory from the page tables when the session ends."),
        row("page_tables", BYTES, &benefit.page_tables, "Page tables of all processes of the server."),
        row("page_tables_freed", BYTES, &benefit.page_tables_freed, freed),
        row(
            "page_tables_per_session",
            BYTES,
            &benefit.page_tables_per_session,
            "Page tables for shared memory that another median session adds.",
        ),
        row(
            "page_tables_at_max_connections",
            BYTES,
            &benefit.page_tables_at_max_connections,
            "Page tables if max_connections sessions have touched all of shared memory.",
        ),
    ]
}

/// The value with three significant digits: no estimate is better.
pub fn three_digits(value: f64) -> f64 {
    format!("{value:.2e}").parse().unwrap_or(value)
}

/// The savings of huge pages as a sentence, or that a restart is not worth it.
pub fn summary(benefit: &Benefit) -> String {
    match benefit.landing {
        Landing::Base => {}
        Landing::Hugetlb => {
            let size = benefit.page_size.map_or(String::new(), |size| format!(" of {size}"));
            return format!("Shared memory is in huge pages{size} already: there is nothing to gain.");
        }
        Landing::Thp | Landing::PartialThp | Landing::Mixed => {
            return format!(
                "Shared memory is in {} pages: what huge pages of a pool would save could not be determined.",
                benefit.landing
            );
        }
        Landing::Unknown => return "Where shared memory is could not be determined.".to_owned(),
    }
    let now = in_base_pages(benefit);
    let first = (0..HUGE_SIZES.len()).find(|&at| benefit.page_tables.huge[at].is_some());
    let Some((size, at)) = first.and_then(|at| Some((PageSize::new(HUGE_SIZES[at])?, at))) else {
        return format!("{now} What huge pages would save could not be determined.");
    };
    let there = in_huge_pages(benefit, size, at);
    match benefit.is_worth_it {
        Some(false) => format!("Not worth a restart for page faults and page tables: {} {there}", lower(&now)),
        _ => format!("{now} {there}"),
    }
}

fn in_base_pages(benefit: &Benefit) -> String {
    let interval = seconds(benefit.elapsed);
    let faults = match benefit.fault_cpu.base {
        Some(share) => format!("took {} of one CPU", percent(share)),
        None => "took an unknown time".to_owned(),
    };
    let warm_up =
        benefit.warm_up.base.map(|time| format!("; a new session needs {} to become warm", milliseconds(time)));
    format!("In the last {interval} page faults on shared memory {faults}{}.", warm_up.unwrap_or_default())
}

fn in_huge_pages(benefit: &Benefit, size: PageSize, at: usize) -> String {
    let faults = benefit.fault_cpu.huge[at].map(|share| format!("at most {}", percent(share)));
    let warm_up = benefit.warm_up.huge[at].map(milliseconds);
    let times: Vec<_> = faults.into_iter().chain(warm_up).collect();
    let times = if times.is_empty() { String::new() } else { format!("{}; ", times.join(" and ")) };
    let tables = match (benefit.page_tables.base, benefit.page_tables.huge[at]) {
        (Some(now), Some(then)) => format!("{} of page tables would be {}", bytes(now), bytes(then)),
        _ => "page tables are unknown".to_owned(),
    };
    format!("In pages of {size}: {times}{tables}.")
}

fn lower(sentence: &str) -> String {
    sentence.replacen("In ", "in ", 1)
}

fn seconds(time: Duration) -> String {
    let text = format!("{:.1}", time.as_secs_f64());
    format!("{} s", text.strip_suffix(".0").unwrap_or(&text))
}

/// A share of one CPU.
fn percent(share: f64) -> String {
    match share * 100.0 {
        0.0 => "0%".to_owned(),
        value if value < 0.01 => "0.01%".to_owned(),
        value if value < 1.0 => format!("{value:.2}%"),
        value if value < 10.0 => format!("{value:.1}%"),
        value => format!("{value:.0}%"),
    }
}

fn milliseconds(time: f64) -> String {
    match time * 1000.0 {
        value if value < 0.1 => "under 0.1 ms".to_owned(),
        value if value < 10.0 => format!("{value:.1} ms"),
        value => format!("{value:.0} ms"),
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn bytes(value: f64) -> String {
    Bytes(value.max(0.0).round() as u64).to_string()
}
