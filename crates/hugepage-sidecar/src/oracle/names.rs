//! Names and paths that the caller inserts into the SQL, validated against injection.

use std::fmt;
use std::str::FromStr;

use anyhow::{Error, Result, ensure};

/// Reserved words of SQL and PL/SQL (SQL Language Reference), which cannot be unquoted names.
const RESERVED: &str = "access add all alter and any as asc audit begin between by char check cluster column \
    column_value comment compress connect create current cursor date decimal declare default delete desc distinct drop \
    else end exception exclusive exists fetch file float for from function goto grant group having identified if \
    immediate in increment index indexes initial insert integer intersect into is level like lock long maxextents minus \
    mlslabel mode modify nested_table_id noaudit nocompress not nowait null number of offline on online open option or \
    order overlaps package pctfree prior procedure public raw rename resource revoke row rowid rownum rows select \
    session set share size smallint start subtype successful synonym sys sysdate system table then to trigger type uid \
    union unique update user validate values varchar varchar2 view views when whenever where with";

/// The longest name in Oracle 11.2 to 12.1, in bytes; longer ones are legal since 12.2.
const MAX_NAME_BYTES: usize = 30;

/// An unquoted name: ASCII letters, digits, `_`, `$` and `#`, a letter first, at most 30 bytes (the limit of 11.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OracleName(String);

impl OracleName {
    /// The name in upper case, as in the data dictionary.
    pub fn new(name: &str) -> Result<Self> {
        let legal = |character: char| character.is_ascii_alphanumeric() || "_$#".contains(character);
        ensure!(
            name.starts_with(|first: char| first.is_ascii_alphabetic()) && name.chars().all(legal),
            "\"{}\" is not a valid Oracle name: use a letter, then letters, digits, _, $ and #",
            name.escape_debug()
        );
        ensure!(name.len() <= MAX_NAME_BYTES, "\"{name}\" exceeds {MAX_NAME_BYTES} bytes, the limit of Oracle 11.2");
        let reserved = RESERVED.split_whitespace().any(|word| word.eq_ignore_ascii_case(name));
        ensure!(!reserved, "\"{name}\" is a reserved word of Oracle");
        Ok(Self(name.to_ascii_uppercase()))
    }

    /// The name with a suffix, shortened to 30 bytes in front of it.
    pub fn with_suffix(&self, suffix: &str) -> Self {
        let kept = self.0.len().min(MAX_NAME_BYTES - suffix.len());
        Self(format!("{}{suffix}", &self.0[..kept]))
    }
}

impl FromStr for OracleName {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        Self::new(name)
    }
}

impl fmt::Display for OracleName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The path of a directory object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OraclePath(String);

impl FromStr for OraclePath {
    type Err = Error;

    fn from_str(path: &str) -> Result<Self> {
        let legal = |character: char| character.is_ascii_alphanumeric() || "/._+-".contains(character);
        ensure!(
            path.starts_with('/') && path.chars().all(legal),
            "\"{}\" is not a valid path: use an absolute path of letters, digits and /._+-",
            path.escape_debug()
        );
        let path = path.trim_end_matches('/');
        let odd = path.split('/').skip(1).any(|part| ["", ".", ".."].contains(&part));
        ensure!(!path.is_empty() && !odd, "\"{path}\" must not contain empty parts, . or ..");
        ensure!(path.len() <= 200, "\"{path}\" exceeds 200 bytes");
        Ok(Self(path.to_owned()))
    }
}

impl OraclePath {
    /// The directory of a node in this directory.
    pub fn join(&self, node: &NodeName) -> Result<Self> {
        format!("{self}/{node}").parse()
    }
}

impl fmt::Display for OraclePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The name of a host, without its domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeName(String);

impl FromStr for NodeName {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let legal = |character: char| character.is_ascii_alphanumeric() || character == '-';
        ensure!(
            !name.is_empty() && name.len() <= 63 && !name.starts_with('-') && name.chars().all(legal),
            "\"{}\" is not a valid name of a node: use at most 63 letters, digits and hyphens",
            name.escape_debug()
        );
        Ok(Self(name.to_owned()))
    }
}

impl fmt::Display for NodeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn validate_names() {
        assert_eq!(OracleName::new("hp").unwrap().with_suffix("_10").to_string(), "HP_10");
        assert_eq!(OracleName::new(&"a".repeat(30)).unwrap().with_suffix("_10").to_string(), "A".repeat(27) + "_10");
        for (name, legal) in [
            ("hugepage", "HUGEPAGE"),
            ("C##HUGEPAGE", "C##HUGEPAGE"),
            ("a", "A"),
            ("a234567890123456789012345678_0", "A234567890123456789012345678_0"),
        ] {
            assert_eq!(OracleName::new(name).unwrap().to_string(), legal);
        }
        let long = "a2345678901234567890123456789_1";
        let wrong =
            ["", "1a", "_a", "a b", "a;", "a'", "a\"b", "a.b", "a--", "a\nb", "ä", "sys", "SYSTEM", "Table", long];
        for name in wrong {
            assert!(OracleName::new(name).is_err(), "{name}");
        }
    }

    #[test]
    fn validate_node_names() {
        assert_eq!(NodeName::from_str("rac-1").unwrap().to_string(), "rac-1");
        for wrong in ["", "-rac", "rac.1", "rac'1", "rac 1", "../rac", &"a".repeat(64)] {
            assert!(NodeName::from_str(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn validate_paths() {
        assert_eq!(
            OraclePath::from_str("/var/lib/hugepage-sidecar/").unwrap().to_string(),
            "/var/lib/hugepage-sidecar"
        );
        let long = format!("/{}", "a".repeat(200));
        let wrong =
            ["", "/", "var", "/a'b", "/a b", "/a\"", "/a;", "/a&b", "/a\n", "/a/../b", "/a/./b", "//a", "/a//b", &long];
        for path in wrong {
            assert!(OraclePath::from_str(path).is_err(), "{path}");
        }
    }
}
