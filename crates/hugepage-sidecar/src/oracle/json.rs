//! Column values from the members of a JSON object.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use hugepage_kernel::{Bytes, Pages};
use serde_json::{Map, Value};

/// A column value that can be read from JSON.
pub trait FromJson: Sized {
    /// `None` if the value has another type.
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

/// Removes the member `name` and returns its value.
pub fn take<T: FromJson>(object: &mut Map<String, Value>, name: &str) -> Result<Option<T>> {
    match object.remove(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => T::from_json(&value).map(Some).with_context(|| format!("\"{name}\" cannot be {value}")),
    }
}

/// Returns an error that names a remaining member.
pub fn reject_unknown(object: Map<String, Value>) -> Result<()> {
    match object.keys().next() {
        Some(name) => bail!("there is no column \"{name}\""),
        None => Ok(()),
    }
}
