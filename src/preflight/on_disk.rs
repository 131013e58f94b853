//! The configuration that a start would read: its files, the postmaster's arguments, and the few settings of it that
//! the size of shared memory does not tell. Whether it is valid is for the server's program to say.

use std::ffi::CString;
use std::path::PathBuf;

use hugepage_core::assess::HugePages;
use hugepage_core::read::instance_files::limit;
use hugepage_core::read::postgresql_conf::Configuration;
use hugepage_core::read::{InstanceFiles, Root, postmaster_opts};
use hugepage_core::{Notes, PageSize};
use pgrx::pg_sys;

use crate::server;

/// What is on disk now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OnDisk {
    /// The arguments of the postmaster.
    pub arguments: Vec<String>,
    /// The files, with what the arguments set behind them.
    configuration: Configuration,
}

impl OnDisk {
    /// Reads it, in the server's order: the main file, what ALTER SYSTEM wrote, the command line.
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

    /// The files and directories that it was read from, without `postmaster.opts`, which every start writes anew.
    pub fn sources(&self) -> &[PathBuf] {
        &self.configuration.sources
    }

    /// `huge_pages` (guc_tables.c: `huge_pages_options`).
    pub fn huge_pages(&self) -> HugePages {
        match self.configuration.get("huge_pages").unwrap_or_default().to_ascii_lowercase().as_str() {
            "off" | "false" | "no" | "0" => HugePages::Off,
            "on" | "true" | "yes" | "1" => HugePages::On,
            _ => HugePages::Try,
        }
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

    /// A number with its unit, as the server reads it.
    fn integer(&self, name: &str, unit: u32) -> Option<i32> {
        let value = CString::new(self.configuration.get(name)?).ok()?;
        let mut number = 0;
        let unit = i32::try_from(unit).ok()?;
        // SAFETY: the text ends in a zero byte, the number is ours, and a null hint asks for none.
        #[allow(unsafe_code)]
        let understood = unsafe { pg_sys::parse_int(value.as_ptr(), &mut number, unit, std::ptr::null_mut()) };
        understood.then_some(number)
    }
}
