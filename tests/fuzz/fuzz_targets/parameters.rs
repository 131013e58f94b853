//! init.ora and spfile.
#![no_main]

use hugepage_fuzz::with_files;
use hugepage_kernel::{InstanceFiles, Notes};
use hugepage_oracle::readers::parameters;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let found = with_files(&[("/init.ora", bytes)], |root| {
        parameters::read(&InstanceFiles::own(root), "/init.ora", "TEST1", &mut Notes::default())
    });
    let _ = (parameters::sga_max_size(&found), parameters::memory_target(&found));
});
