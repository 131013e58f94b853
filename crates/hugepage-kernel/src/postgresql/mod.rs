//! Files of a PostgreSQL data directory.

pub mod conf_line;
mod guc_size;
pub mod pg_control;
mod pg_version;
pub mod postgresql_conf;
pub mod postmaster_opts;

pub use guc_size::size_setting;
