//! pg_hugepages: whether shared memory landed in huge pages, why not, and what to set.
//!
//! Everything works right after CREATE EXTENSION; what the library adds when it is preloaded is in [`shmem`].

mod advice;
mod assessment;
mod history;
mod library;
mod log;
mod majors;
mod preflight;
mod processes;
mod server;
mod session_notes;
mod sessions;
mod settings;
mod shmem;
mod startup;
mod views;
mod worker;

pgrx::pg_module_magic!(name, version);

/// Runs once when the library is loaded: in the postmaster if it is preloaded, else in the backend that first uses it.
#[pgrx::prelude::pg_guard]
extern "C-unwind" fn _PG_init() {
    settings::define();
    shmem::install();
}
