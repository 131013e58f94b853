//! What Oracle's manuals ask for, where a host or an instance has something else.

use hugepage_assess::advice::Recommendation;
use hugepage_assess::advice::recommendation::{Area, Effect};
use hugepage_assess::assessment::Severity;
use hugepage_assess::model::{Product, Requested, UseLargePages};
use hugepage_facts::Landing;
use hugepage_kernel::KernelRelease;

/// `enabled` of transparent huge pages: never, and with UEK 7 and later madvise (Database Installation Guide for Linux, 23ai, "Restrictions
/// for HugePages and Transparent HugePages Configurations"). `now`: its value; `None` if it is not always, which alone
/// concerns Oracle's memory.
pub fn transparent_hugepage(kernel: &str, now: &str) -> Option<Recommendation> {
    let is_before_7 = KernelRelease::parse(kernel)?.is_before(5, 15, 0);
    let wanted = if kernel.contains("uek") && !is_before_7 {
        "madvise"
    } else {
        "never"
    };
    let reason = format!(
        "Transparent huge pages are \"{now}\"; Oracle asks for \"{wanted}\" (Database Installation Guide for Linux, \"Restrictions for \
         HugePages and Transparent HugePages Configurations\"). To keep it, put transparent_hugepage={wanted} on the kernel's command line."
    );
    (now == "always").then(|| Recommendation {
        current: Some(now.to_owned()),
        recommended: Some(wanted.to_owned()),
        command: Some(format!(
            "echo {wanted} > /sys/kernel/mm/transparent_hugepage/enabled"
        )),
        ..Recommendation::new(
            Severity::Notice,
            Area::Kernel,
            "transparent_hugepage/enabled",
            reason,
        )
    })
}

/// `use_large_pages` of an instance with a pool that is made at boot: ONLY in place of TRUE, with which a part of its SGA is in 4 kB pages
/// (Database Reference, USE_LARGE_PAGES). `None` if it has something else, or if that is unknown.
pub fn use_large_pages(landed: Landing, requested: &Requested) -> Option<Recommendation> {
    let is_true = matches!(
        requested.product,
        Product::Oracle {
            use_large_pages: Some(UseLargePages::True),
            ..
        }
    );
    (is_true && landed == Landing::Mixed).then(|| Recommendation {
        current: Some("TRUE".to_owned()),
        recommended: Some("ONLY".to_owned()),
        command: Some("ALTER SYSTEM SET use_large_pages = ONLY SCOPE = SPFILE".to_owned()),
        takes_effect: Effect::ServerRestart,
        ..Recommendation::new(
            Severity::Notice,
            Area::Oracle,
            "use_large_pages",
            "With TRUE a start says nothing if it gets a part of its huge pages; with ONLY it fails instead (ORA-27137). Set it once the pool \
             has enough pages, which it gets at boot.",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::requested_by;

    #[test]
    fn what_each_kernel_is_to_have() {
        for (kernel, now, wanted) in [
            ("4.18.0-553.el8_10.x86_64", "always", Some("never")),
            ("4.18.0-553.el8_10.x86_64", "madvise", None),
            ("4.18.0-553.el8_10.x86_64", "never", None),
            ("5.14.0-427.el9.x86_64", "always", Some("never")),
            ("6.12.0-124.el10.x86_64", "always", Some("never")),
            ("5.4.17-2136.el8uek.x86_64", "always", Some("never")),
            ("5.15.0-309.el9uek.x86_64", "always", Some("madvise")),
            ("5.15.0-309.el9uek.x86_64", "never", None),
            ("6.12.0-1.23.3.2.el9uek.x86_64", "madvise", None),
            ("unknown", "always", None),
        ] {
            let found = transparent_hugepage(kernel, now);
            let found = found.and_then(|row| row.recommended);
            assert_eq!(found.as_deref(), wanted, "{kernel} {now}");
        }
    }
    #[test]
    fn only_is_advised_where_true_mixes() {
        for (setting, landed, is_advised) in [
            (Some("TRUE"), Landing::Mixed, true),
            (None, Landing::Mixed, false),
            (Some("TRUE"), Landing::Hugetlb, false),
            (Some("TRUE"), Landing::Base, false),
            (Some("ONLY"), Landing::Mixed, false),
            (Some("AUTO"), Landing::Mixed, false),
        ] {
            let requested = requested_by(setting, None, false, None);
            let found = use_large_pages(landed, &requested);
            assert_eq!(found.is_some(), is_advised, "{setting:?} {landed}");
        }
    }
}
