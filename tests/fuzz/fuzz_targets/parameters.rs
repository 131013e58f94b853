//! init.ora and spfile.
#![no_main]

use hugepage_fuzz::with_files;
use hugepage_kernel::{InstanceFiles, Notes};
use hugepage_oracle::readers::Parameters;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let read = with_files(&[("/init.ora", bytes)], |root| {
        Parameters::read(&InstanceFiles::own(root), "/init.ora", "TEST1", &mut Notes::default())
    });
    for parameters in [Parameters::parse(&text, "TEST1"), read] {
        let _ = (parameters.sga_max_size(), parameters.is_automatic_memory());
    }
});
