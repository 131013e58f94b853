//! The default size of huge pages on the nodes that a manifest asks for, by the architecture that it selects.

use std::rc::Rc;

use hugepage_kernel::PageSize;

use super::settings::{NotUnderstood, not_understood};
use super::yaml::YamlNode;

/// The default size on x86-64, unless the node boots with another default_hugepagesz; it is expected where a manifest selects no
/// architecture.
pub const USUAL_SIZE: PageSize = PageSize::new(2 << 20).unwrap();
/// The only size on s390x.
const SIZE_ON_S390X: PageSize = PageSize::new(1 << 20).unwrap();
const LABELS: [&str; 2] = ["kubernetes.io/arch", "beta.kubernetes.io/arch"];

/// The default size for pods of `specification`, whose selectors and affinities are somewhere below it.
pub fn default_page_size(specification: &Rc<YamlNode>) -> Result<PageSize, NotUnderstood> {
    match architectures(specification)?.as_slice() {
        [] => Ok(USUAL_SIZE),
        [one] if one == "amd64" => Ok(USUAL_SIZE),
        [one] if one == "s390x" => Ok(SIZE_ON_S390X),
        [one] if one == "arm64" => not_understood("the default size on arm64 is 2 MB, 32 MB or 512 MB"),
        [one] if one == "ppc64le" => not_understood("the default size on ppc64le is 2 MB or 16 MB"),
        several => not_understood(format!("the default size on nodes of {} is unknown", several.join(" or "))),
    }
}

/// The values of the labels: of a nodeSelector, and of the expressions of an affinity.
fn architectures(specification: &Rc<YamlNode>) -> Result<Vec<String>, NotUnderstood> {
    let is_label = |key: &str| LABELS.contains(&key);
    let mut found = Vec::new();
    for node in specification.all_below() {
        if node.text_at(&["key"]).is_some_and(is_label) && node.get("operator").is_some() {
            if node.text_at(&["operator"]) != Some("In") {
                return not_understood("the architecture of the nodes is selected by an expression that is not In");
            }
            let values = node.get("values").map(|values| values.items()).unwrap_or_default();
            found.extend(values.iter().filter_map(|value| value.text()).map(str::to_owned));
        }
        let selected = node.entries().iter().filter(|(key, _)| key.text().is_some_and(is_label));
        found.extend(selected.filter_map(|(_, value)| value.text()).map(str::to_owned));
    }
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::yaml::documents;

    #[test]
    fn by_architecture() {
        let expressions = |operator: &str, values: &str| {
            format!(
                "affinity: {{nodeAffinity: {{requiredDuringSchedulingIgnoredDuringExecution: {{nodeSelectorTerms: \
                 [{{matchExpressions: [{{key: kubernetes.io/arch, operator: {operator}, values: {values}}}]}}]}}}}}}"
            )
        };
        for (text, kilobytes) in [
            ("containers: []".to_owned(), Some(2048)),
            ("nodeSelector: {kubernetes.io/arch: amd64}".to_owned(), Some(2048)),
            ("nodeSelector: {kubernetes.io/arch: s390x}".to_owned(), Some(1024)),
            ("nodeSelector: {beta.kubernetes.io/arch: arm64}".to_owned(), None),
            ("nodeSelector: {kubernetes.io/arch: ppc64le}".to_owned(), None),
            ("nodeSelector: {kubernetes.io/os: linux}".to_owned(), Some(2048)),
            (expressions("In", "[amd64]"), Some(2048)),
            (expressions("In", "[amd64, arm64]"), None),
            (expressions("NotIn", "[amd64]"), None),
            (expressions("Exists", "[]"), None),
        ] {
            let node = documents(&text).unwrap().remove(0);
            let found = default_page_size(&node).ok().map(|size| size.bytes().0 >> 10);
            assert_eq!(found, kilobytes, "{text}");
        }
    }
}
