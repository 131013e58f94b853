//! Turns the table of kernel advisories into JSON, so that the programs need no parser of TOML.

#![allow(clippy::disallowed_methods, reason = "the table is read when the crate is compiled")]

use std::path::Path;
use std::{env, fs};

const TABLE: &str = "src/assessment/kernel-advisories.toml";

fn main() {
    println!("cargo::rerun-if-changed={TABLE}");
    let text = fs::read_to_string(TABLE).unwrap_or_else(|error| panic!("{TABLE}: {error}"));
    let table: toml::Table = text.parse().unwrap_or_else(|error| panic!("{TABLE}: {error}"));
    let json = serde_json::to_string(&table).unwrap_or_else(|error| panic!("{TABLE}: {error}"));
    let directory = env::var("OUT_DIR").unwrap_or_else(|error| panic!("OUT_DIR: {error}"));
    fs::write(Path::new(&directory).join("kernel-advisories.json"), json).unwrap_or_else(|error| panic!("{error}"));
}
