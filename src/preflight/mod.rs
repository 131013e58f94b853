//! Asks the server's own program what a start with the configuration on disk would allocate, while the server runs.
//!
//! `postgres -C shared_memory_size_in_huge_pages` loads the configuration and the preload libraries, calculates the size
//! of shared memory and ends, without allocating it. It refuses the data directory of a running server, so it gets a stub
//! ([`stub`]), with the arguments of the running postmaster and no environment ([`child`]). Its command line consists of
//! those and of numbers; it never contains text from a caller.

pub mod arguments;
pub mod cache;
pub mod child;
pub mod on_disk;
pub mod stub;

use std::ffi::OsString;
use std::time::Duration;

use hugepage_core::model::{Asked, Demand, Product};
use hugepage_core::read::Root;
use hugepage_core::read::meminfo::Meminfo;
use hugepage_core::{Bytes, PageSize, Pages};

use crate::{majors, server};
use child::Ending;
use on_disk::OnDisk;
use stub::Stub;

/// The time limit for the program. One that takes longer waits for something that a start would wait for too.
const DEADLINE: Duration = Duration::from_secs(10);
/// The server's error if a checkpoint wrote pg_control while it was copied.
const TORN_CONTROL_FILE: &str = "incorrect checksum in control file";
/// The program runs at most this often for one answer.
const MAX_ATTEMPTS: usize = 3;
/// The segment is a multiple of this (CalculateShmemSize), so its size in such pages is exact.
const COUNTING_UNIT: PageSize = PageSize::new(8192).unwrap();

/// The server's error for any `huge_page_size` if it was built without MAP_HUGE_SHIFT, as for glibc 2.17 (guc.c,
/// `check_huge_page_size`).
const NO_HUGE_PAGE_SIZES: &str = "must be 0 on this platform";

/// Values that replace those on disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    /// `shared_buffers`, in blocks.
    pub shared_buffers: Option<i32>,
    /// `max_connections`.
    pub max_connections: Option<i32>,
    /// `huge_page_size`.
    pub huge_page_size: Option<PageSize>,
}

/// The answer of the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// A start would ask for this memory.
    Starts(Demand),
    /// The server would not start; its error text.
    Refuses(String),
    /// The program could not be run, or gave no answer; the reason.
    Unknown(String),
}

/// Runs the program with the configuration `on_disk` and waits for its answer. A cancel ends the program too.
pub fn ask(on_disk: &OnDisk, overrides: Overrides) -> Answer {
    let mut last = String::new();
    let mut unit = Some(COUNTING_UNIT);
    for _ in 0..MAX_ATTEMPTS {
        let (output, errors) = match run(on_disk, overrides, unit) {
            Ok(Ending::Success(output)) => (output, String::new()),
            Ok(Ending::Failure(errors)) => (String::new(), errors),
            Ok(Ending::TooLate) => {
                let limit = DEADLINE.as_secs();
                return Answer::Unknown(format!("checking the configuration took longer than {limit} s"));
            }
            Err(error) => return Answer::Unknown(format!("could not check the configuration: {error}")),
        };
        if errors.contains(TORN_CONTROL_FILE) {
            last = errors;
        } else if unit.is_some() && errors.contains(NO_HUGE_PAGE_SIZES) {
            unit = None;
        } else if !errors.is_empty() {
            return Answer::Refuses(errors);
        } else {
            return match shared_memory(&output, unit) {
                Some(shared_memory) => Answer::Starts(demand(on_disk, overrides, shared_memory)),
                None => Answer::Unknown(format!("checking the configuration printed \"{}\"", output.trim())),
            };
        }
    }
    Answer::Refuses(last)
}

fn run(on_disk: &OnDisk, overrides: Overrides, unit: Option<PageSize>) -> std::io::Result<Ending> {
    let stub = Stub::create(&server::data_directory())?;
    let ending = child::run(&server::executable(), &arguments(on_disk, overrides, unit, &stub), stub.path(), DEADLINE)?;
    Ok(match ending {
        // Users know the data directory, not the stub.
        Ending::Failure(errors) => {
            let real = server::data_directory();
            Ending::Failure(errors.replace(&*stub.path().to_string_lossy(), &real.to_string_lossy()))
        }
        other => other,
    })
}

/// Later arguments override earlier ones, and all override the files. Without a unit, pages have the size that is set.
fn arguments(on_disk: &OnDisk, overrides: Overrides, unit: Option<PageSize>, stub: &Stub) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = on_disk.arguments.iter().map(OsString::from).collect();
    arguments.extend(["-D".into(), server::data_directory().into_os_string()]);
    let mut set = |name: &str, value: OsString| {
        let mut assignment = OsString::from(format!("{name}="));
        assignment.push(value);
        arguments.extend(["-c".into(), assignment]);
    };
    set("config_file", server::config_file().into_os_string());
    set("data_directory", stub.path().as_os_str().to_owned());
    // Certificates are in the real data directory, and are not needed.
    set("ssl", "off".into());
    // Errors go to stderr, untranslated and without a prefix.
    set("log_destination", "stderr".into());
    set("log_line_prefix", "".into());
    set("log_error_verbosity", "default".into());
    set("lc_messages", "C".into());
    if let Some(blocks) = overrides.shared_buffers {
        set("shared_buffers", blocks.to_string().into());
    }
    if let Some(connections) = overrides.max_connections {
        set("max_connections", connections.to_string().into());
    }
    if let Some(size) = unit.or(overrides.huge_page_size) {
        set("huge_page_size", size.setting().into());
    }
    arguments.extend(["-C".into(), "shared_memory_size_in_huge_pages".into()]);
    arguments
}

/// The size of the segment; without a unit, rounded up to whole pages of the default size.
fn shared_memory(output: &str, unit: Option<PageSize>) -> Option<Bytes> {
    let counted: u64 = output.trim().parse().ok()?;
    if unit.is_none() {
        let size = Meminfo::read(&Root::live()).ok()?.huge_page_size?;
        return Some(size.times(Pages(counted)));
    }
    let units = if majors::COUNTS_ONE_PAGE_TOO_MANY { counted.checked_sub(1)? } else { counted };
    Some(Bytes(units.checked_mul(COUNTING_UNIT.bytes().0)?))
}

fn demand(on_disk: &OnDisk, overrides: Overrides, shared_memory: Bytes) -> Demand {
    let block = u64::from(pgrx::pg_sys::BLCKSZ);
    let asked = Asked {
        huge_pages: on_disk.huge_pages(),
        huge_page_size: overrides.huge_page_size.or_else(|| on_disk.huge_page_size()),
        product: Product::PostgreSql,
        sysv: on_disk.sysv(),
        shared_buffers: Bytes(
            u64::from(overrides.shared_buffers.unwrap_or_else(|| on_disk.shared_buffers()).unsigned_abs()) * block,
        ),
    };
    let max_connections = overrides.max_connections.unwrap_or_else(|| on_disk.max_connections());
    Demand { asked, max_connections: u64::from(max_connections.unsigned_abs()), shared_memory }
}
