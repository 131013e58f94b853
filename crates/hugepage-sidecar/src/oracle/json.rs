//! A snapshot made of JSON instead of a survey, so that tests can have any value written.
//!
//! `{"host_name": "h", "host": {...}, "pools": [{...}], "instances": [{...}], "findings": [{...}]}`, each object with
//! the columns that are not NULL: numbers, texts, true and false, and moments as seconds since 1970.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use hugepage_core::{Bytes, Pages};
use serde_json::{Map, Value};

use crate::oracle::schema::Record;
use crate::oracle::snapshot::Snapshot;

/// The snapshot that `text` says, as of now.
pub fn snapshot(text: &str) -> Result<Snapshot> {
    let mut object: Map<String, Value> = serde_json::from_str(text)?;
    let snapshot = Snapshot {
        taken_at: SystemTime::now(),
        host_name: take(&mut object, "host_name")?.unwrap_or_default(),
        host: records(&mut object, "host")?.pop().unwrap_or_default(),
        pools: records(&mut object, "pools")?,
        instances: records(&mut object, "instances")?,
        findings: records(&mut object, "findings")?,
    };
    all_taken(object)?;
    Ok(snapshot)
}

fn records<R: Record>(object: &mut Map<String, Value>, name: &str) -> Result<Vec<R>> {
    let record = |value| match value {
        Value::Object(record) => R::from_json(record),
        _ => bail!("\"{name}\" is to be of objects"),
    };
    match object.remove(name).unwrap_or_default() {
        Value::Null => Ok(Vec::new()),
        Value::Array(values) => values.into_iter().map(record).collect(),
        value => Ok(vec![record(value)?]),
    }
}

/// A value of the type of a column.
pub trait FromJson: Sized {
    /// `None` for a value of another type.
    fn from_json(value: &Value) -> Option<Self>;
}

impl FromJson for u64 {
    fn from_json(value: &Value) -> Option<Self> {
        value.as_u64()
    }
}

impl FromJson for Bytes {
    fn from_json(value: &Value) -> Option<Self> {
        value.as_u64().map(Self)
    }
}

impl FromJson for Pages {
    fn from_json(value: &Value) -> Option<Self> {
        value.as_u64().map(Self)
    }
}

impl FromJson for String {
    fn from_json(value: &Value) -> Option<Self> {
        value.as_str().map(ToOwned::to_owned)
    }
}

impl FromJson for bool {
    fn from_json(value: &Value) -> Option<Self> {
        value.as_bool()
    }
}

impl FromJson for SystemTime {
    fn from_json(value: &Value) -> Option<Self> {
        UNIX_EPOCH.checked_add(Duration::from_secs(value.as_u64()?))
    }
}

/// The member `name`, which is thereby taken out.
pub fn take<T: FromJson>(object: &mut Map<String, Value>, name: &str) -> Result<Option<T>> {
    match object.remove(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => T::from_json(&value).map(Some).with_context(|| format!("\"{name}\" can't be {value}")),
    }
}

/// An error that names a member that no column took.
pub fn all_taken(object: Map<String, Value>) -> Result<()> {
    match object.keys().next() {
        Some(name) => bail!("there is no column \"{name}\""),
        None => Ok(()),
    }
}
