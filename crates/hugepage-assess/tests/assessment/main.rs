//! The assessment is arithmetic on facts: tables of cases with every rule at its border, and properties over all facts.

/// A hint with a number of pages, behind its command.
macro_rules! seen {
    ($to:literal, $then:literal) => {
        concat!(
            $to,
            "\"",
            $then,
            " The number counts all servers seen here; `hugepage-sidecar size` counts the whole host."
        )
    };
}

mod advisories;
mod capacity;
mod cause;
mod crash;
mod danger;
mod effect;
mod forecast;
mod history;
mod limits;
mod log;
mod model;
mod nodes;
mod oracle;
mod outlook;
mod placement;
mod plan;
mod properties;
mod rows;
mod server;
mod verdict;

use server::*;
