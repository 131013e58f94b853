//! Asks the server's own program what a start with the configuration on disk would allocate, while the server runs.
//!
//! `postgres -C shared_memory_size_in_huge_pages` loads the configuration and the preload libraries, calculates the size
//! of shared memory and ends, without allocating it. It refuses the data directory of a running server, so it gets a stub
//! ([`stub`]), with the arguments and the environment of the running postmaster. Its command line consists of the
//! arguments and of numbers; it never contains text from a caller.
//!
//! Only the worker and the functions that say so run the program: [`next_start`] is what views know without.

pub mod answer;
pub mod arguments;
pub mod child;
mod descendants;
mod environment;
mod failure;
pub mod next_start;
pub mod on_disk;
pub mod standby;
#[expect(clippy::disallowed_methods, reason = "temporary files of the server")]
pub mod stub;
mod turn;

use std::ffi::OsString;
use std::io;
use std::time::{Duration, Instant};

use hugepage_assess::model::{Asked, Demand, Product};
use hugepage_kernel::memory::meminfo::Meminfo;
use hugepage_kernel::{Bytes, PageSize, Pages, Root};
use hugepage_start::options;

pub use answer::{Answer, Either, Overrides};

use crate::{majors, server, settings};
use child::Ending;
use on_disk::OnDisk;
use stub::Stub;
use turn::Turn;

/// The time limit for an answer, the wait for a turn included. A program that takes longer waits for something that a
/// start would wait for too.
const TIME_LIMIT: Duration = Duration::from_secs(10);
/// The server's error if a checkpoint wrote pg_control while it was copied.
const TORN_CONTROL_FILE: &str = "incorrect checksum in control file";
/// The program runs at most this often for one answer.
const MAX_ATTEMPTS: usize = 3;
/// The segment is a multiple of this (CalculateShmemSize), so its size in such pages is exact.
const COUNTING_UNIT: PageSize = PageSize::new(8192).unwrap();

/// The server's error for any `huge_page_size` if it was built without MAP_HUGE_SHIFT, as for glibc 2.17 (guc.c,
/// `check_huge_page_size`).
const NO_HUGE_PAGE_SIZES: &str = "must be 0 on this platform";

/// Runs the program with the configuration `on_disk` and waits for its answer. A cancel ends the program too.
pub fn ask(on_disk: &OnDisk, overrides: Overrides) -> Answer {
    if !settings::ask_server_program() {
        return Answer::Unknown(answer::IS_OFF.to_owned());
    }
    let with_options = match ask_once(on_disk, overrides) {
        Answer::Starts(demand) => demand,
        other => return other,
    };
    let Some(without) = on_disk.files_alone() else { return Answer::Starts(with_options) };
    let note = options::note(&without.options);
    match ask_once(&without.on_disk, overrides) {
        Answer::Starts(files_alone) if files_alone == with_options => Answer::Starts(with_options),
        Answer::Starts(files_alone) => Answer::Either(Either { with_options, files_alone, note }),
        Answer::Refuses(errors) => Answer::Unknown(format!("{note}; without it the server says: {errors}")),
        other => other,
    }
}

fn ask_once(on_disk: &OnDisk, overrides: Overrides) -> Answer {
    let own = on_disk.recovery_parameters(overrides.max_connections);
    if let Some(errors) = standby::primary().and_then(|primary| own.refusal(&primary)) {
        return Answer::Refuses(errors);
    }
    match ask_program(on_disk, overrides) {
        Ok(answer) => answer,
        Err(error) => Answer::Unknown(format!("could not check the configuration: {error}")),
    }
}

fn ask_program(on_disk: &OnDisk, overrides: Overrides) -> io::Result<Answer> {
    let deadline = Instant::now() + TIME_LIMIT;
    let data = server::data_directory();
    let parent = stub::parent(&data)?;
    let Some(_turn) = Turn::wait_for(&parent, stub::STUB_PREFIX, deadline)? else {
        let (slots, limit) = (turn::SLOTS, TIME_LIMIT.as_secs());
        return Ok(Answer::Unknown(format!("{slots} other checks of the configuration took longer than {limit} s")));
    };
    let mut last = String::new();
    let mut unit = Some(COUNTING_UNIT);
    for _ in 0..MAX_ATTEMPTS {
        let stub = Stub::create(&data, &parent)?;
        let arguments = arguments(on_disk, overrides, unit, &stub);
        let output = match child::run(&server::executable(), &arguments, stub.path(), deadline)? {
            Ending::Success(output) => output,
            Ending::Failure(errors) if errors.contains(TORN_CONTROL_FILE) => {
                last = errors;
                continue;
            }
            Ending::Failure(errors) if unit.is_some() && errors.contains(NO_HUGE_PAGE_SIZES) => {
                unit = None;
                continue;
            }
            Ending::Failure(errors) => return Ok(failure::meaning(&errors, stub.path(), &data)),
            Ending::Died(status) => {
                return Ok(Answer::Unknown(format!("the check of the configuration ended with {status}")));
            }
            Ending::TooLate => {
                let limit = TIME_LIMIT.as_secs();
                return Ok(Answer::Unknown(format!("checking the configuration took longer than {limit} s")));
            }
        };
        return Ok(match shared_memory(&output, unit) {
            Some(shared_memory) => Answer::Starts(demand(on_disk, overrides, shared_memory)),
            None => Answer::Unknown(format!("checking the configuration printed \"{}\"", output.trim())),
        });
    }
    Ok(Answer::Refuses(last))
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
