//! pg_hugepages: whether shared memory landed in huge pages, why not, and what to set.
//!
//! Everything works right after CREATE EXTENSION. A preloaded library also logs, records and watches: see [`startup`].
//! Each group below uses the groups above it, and the core crate.

// The server and its settings.
mod configuration_files;
mod fixed;
mod found;
mod guc;
mod latch;
mod library;
mod loaded;
mod log;
mod majors;
mod memory;
mod processes;
mod server;
mod settings;
mod shared;
mod shmem;
mod standby;
mod transparent;

// The core's answers for this server.
mod asker;
mod assessment;
mod history;
mod next_start;

// What a user sees: SQL, and in a preloaded library the log.
mod startup;
mod views;
mod worker;

pgrx::pg_module_magic!(name, version);

/// Runs once when the library is loaded: in the postmaster if it is preloaded, else in the backend that first uses it.
#[pgrx::prelude::pg_guard]
extern "C-unwind" fn _PG_init() {
    library::refuse_another_copy();
    settings::define();
    if startup::install() {
        worker::register();
    }
}
