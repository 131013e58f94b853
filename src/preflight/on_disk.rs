//! The configuration that a start would read: its files, the postmaster's arguments, and how it differs from what runs.
//! The server's own functions read the files and compare them (guc.rs).

use std::ffi::CString;

use hugepage_assess::model::{Demand, HugePages, RingDemand};
use hugepage_kernel::memory::meminfo::Meminfo;
use hugepage_kernel::postgresql::pg_control::RecoveryParameters;
use hugepage_kernel::postgresql::postmaster_opts;
use hugepage_kernel::stranger::limit;
use hugepage_kernel::{Bytes, InstanceFiles, Notes, PageSize, Root};
use hugepage_start::{majors, options};
use pgrx::pg_sys;

use super::Overrides;
use crate::guc::{self, ConfigFiles, ServerParameter};
use crate::server;

/// The configuration on disk now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OnDisk {
    /// The arguments of the postmaster.
    pub arguments: Vec<String>,
    /// The settings that the postmaster's arguments make.
    options: Vec<(String, String)>,
    /// The settings in the configuration files.
    pub files: ConfigFiles,
    /// The parameters that a start would read otherwise than the running server has them, or refuse.
    pub differences: Vec<ParameterDifference>,
}

/// A parameter to which the files give another value than the running one, or one that the server does not accept.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ParameterDifference {
    /// The name of the parameter.
    pub name: String,
    /// The value that runs.
    pub running: String,
    /// The value in the files; `None` if they do not set the parameter.
    pub on_disk: Option<String>,
    /// Whether the running value is an option of the command line, which files do not override.
    pub is_option: bool,
    /// Whether only some users may see the values.
    pub is_hidden: bool,
}

/// The configuration without options of the command line.
pub struct WithoutOptions {
    /// The configuration with all other settings.
    pub on_disk: OnDisk,
    /// The options that are left out, as `shared_buffers=64MB`.
    pub options: Vec<String>,
}

impl OnDisk {
    /// Reads the configuration in the server's order: the main file, the file of ALTER SYSTEM, the command line.
    pub fn read(root: &Root, notes: &mut Notes) -> Self {
        let opts = server::data_directory().join("postmaster.opts");
        // This is the server's own process, and the kernel holds it to what the server may read.
        let own = InstanceFiles::own(root);
        let text = notes.keep(own.read_text(&opts.to_string_lossy(), limit::POSTMASTER_OPTS)).unwrap_or_default();
        let arguments = postmaster_opts::arguments(&text);
        let options = postmaster_opts::settings(&arguments);
        let files = ConfigFiles::read();
        let differences = differences(&files);
        Self { arguments, options, files, differences }
    }

    /// The configuration without the options that set something else than the files do; `None` if there are none.
    pub fn files_alone(&self) -> Option<WithoutOptions> {
        let differs = |name: &str| self.differences.iter().any(|found| found.is_option && found.name == name);
        let (left_out, options): (Vec<_>, Vec<_>) = self.options.iter().cloned().partition(|(name, _)| differs(name));
        if left_out.is_empty() {
            return None;
        }
        let arguments = postmaster_opts::without(&self.arguments, differs);
        let on_disk = Self { arguments, options, ..self.clone() };
        let options = left_out.iter().map(|(name, value)| format!("{name}={value}")).collect();
        Some(WithoutOptions { on_disk, options })
    }

    /// The demand of a start that differs in nothing that has a part in the size of shared memory: no program is needed
    /// for that. `None` if the start may need another size, or the size is not known to the page.
    pub fn demand_of_running_size(&self, root: &Root) -> Option<Demand> {
        let is_known = |found: &ParameterDifference| {
            let value = found.on_disk.as_deref();
            let is_valid = match found.name.as_str() {
                "huge_pages" => value.is_none_or(|value| HugePages::parse(value).is_some()),
                "huge_page_size" => {
                    value.is_none_or(|_| self.integer("huge_page_size", pg_sys::GUC_UNIT_KB) >= Some(0))
                }
                "shared_memory_type" => {
                    value.is_none_or(|value| ["mmap", "sysv"].contains(&&*value.to_ascii_lowercase()))
                }
                _ => false,
            };
            is_valid && !found.is_option
        };
        if !self.differences.iter().all(is_known) {
            return None;
        }
        // The server tells its size in whole megabytes, which is exact for pages of as much.
        let size = self.huge_page_size().or_else(|| Meminfo::read(root).ok()?.huge_page_size)?;
        let is_exact = size.bytes().0.is_multiple_of(1 << 20);
        server::shared_memory().filter(|_| is_exact).map(|memory| super::demand(self, Overrides::default(), memory))
    }

    /// The settings that a standby's recovery would compare with the primary's; `max_connections` replaces the value on
    /// disk.
    pub fn recovery_parameters(&self, max_connections: Option<i32>) -> RecoveryParameters {
        let number = |name, default| self.integer(name, 0).unwrap_or(default);
        RecoveryParameters {
            hot_standby: self.boolean("hot_standby").unwrap_or(true),
            max_connections: max_connections.unwrap_or_else(|| self.max_connections()),
            max_worker_processes: number("max_worker_processes", 8),
            max_wal_senders: number("max_wal_senders", 10),
            max_prepared_transactions: number("max_prepared_transactions", 0),
            max_locks_per_transaction: number(
                "max_locks_per_transaction",
                majors::max_locks_per_transaction(server::major()),
            ),
        }
    }

    /// The value that counts: that of the command line before that of the files.
    fn get(&self, name: &str) -> Option<&str> {
        let option = self.options.iter().rev().find(|(found, _)| found == name);
        option.map(|(_, value)| value.as_str()).or_else(|| self.files.get(name))
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

    /// The io_uring rings of a start with these values of `shared_buffers` and `max_connections`.
    pub fn rings(&self, shared_buffers: Bytes, max_connections: i32) -> Option<RingDemand> {
        RingDemand::of_settings(self.get("io_method"), shared_buffers, |name, default| match name {
            "max_connections" => i64::from(max_connections),
            _ => self.integer(name, 0).map_or(default, i64::from),
        })
    }

    fn boolean(&self, name: &str) -> Option<bool> {
        guc::boolean(self.get(name)?)
    }

    fn integer(&self, name: &str, unit: u32) -> Option<i32> {
        guc::integer(self.get(name)?, i32::try_from(unit).ok()?)
    }
}

/// Finds the parameters that a start would read otherwise or refuse: changed values of those that only a start changes,
/// refused values of all others. The options of process 1 are left out: a container repeats its command line.
fn differences(files: &ConfigFiles) -> Vec<ParameterDifference> {
    let repeats_options = server::postmaster_pid() == 1;
    let differs = |parameter: &ServerParameter| {
        let name = parameter.name();
        let on_disk = files.get(&name);
        let stays = if parameter.needs_start() {
            !options::has_effect(&name) || (repeats_options && parameter.is_option()) || parameter.stays(on_disk)
        } else {
            on_disk.is_none_or(|value| CString::new(value).is_ok_and(|value| parameter.is_accepted(Some(&value))))
        };
        (!stays).then(|| ParameterDifference {
            running: parameter.shown(&parameter.running()),
            on_disk: on_disk.map(|value| parameter.shown(value)),
            is_option: parameter.is_option(),
            is_hidden: parameter.is_hidden(),
            name,
        })
    };
    ServerParameter::all().iter().filter_map(differs).collect()
}
