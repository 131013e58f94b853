//! Advice on Oracle instances and their host.

use hugepage_assess::advice::recommendation::{Area, Effect, Recommendation};
use hugepage_assess::assessment::Severity;

pub mod host;
pub mod instance;
mod stopped;

fn recommendation(
    setting: &str,
    current: Option<String>,
    recommended: Option<String>,
    reason: String,
) -> Recommendation {
    Recommendation {
        severity: Severity::Notice,
        area: Area::Oracle,
        finding: None,
        setting: setting.to_owned(),
        current,
        recommended,
        reason,
        command: None,
        takes_effect: Effect::ServerRestart,
        saving: None,
    }
}
