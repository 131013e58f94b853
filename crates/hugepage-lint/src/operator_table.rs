//! What is known of operators: `operators.yaml`, with the versions, the source and the date of each row.

use std::rc::Rc;

use super::image;
use super::settings::{NotUnderstood, Setting, not_understood};
use super::yaml::{self, YamlNode};

const TABLE: &str = include_str!("operators.yaml");

/// A row of the table.
#[derive(Clone, Debug)]
pub struct OperatorRow(Rc<YamlNode>);

impl OperatorRow {
    /// The row of a custom resource.
    pub fn find(group: &str, kind: &str) -> Option<Self> {
        let table = yaml::documents(TABLE).ok()?;
        let is_it =
            |row: &&Rc<YamlNode>| row.text_at(&["group"]) == Some(group) && row.text_at(&["kind"]) == Some(kind);
        table.first()?.items().iter().find(is_it).map(|row| Self(Rc::clone(row)))
    }

    /// A value of the row.
    pub fn text(&self, key: &str) -> Option<&str> {
        self.0.text_at(&[key])
    }

    /// A list of the row.
    pub fn list(&self, key: &str) -> Vec<&str> {
        let items = self.0.get(key).map(|items| items.items()).unwrap_or_default();
        items.iter().filter_map(|item| item.text()).collect()
    }

    /// The operator's own settings.
    pub fn defaults(&self) -> Vec<Setting> {
        let entries = self.0.get("settings").map(|all| all.entries()).unwrap_or_default().iter();
        let setting = |(name, value): &(Rc<YamlNode>, Rc<YamlNode>)| {
            Some(Setting::default_of_operator(name.text()?, value.text()?))
        };
        entries.filter_map(setting).collect()
    }

    /// Refuses versions of PostgreSQL and of the operator that are older or newer than those of the row.
    pub fn check_version(&self, major: Option<u32>, spec: &Rc<YamlNode>) -> Result<(), NotUnderstood> {
        let name = self.text("operator").unwrap_or_default();
        let majors: Vec<u32> = self.list("majors").iter().filter_map(|text| text.parse().ok()).collect();
        if let (Some(major), [first, last]) = (major, majors.as_slice())
            && !(first..=last).contains(&&major)
        {
            return not_understood(format!("what {name} sets is known for PostgreSQL {first} to {last}"));
        }
        let Some(field) = self.text("versionField") else { return Ok(()) };
        let [since, until] = ["since", "until"].map(|key| self.text(key).unwrap_or_default());
        let given = spec.text_at(&[field]);
        match given.and_then(version) {
            Some(given) if version(since) <= Some(given) && Some(given) <= version(until) => Ok(()),
            _ => {
                let given = given.unwrap_or("not there");
                not_understood(format!(
                    "what {name} sets is known for {field} {since} to {until}, and {field} is {given}"
                ))
            }
        }
    }

    /// Refuses images whose postgresql.conf.sample is not the operator's.
    pub fn check_image(&self, image: Option<&str>) -> Result<(), NotUnderstood> {
        let known = self.list("images");
        let is_known = |image: &str| {
            let repository = image::repository(image);
            known
                .iter()
                .any(|name| repository.strip_suffix(name).is_some_and(|rest| rest.is_empty() || rest.ends_with('/')))
        };
        match image {
            Some(image) if !is_known(image) => {
                not_understood(format!("the image {image} is not one whose defaults are known"))
            }
            None if self.text("imageIsNeeded") == Some("true") => {
                not_understood("the manifest does not name the image")
            }
            _ => Ok(()),
        }
    }
}

/// Major and minor version, for comparison.
fn version(text: &str) -> Option<(u32, u32)> {
    let mut parts = text.split('.').map(|part| part.parse().ok());
    Some((parts.next()??, parts.next()??))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A row without one of these would be no fact.
    #[test]
    fn each_row_has_its_source() {
        let table = yaml::documents(TABLE).unwrap();
        assert_eq!((table.len(), table[0].items().len()), (1, 5));
        for row in table[0].items() {
            let has = |key: &str| row.text_at(&[key]).is_some_and(|text| !text.is_empty());
            assert!(["operator", "group", "kind", "form", "source", "checked"].iter().all(|key| has(key)), "{row:?}");
        }
    }
}
