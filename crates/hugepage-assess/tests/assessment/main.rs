//! The assessment is arithmetic on facts: tables of cases with every rule at its border, and properties over all facts.

/// A hint with a number of pages, behind its command.
macro_rules! seen {
    ($to:literal, $then:literal) => {
        concat!($to, "\" (all servers seen here; `hugepage-sidecar size` counts all of the host)", $then)
    };
}

mod advisories;
mod capacity;
mod cause;
mod crash;
mod effect;
mod forecast;
mod history;
mod limits;
mod log;
mod model;
mod nodes;
mod oracle;
mod other_size;
mod outlook;
mod placement;
mod plan;
mod properties;
mod rows;
mod server;
mod verdict;
mod words;

use server::*;
