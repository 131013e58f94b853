//! `hugepage_fix(target)`: the recommended change as a complete script or file, a row for each line.

// pg_extern repeats the function's result type in a closure.
#![allow(clippy::result_large_err)]

use hugepage_assess::advice::fix::{self, NoFix, Target};
use hugepage_kernel::Root;
use hugepage_kernel::notes::Notes;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;

use super::convert::text;
use super::rows;
use crate::{advice, memory};

#[pg_extern(sql = false)]
fn hugepage_fix(target: &str) -> Result<SetOfIterator<'static, String>, ErrorReport> {
    memory::with_reserve(memory::USUAL, || {
        let Ok(wanted) = target.parse::<Target>() else {
            let message = format!("invalid value for argument \"target\": \"{target}\"");
            let detail = format!("It must be one of: {}.", Target::ALL.map(|(name, _)| name).join(", "));
            let code = PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE;
            return Err(ErrorReport::new(code, message, function_name!()).set_detail(detail));
        };
        let root = Root::live();
        let mut notes = Notes::default();
        let context = advice::now(&root, &mut notes);
        let found = fix::text(wanted, &context);
        rows::raise(notes);
        let lines = |found: String| text(found).lines().map(str::to_owned).collect::<Vec<_>>();
        found.map(|found| SetOfIterator::new(lines(found))).map_err(refuse)
    })
}

fn refuse(reason: NoFix) -> ErrorReport {
    let (code, detail, hint) = match &reason {
        NoFix::DoesNotFit(detail, hint) => {
            (PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, Some(detail.clone()), hint.as_deref())
        }
        NoFix::Unknown => (
            PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            None,
            Some("See message and notes of hugepage_status."),
        ),
        NoFix::NotTheDefaultSize(_) => (
            PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
            None,
            Some("The targets systemd, grub and ansible set pools of any page size."),
        ),
    };
    let mut report = ErrorReport::new(code, reason.to_string(), function_name!());
    if let Some(detail) = detail {
        report = report.set_detail(detail);
    }
    match hint {
        Some(hint) => report.set_hint(hint),
        None => report,
    }
}
