//! postgresql.conf, which may include itself, and postmaster.opts.
#![no_main]

use std::path::Path;

use hugepage_fuzz::with_files;
use hugepage_kernel::postgresql::postgresql_conf::Configuration;
use hugepage_kernel::postgresql::postmaster_opts;
use hugepage_kernel::{InstanceFiles, Notes};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = postmaster_opts::settings(&postmaster_opts::arguments(&String::from_utf8_lossy(bytes)));
    with_files(&[("/etc/postgresql.conf", bytes)], |root| {
        let mut configuration = Configuration::default();
        configuration.add(&InstanceFiles::own(root), Path::new("/etc/postgresql.conf"), &mut Notes::default());
        let _ = configuration.get("huge_pages");
    });
});
