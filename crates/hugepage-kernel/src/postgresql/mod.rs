//! Files of a PostgreSQL data directory.

pub mod conf_line;
pub mod pg_control;
mod pg_version;
pub mod postgresql_conf;
pub mod postmaster_opts;

pub use conf_line::size_setting;
