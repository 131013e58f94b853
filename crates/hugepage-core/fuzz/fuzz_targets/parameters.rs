//! init.ora and spfile.
#![no_main]

use hugepage_core::read::oracle::Parameters;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    for parameters in [Parameters::parse(&text, "TEST1"), Parameters::parse_bytes(bytes, "TEST1")] {
        let _ = (parameters.sga_max_size(), parameters.is_automatic_memory(), parameters.flag("pre_page_sga"));
    }
});
