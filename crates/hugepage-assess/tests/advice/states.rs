//! All that is said of many states of a server, each with what differs from a server that is well. `states.txt` has the words;
//! `SNAPSHOTS=overwrite cargo test -p hugepage-assess --test advice` writes it anew.

mod crashes;
mod limits;
mod oracle;
mod pools;

use std::fmt::Write as _;

use hugepage_assess::advice::events::{LogMessage, allocated, threatened};
use hugepage_assess::advice::plan::rows;
use hugepage_assess::advice::{findings, message};
use hugepage_assess::assessment::Status;
use hugepage_assess::model::{Facts, Product};
use hugepage_kernel::Pages;
use snapbox::assert::DEFAULT_ACTION_ENV;
use snapbox::data::DataFormat;
use snapbox::{Assert, Data};

use super::{AdviceContext, Host, recommendations};

/// A state: its name, the host, and what else is different.
struct State {
    name: &'static str,
    host: Host,
    change: fn(&mut Facts),
}

/// A state that a [`Host`] has words for.
const fn of_host(name: &'static str, host: Host) -> State {
    State {
        name,
        host,
        change: |_| {},
    }
}

/// A state of the host's facts after a change.
const fn changed(name: &'static str, host: Host, change: fn(&mut Facts)) -> State {
    State { name, host, change }
}

impl State {
    fn context(&self) -> AdviceContext {
        let mut context = self.host.context();
        let mut facts = context.status.facts.clone();
        (self.change)(&mut facts);
        context.status = Status::assess(facts);
        context
    }

    /// The lines of this state.
    fn text(&self) -> Result<String, std::fmt::Error> {
        let context = self.context();
        let status = &context.status;
        let number = |pages: Option<Pages>| pages.map_or("-".to_owned(), |pages| pages.to_string());
        let mut text = format!("== {}\n", self.name);
        writeln!(
            text,
            "outlook {}, crash {}, cause {}; {} needed, {} missing, {} to land, {} recommended",
            status.forecast.outlook,
            status
                .crash_outlook()
                .map_or("-".to_owned(), |outlook| outlook.to_string()),
            status
                .cause
                .map_or("-".to_owned(), |cause| cause.to_string()),
            number(status.crash.needed),
            number(status.missing),
            number(status.to_land),
            number(status.recommended),
        )?;
        for note in status.notes_on_outlook() {
            writeln!(text, "note: {note}")?;
        }
        let found = findings(status);
        if found.is_empty() {
            writeln!(text, "ok: {}", message(status))?;
        }
        for found in &found {
            writeln!(text, "{} {}: {}", found.severity, found.name, found.message)?;
            writeln!(text, "    {}", found.hint.as_deref().unwrap_or("-"))?;
        }
        let mut log = |name: &str, entry: LogMessage| {
            // What a finding has as its hint is not said again.
            let is_known = found.iter().any(|found| found.hint == entry.hint);
            let hint = entry
                .hint
                .filter(|_| !is_known)
                .map_or(String::new(), |hint| format!("\n    {hint}"));
            let detail = entry.detail.unwrap_or_default();
            writeln!(
                text,
                "log {name}: {}\n    {}{hint}",
                entry.message,
                detail.lines().last().unwrap_or_default()
            )
        };
        let entry = allocated(status, None, &[]);
        log(if entry.is_bad { "warning" } else { "ok" }, entry)?;
        for threat in status.warnings() {
            log(&threat.to_string(), threatened(status, threat))?;
        }
        let rows = match status.facts.requested.product {
            Product::PostgreSql => recommendations(&context),
            Product::Oracle { .. } => rows::of_findings(status),
        };
        for row in rows {
            let value = |value: Option<String>| value.unwrap_or("-".to_owned());
            let saves = row
                .saving
                .map_or(String::new(), |saves| format!(", saves {saves}"));
            let (from, to) = (value(row.current), value(row.recommended));
            writeln!(
                text,
                "{} {} {}: {from} -> {to} ({}{saves})",
                row.severity, row.area, row.setting, row.takes_effect
            )?;
            // What a finding leads to has its message as the reason.
            if !found
                .iter()
                .any(|found| row.reason.starts_with(found.message.trim_end_matches('.')))
            {
                writeln!(text, "    {}", row.reason)?;
            }
            writeln!(text, "    {}", row.command.as_deref().unwrap_or("-"))?;
        }
        Ok(text)
    }
}

#[test]
fn words_of_all_states() {
    let states = [
        pools::states(),
        limits::states(),
        crashes::states(),
        oracle::states(),
    ];
    let text: Vec<_> = states
        .iter()
        .flatten()
        .map(|state| state.text().unwrap())
        .collect();
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/advice/states/states.txt"
    );
    let known = Data::read_from(path.as_ref(), Some(DataFormat::Text));
    Assert::new()
        .action_env(DEFAULT_ACTION_ENV)
        .eq(text.join("\n"), known);
}
