//! Files of a PostgreSQL data directory.

pub mod pg_control;
pub mod postgresql_conf;
pub mod postmaster_opts;
