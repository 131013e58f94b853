//! The configuration that a start would read: its files, the postmaster's arguments, and the few settings that the size
//! of shared memory does not show. The server's program decides whether it is valid.

use std::ffi::CString;
use std::path::PathBuf;

use hugepage_core::model::HugePages;
use hugepage_core::read::instance_files::limit;
use hugepage_core::read::postgresql_conf::Configuration;
use hugepage_core::read::{InstanceFiles, Root, postmaster_opts};
use hugepage_core::{Notes, PageSize};
use pgrx::pg_sys;

use crate::server;

/// The configuration on disk now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OnDisk {
    /// The arguments of the postmaster.
    pub arguments: Vec<String>,
    /// The settings of the files, then those of the arguments.
    configuration: Configuration,
}

impl OnDisk {
    /// Reads it in the server's order: the main file, the file of ALTER SYSTEM, the command line.
    pub fn read(root: &Root, notes: &mut Notes) -> Self {
        let data = server::data_directory();
        let mut configuration = Configuration::default();
        // This is the server's own process, and the kernel holds it to what the server may read.
        let files = InstanceFiles::own(root);
        configuration.add(&files, &server::config_file(), notes);
        configuration.add(&files, &data.join("postgresql.auto.conf"), notes);
        let opts = data.join("postmaster.opts");
        let text = notes.keep(files.read_text(&opts.to_string_lossy(), limit::POSTMASTER_OPTS)).unwrap_or_default();
        let arguments = postmaster_opts::arguments(&text);
        configuration.settings.extend(postmaster_opts::settings(&arguments));
        Self { arguments, configuration }
    }

    /// The files and directories that it was read from, without `postmaster.opts`, which every start rewrites.
    pub fn sources(&self) -> &[PathBuf] {
        &self.configuration.sources
    }

    /// `huge_pages`, its default where the value is not valid.
    pub fn huge_pages(&self) -> HugePages {
        self.configuration.get("huge_pages").and_then(HugePages::parse).unwrap_or(HugePages::Try)
    }

    /// `huge_page_size`; `None` for 0, the kernel's default size.
    pub fn huge_page_size(&self) -> Option<PageSize> {
        let kib = self.integer("huge_page_size", pg_sys::GUC_UNIT_KB)?;
        PageSize::from_kib(u64::try_from(kib).ok()?)
    }

    /// Whether `shared_memory_type` is `sysv`.
    pub fn sysv(&self) -> bool {
        self.configuration.get("shared_memory_type").is_some_and(|value| value.eq_ignore_ascii_case("sysv"))
    }

    /// `shared_buffers`, in blocks.
    pub fn shared_buffers(&self) -> i32 {
        self.integer("shared_buffers", pg_sys::GUC_UNIT_BLOCKS).unwrap_or(16384)
    }

    /// `max_connections`.
    pub fn max_connections(&self) -> i32 {
        self.integer("max_connections", 0).unwrap_or(100)
    }

    /// A number with its unit, parsed by the server's function.
    fn integer(&self, name: &str, unit: u32) -> Option<i32> {
        let value = CString::new(self.configuration.get(name)?).ok()?;
        let mut number = 0;
        let unit = i32::try_from(unit).ok()?;
        // SAFETY: the text ends in a zero byte, the number is a local variable, and the hint may be null.
        #[allow(unsafe_code)]
        let is_valid = unsafe { pg_sys::parse_int(value.as_ptr(), &mut number, unit, std::ptr::null_mut()) };
        is_valid.then_some(number)
    }
}
