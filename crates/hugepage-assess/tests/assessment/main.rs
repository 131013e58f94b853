//! The assessment is arithmetic on facts: tables of cases with every rule at its border, and properties over all facts.

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
mod outlook;
mod placement;
mod plan;
mod properties;
mod resize;
mod rows;
mod server;
mod steps;
mod verdict;
mod words;

use server::*;
