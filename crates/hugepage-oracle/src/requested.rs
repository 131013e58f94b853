//! What an Oracle instance asks for by its parameters.

use hugepage_assess::model::{Product, Requested, UseLargePages};
use hugepage_kernel::Bytes;

use crate::readers::{LastStart, OracleKind, Parameters};

/// What a start with `use_large_pages` = `setting` asks for; TRUE is assumed if it is `None`.
pub fn requested_by(
    setting: Option<&str>,
    version: Option<&str>,
    memory_target: bool,
    sga: Option<Bytes>,
) -> Requested {
    let use_large_pages = setting.and_then(UseLargePages::parse);
    let huge_pages = use_large_pages.unwrap_or(UseLargePages::True).huge_pages();
    // 11.2.0.2 took huge pages for all of the SGA or for nothing; earlier releases had no such parameter.
    let may_mix = !version.is_some_and(|version| version.starts_with("11.2.0.2"));
    Requested {
        product: Product::Oracle { memory_target, may_mix, use_large_pages, is_asm: false },
        huge_pages,
        huge_page_size: None,
        sysv: false,
        shared_buffers: sga.unwrap_or_default(),
        io_uring: false,
    }
}

/// The settings of the next start by its parameters; where they do not have `use_large_pages`, that of the running one
/// remains, because its default differs between releases and on Exadata.
pub fn requested_next(next: &Parameters, running: &Requested, version: Option<&str>) -> Requested {
    let mut requested =
        requested_by(next.get("use_large_pages"), version, next.is_automatic_memory(), next.sga_max_size());
    if next.get("use_large_pages").is_none() {
        requested.huge_pages = running.huge_pages;
        requested.product = running.product.with_memory_target(next.is_automatic_memory());
    }
    requested
}

/// What the start was asked for, by its log, else by the parameter file. `automatic`: whether the SGA was seen in files of /dev/shm.
pub fn requested_at_start(
    start: Option<&LastStart>,
    on_disk: Option<&Parameters>,
    automatic: Option<bool>,
    kind: OracleKind,
) -> Requested {
    let of_parameters = start.and_then(|start| start.parameters.get("use_large_pages"));
    let of_log = of_parameters.or_else(|| start?.use_large_pages.as_deref());
    // A list of the parameters that were set shows that one is not among them.
    let is_default = start.is_some_and(|start| !start.parameters.is_empty());
    let setting = of_log.or_else(|| if is_default { Some("TRUE") } else { on_disk?.get("use_large_pages") });
    let memory_target = automatic.unwrap_or_else(|| start.is_some_and(|start| start.parameters.is_automatic_memory()));
    let sga = start.and_then(|start| start.parameters.sga_max_size());
    let mut requested = requested_by(setting, start.and_then(|start| start.version.as_deref()), memory_target, sga);
    if let Product::Oracle { is_asm, .. } = &mut requested.product {
        *is_asm = kind == OracleKind::Asm;
    }
    requested
}
