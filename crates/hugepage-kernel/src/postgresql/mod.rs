//! Files of a PostgreSQL data directory.

mod guc_size;
pub mod pg_control;
pub mod postgresql_conf;
pub mod postmaster_opts;

pub use guc_size::size_setting;
