//! Transparent huge pages of private memory, not of shared_buffers.

use crate::advice::context::AdviceContext;
use crate::advice::recommendation::{Area, Recommendation};
use crate::assessment::Severity;

pub fn transparent(context: &AdviceContext) -> Option<Recommendation> {
    let reason = "It does not affect shared_buffers; with always, backends wait while the kernel compacts memory for huge pages \
                  that their private memory rarely fills.";
    (context.thp_enabled.as_deref()? == "always").then(|| Recommendation {
        current: Some("always".to_owned()),
        recommended: Some("madvise".to_owned()),
        command: Some("echo madvise > /sys/kernel/mm/transparent_hugepage/enabled".to_owned()),
        ..Recommendation::new(Severity::Notice, Area::Kernel, "transparent_hugepage/enabled", reason)
    })
}
