//! Advice on Oracle instances and their host.

use hugepage_assess::advice::recommendation::{Area, Effect, Recommendation};
use hugepage_assess::assessment::Severity;

pub mod instance;
mod stopped;

fn recommendation(
    setting: &str,
    current: Option<String>,
    recommended: Option<String>,
    reason: String,
) -> Recommendation {
    Recommendation {
        current,
        recommended,
        takes_effect: Effect::ServerRestart,
        ..Recommendation::new(Severity::Notice, Area::Oracle, setting, reason)
    }
}
