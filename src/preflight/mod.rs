//! Asks the server's own program what a start with the configuration on disk would allocate, while the server runs.
//!
//! `postgres -C shared_memory_size_in_huge_pages` loads the configuration and the preload libraries, calculates the size
//! of shared memory and ends, without allocating it ([`hugepage_start`]). It refuses the data directory of a running server,
//! so it gets a stub ([`stub`]), with the arguments and the environment of the running postmaster. The command line consists
//! of the arguments and of numbers; it never contains text from a caller.
//!
//! Only the worker and the functions that say so run the program: [`next_start`] is what views know without.

pub mod arguments;
mod descendants;
mod environment;
pub mod next_start;
pub mod on_disk;
pub mod overrides;
pub mod program_run;
mod program_slot;
pub mod standby;
#[expect(clippy::disallowed_methods, reason = "temporary files of the server")]
pub mod stub;

use std::ffi::OsString;
use std::io;
use std::time::{Duration, Instant};

use hugepage_assess::model::{Demand, Product, Requested};
use hugepage_kernel::memory::meminfo::Meminfo;
use hugepage_kernel::{Bytes, PageSize, Root};
use hugepage_start::{Ending, StartAnswer, StartQuestion};

pub use overrides::{Answer, Overrides};

use crate::server;
use on_disk::OnDisk;
use program_slot::ProgramSlot;
use stub::Stub;

/// The time limit for an answer, the wait for a turn included. A program that takes longer waits for something that a
/// start would wait for too.
const TIME_LIMIT: Duration = Duration::from_secs(10);

/// Runs the program with the configuration `on_disk` and waits for its answer. A cancel ends the program too.
pub fn ask(on_disk: &OnDisk, overrides: Overrides) -> Answer {
    if !crate::settings::ask_server_program() {
        return StartAnswer::Unknown(overrides::IS_OFF.to_owned());
    }
    let without = on_disk.files_alone();
    let without = without.as_ref().map(|without| (&*without.options, || ask_once(&without.on_disk, overrides)));
    ask_once(on_disk, overrides).of_both(without)
}

fn ask_once(on_disk: &OnDisk, overrides: Overrides) -> StartAnswer<Demand> {
    let own = on_disk.recovery_parameters(overrides.max_connections);
    if let Some(errors) = standby::primary().and_then(|primary| own.refusal(&primary)) {
        return StartAnswer::Refuses(errors);
    }
    let answer = ask_program(on_disk, overrides).unwrap_or_else(|error| StartAnswer::Unknown(not_checked(&error)));
    answer.map(|shared_memory| demand(on_disk, overrides, shared_memory))
}

fn not_checked(error: &io::Error) -> String {
    format!("could not check the configuration: {error}")
}

fn ask_program(on_disk: &OnDisk, overrides: Overrides) -> io::Result<StartAnswer<Bytes>> {
    let deadline = Instant::now() + TIME_LIMIT;
    let data = server::data_directory();
    let parent = stub::parent(&data)?;
    let Some(_slot) = ProgramSlot::wait_for(&parent, stub::STUB_PREFIX, deadline)? else {
        let (slots, limit) = (program_slot::SLOTS, TIME_LIMIT.as_secs());
        return Ok(StartAnswer::Unknown(format!(
            "{slots} other checks of the configuration took longer than {limit} s"
        )));
    };
    let stub = Stub::new(&parent);
    let question = StartQuestion {
        major: server::major(),
        arguments: &on_disk.arguments,
        data: &data,
        settings: settings(overrides, &stub),
        stand_in: Some(stub.path()),
        default_page_size: Meminfo::read(&Root::live()).ok().and_then(|meminfo| meminfo.huge_page_size),
    };
    Ok(question.ask(|arguments| {
        let run = || program_run::run(&server::executable(), arguments, stub.create(&data)?, deadline);
        run().unwrap_or_else(|error| Ending::NoAnswer(not_checked(&error)))
    }))
}

/// Settings that a start does not have: where its files are, and what replaces the values on disk.
fn settings(overrides: Overrides, stub: &Stub) -> Vec<(&'static str, OsString)> {
    let mut settings = vec![
        ("config_file", server::config_file().into_os_string()),
        ("data_directory", stub.path().as_os_str().to_owned()),
    ];
    let mut set = |name, value: Option<String>| settings.extend(value.map(|value| (name, value.into())));
    set("shared_buffers", overrides.shared_buffers.map(|blocks| blocks.to_string()));
    set("max_connections", overrides.max_connections.map(|count| count.to_string()));
    set("huge_page_size", overrides.huge_page_size.map(PageSize::setting));
    settings
}

fn demand(on_disk: &OnDisk, overrides: Overrides, shared_memory: Bytes) -> Demand {
    let block = u64::from(pgrx::pg_sys::BLCKSZ);
    let blocks = overrides.shared_buffers.unwrap_or_else(|| on_disk.shared_buffers()).unsigned_abs();
    let shared_buffers = Bytes(u64::from(blocks) * block);
    let max_connections = overrides.max_connections.unwrap_or_else(|| on_disk.max_connections());
    let requested = Requested {
        huge_pages: on_disk.huge_pages(),
        huge_page_size: overrides.huge_page_size.or_else(|| on_disk.huge_page_size()),
        product: Product::PostgreSql,
        sysv: on_disk.sysv(),
        shared_buffers,
        rings: on_disk.rings(shared_buffers, max_connections),
    };
    Demand { requested, max_connections: u64::from(max_connections.unsigned_abs()), shared_memory }
}
