//! The configuration that a start would read: its files, the postmaster's arguments, and the few settings that the size
//! of shared memory does not show. The server's program decides whether it is valid.

use std::ffi::CString;
use std::path::PathBuf;

use hugepage_core::collect::start_options;
use hugepage_core::model::HugePages;
use hugepage_core::read::instance_files::limit;
use hugepage_core::read::pg_control::RecoveryParameters;
use hugepage_core::read::postgresql_conf::Configuration;
use hugepage_core::read::{InstanceFiles, Root, postmaster_opts};
use hugepage_core::{Bytes, Notes, PageSize};
use pgrx::pg_sys;

use crate::{majors, server};

/// The configuration on disk now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OnDisk {
    /// The arguments of the postmaster.
    pub arguments: Vec<String>,
    /// What they set.
    options: Vec<(String, String)>,
    /// What the files set.
    files: Configuration,
}

/// The configuration without options of the command line.
pub struct WithoutOptions {
    /// The rest.
    pub on_disk: OnDisk,
    /// The options that are left out, as `shared_buffers=64MB`.
    pub options: Vec<String>,
}

impl OnDisk {
    /// Reads it in the server's order: the main file, the file of ALTER SYSTEM, the command line.
    pub fn read(root: &Root, notes: &mut Notes) -> Self {
        let data = server::data_directory();
        // This is the server's own process, and the kernel holds it to what the server may read.
        let own = InstanceFiles::own(root);
        let mut files = Configuration::default();
        files.add(&own, &server::config_file(), notes);
        files.add(&own, &data.join("postgresql.auto.conf"), notes);
        let opts = data.join("postmaster.opts");
        let text = notes.keep(own.read_text(&opts.to_string_lossy(), limit::POSTMASTER_OPTS)).unwrap_or_default();
        let arguments = postmaster_opts::arguments(&text);
        let options = postmaster_opts::settings(&arguments);
        Self { arguments, options, files }
    }

    /// The same without the options that set something else than the files do; `None` if there are none.
    pub fn files_alone(&self) -> Option<WithoutOptions> {
        let differs = |name: &str| {
            start_options::has_effect(name)
                && self.get(name).map(str::to_ascii_lowercase) != self.files.get(name).map(str::to_ascii_lowercase)
        };
        let (left_out, options): (Vec<_>, Vec<_>) = self.options.iter().cloned().partition(|(name, _)| differs(name));
        if left_out.is_empty() {
            return None;
        }
        let arguments = postmaster_opts::without(&self.arguments, differs);
        let on_disk = Self { arguments, options, files: self.files.clone() };
        let options = left_out.iter().map(|(name, value)| format!("{name}={value}")).collect();
        Some(WithoutOptions { on_disk, options })
    }

    /// Whether what this asks for is what the running server has, as far as a few settings show.
    pub fn is_as_running(&self) -> bool {
        let running = server::asked();
        let block = Bytes(u64::from(pg_sys::BLCKSZ));
        running.huge_pages == self.huge_pages()
            && running.huge_page_size == self.huge_page_size()
            && running.sysv == self.sysv()
            && running.shared_buffers == Bytes(u64::from(self.shared_buffers().unsigned_abs()) * block.0)
            && server::max_connections() == u64::from(self.max_connections().unsigned_abs())
    }

    /// What a standby's recovery would compare with the primary's settings; `max_connections` replaces that on disk.
    pub fn recovery_parameters(&self, max_connections: Option<i32>) -> RecoveryParameters {
        let number = |name, default| self.integer(name, 0).unwrap_or(default);
        RecoveryParameters {
            hot_standby: self.boolean("hot_standby").unwrap_or(true),
            max_connections: max_connections.unwrap_or_else(|| self.max_connections()),
            max_worker_processes: number("max_worker_processes", 8),
            max_wal_senders: number("max_wal_senders", 10),
            max_prepared_transactions: number("max_prepared_transactions", 0),
            max_locks_per_transaction: number("max_locks_per_transaction", majors::MAX_LOCKS_PER_TRANSACTION),
        }
    }

    /// The value that counts: that of the command line before that of the files.
    fn get(&self, name: &str) -> Option<&str> {
        let option = self.options.iter().rev().find(|(found, _)| found == name);
        option.map(|(_, value)| value.as_str()).or_else(|| self.files.get(name))
    }

    /// The files and directories that it was read from, without `postmaster.opts`, which every start rewrites.
    pub fn sources(&self) -> &[PathBuf] {
        &self.files.sources
    }

    /// `huge_pages`, its default where the value is not valid.
    pub fn huge_pages(&self) -> HugePages {
        self.get("huge_pages").and_then(HugePages::parse).unwrap_or(HugePages::Try)
    }

    /// `huge_page_size`; `None` for 0, the kernel's default size.
    pub fn huge_page_size(&self) -> Option<PageSize> {
        let kib = self.integer("huge_page_size", pg_sys::GUC_UNIT_KB)?;
        PageSize::from_kib(u64::try_from(kib).ok()?)
    }

    /// Whether `shared_memory_type` is `sysv`.
    pub fn sysv(&self) -> bool {
        self.get("shared_memory_type").is_some_and(|value| value.eq_ignore_ascii_case("sysv"))
    }

    /// `shared_buffers`, in blocks.
    pub fn shared_buffers(&self) -> i32 {
        self.integer("shared_buffers", pg_sys::GUC_UNIT_BLOCKS).unwrap_or(16384)
    }

    /// `max_connections`.
    pub fn max_connections(&self) -> i32 {
        self.integer("max_connections", 0).unwrap_or(100)
    }

    /// A truth value, parsed by the server's function.
    fn boolean(&self, name: &str) -> Option<bool> {
        let value = CString::new(self.get(name)?).ok()?;
        let mut truth = false;
        // SAFETY: the text ends in a zero byte, and the truth is a local variable.
        #[allow(unsafe_code)]
        let is_valid = unsafe { pg_sys::parse_bool(value.as_ptr(), &mut truth) };
        is_valid.then_some(truth)
    }

    /// A number with its unit, parsed by the server's function.
    fn integer(&self, name: &str, unit: u32) -> Option<i32> {
        let value = CString::new(self.get(name)?).ok()?;
        let mut number = 0;
        let unit = i32::try_from(unit).ok()?;
        // SAFETY: the text ends in a zero byte, the number is a local variable, and the hint may be null.
        #[allow(unsafe_code)]
        let is_valid = unsafe { pg_sys::parse_int(value.as_ptr(), &mut number, unit, std::ptr::null_mut()) };
        is_valid.then_some(number)
    }
}
