//! All settings of the extension.

use pgrx::{GucContext, GucFlags, GucRegistry, GucSetting};

static RESERVE_PERCENT: GucSetting<i32> = GucSetting::<i32>::new(20);

/// `pg_hugepages.reserve_percent`: the hundredths of memory that no recommendation takes from base pages.
pub fn reserve_percent() -> u32 {
    RESERVE_PERCENT.get().unsigned_abs()
}

/// Makes the settings known to the server.
pub fn define() {
    GucRegistry::define_int_guc(
        c"pg_hugepages.reserve_percent",
        c"Percentage of memory that the host keeps for base pages.",
        c"Huge pages are never recommended beyond the rest.",
        &RESERVE_PERCENT,
        0,
        90,
        GucContext::Suset,
        GucFlags::default(),
    );
    reserve_prefix();
}

/// So that a mistyped `pg_hugepages.` setting is reported; last, because it refuses all that come after.
fn reserve_prefix() {
    // SAFETY: called in _PG_init, with a constant string.
    #[allow(unsafe_code)]
    unsafe {
        pgrx::pg_sys::MarkGUCPrefixReserved(c"pg_hugepages".as_ptr());
    }
}
