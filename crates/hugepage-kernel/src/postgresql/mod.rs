//! Files of a PostgreSQL data directory, of which `PG_VERSION` is read here.

pub mod conf_line;
pub mod pg_control;
pub mod postgresql_conf;
pub mod postmaster_opts;

pub use conf_line::size_setting;

use crate::{InstanceFiles, ReadError, limit};

impl InstanceFiles {
    /// The major version in the `PG_VERSION` at `path`: digits, and a dot before version 10.
    pub fn version(&self, path: &str) -> Result<String, ReadError> {
        let text = self.read_text(path, limit::VERSION)?;
        let version = text.trim();
        if !version.is_empty()
            && version
                .bytes()
                .all(|byte| byte.is_ascii_digit() || byte == b'.')
        {
            Ok(version.to_owned())
        } else {
            Err(self.root().content(path, "it is not a version"))
        }
    }
}
