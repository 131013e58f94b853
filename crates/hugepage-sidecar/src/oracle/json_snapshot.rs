//! A snapshot from JSON instead of a survey, so that tests can write any value.
//!
//! `{"host_name": "h", "host": {...}, "pools": [{...}], "instances": [{...}], "findings": [{...}],
//! "segments": [{...}], "starts": [{...}]}`, each object with
//! the columns that are not NULL: numbers, texts, true and false, and timestamps as seconds since 1970.

use std::time::SystemTime;

use anyhow::{Result, bail};
use serde_json::{Map, Value};

use crate::oracle::json::{reject_unknown, take};
use crate::oracle::schema::FileRecord;
use crate::oracle::snapshot::OracleSnapshot;

/// Parses a snapshot, taken now.
pub fn parse(text: &str) -> Result<OracleSnapshot> {
    let mut object: Map<String, Value> = serde_json::from_str(text)?;
    let snapshot = OracleSnapshot {
        taken_at: SystemTime::now(),
        host_name: take(&mut object, "host_name")?.unwrap_or_default(),
        host: records(&mut object, "host")?.pop().unwrap_or_default(),
        pools: records(&mut object, "pools")?,
        instances: records(&mut object, "instances")?,
        findings: records(&mut object, "findings")?,
        segments: records(&mut object, "segments")?,
        starts: records(&mut object, "starts")?,
    };
    reject_unknown(object)?;
    Ok(snapshot)
}

fn records<R: FileRecord>(object: &mut Map<String, Value>, name: &str) -> Result<Vec<R>> {
    let record = |value| match value {
        Value::Object(record) => R::from_json(record),
        _ => bail!("\"{name}\" must contain objects"),
    };
    match object.remove(name).unwrap_or_default() {
        Value::Null => Ok(Vec::new()),
        Value::Array(values) => values.into_iter().map(record).collect(),
        value => Ok(vec![record(value)?]),
    }
}
