//! init.ora and spfile.
#![no_main]

use hugepage_oracle::readers::Parameters;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let of_one = [Parameters::parse(&text, "TEST1"), Parameters::parse_bytes(bytes, "TEST1")];
    for parameters in of_one.into_iter().chain(Parameters::of_each_instance(bytes)) {
        let _ = (parameters.sga_max_size(), parameters.is_automatic_memory(), parameters.flag("pre_page_sga"));
    }
});
