//! What a start of a PostgreSQL server would get, as its own program tells: what is asked, and what the answer means.

pub mod errors;
pub mod options;
