//! What is known of kernel releases, and of which it is not known.

use hugepage_assess::assessment::advisory::Advisories;
use hugepage_assess::model::Facts;
use hugepage_facts::Landing;
use hugepage_kernel::PageSize;

use super::{GIB, Server};

const TABLE: &str = include_str!("../../src/assessment/kernel-advisories.toml");

/// The names of the findings that apply (true) or may apply (false).
fn found(table: &Advisories, facts: &Facts, release: &str) -> Vec<(String, bool)> {
    let rows = table.concerning(facts, Some(release)).into_iter();
    rows.filter(|row| row.applies != Some(false))
        .map(|row| (row.name, row.applies == Some(true)))
        .collect()
}

#[test]
fn the_program_has_the_table_that_the_file_has() {
    let of_file: Advisories = toml::from_str(TABLE).unwrap();
    let names = |table: &Advisories| {
        table
            .advisory
            .iter()
            .map(|row| row.name.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(names(Advisories::known()), names(&of_file));
    let mut sorted = names(&of_file);
    sorted.sort_unstable();
    sorted.dedup();
    assert_eq!(
        sorted.len(),
        of_file.advisory.len(),
        "each name is there once"
    );
    for row in &of_file.advisory {
        assert!(
            row.text.ends_with('.') && !row.source.is_empty(),
            "{}",
            row.name
        );
    }
}

#[test]
fn ranges_of_releases() {
    let known = Advisories::known();
    for (name, release, affected) in [
        ("pmd_sharing", "6.12.34", Some(false)),
        ("pmd_sharing", "6.12.35", Some(true)),
        ("pmd_sharing", "6.12.73+deb13-amd64", Some(true)),
        ("pmd_sharing", "6.12.74", Some(false)),
        ("pmd_sharing", "6.16.1", Some(true)),
        ("pmd_sharing", "6.18.12", Some(true)),
        ("pmd_sharing", "6.18.44-fc-v595", Some(false)),
        ("pmd_sharing", "7.0.1", Some(false)),
        // Later than the change, and it is not known when it was mended.
        ("pmd_sharing", "6.1.150", None),
        ("pmd_sharing", "6.1.140", Some(false)),
        // Builds of a distribution, which hide the third number.
        ("pmd_sharing", "6.1.0-18-amd64", None),
        ("pmd_sharing", "6.8.0-45-generic", Some(false)),
        ("pmd_sharing", "6.17.0-5-generic", Some(true)),
        ("pmd_sharing", "6.12.0-55.el10.x86_64", None),
        ("pmd_sharing", "5.14.0-427.13.1.el9_4.x86_64", None),
        ("no_preempt_none", "6.19.8", Some(false)),
        ("no_preempt_none", "7.0.0-14-generic", Some(true)),
        ("no_preempt_none", "6.4.0-150600.23.22-default", None),
        ("lost_huge_pages", "6.12.117+deb13-cloud-amd64", Some(true)),
        ("lost_huge_pages", "6.12.107+deb13-amd64", Some(false)),
        ("no_gigantic_overcommit", "6.18.44", Some(true)),
        ("no_gigantic_overcommit", "6.19.0", Some(false)),
        (
            "small_memlock",
            "5.15.0-206.153.7.el9uek.x86_64",
            Some(true),
        ),
        ("small_memlock", "no number", None),
        ("no such row", "6.12.35", None),
    ] {
        assert_eq!(known.affects(name, release), affected, "{name} {release}");
    }
}

#[test]
fn only_what_concerns_the_server() {
    let known = Advisories::known();
    let server = |landing| {
        Server {
            landing: Some(landing),
            ..Server::default()
        }
        .facts()
    };
    let name = |name: &str, applies| vec![(format!("kernel_{name}"), applies)];
    assert_eq!(
        found(known, &server(Landing::Hugetlb), "6.12.40"),
        name("pmd_sharing", true)
    );
    assert_eq!(
        found(known, &server(Landing::Hugetlb), "6.12.0-55.el10.x86_64"),
        name("pmd_sharing", false)
    );
    assert_eq!(found(known, &server(Landing::Base), "6.12.40"), []);
    assert_eq!(
        found(known, &server(Landing::Base), "7.0.3"),
        name("no_preempt_none", true)
    );
    assert_eq!(found(known, &server(Landing::Hugetlb), "7.0.3"), []);
    let mut gigantic = server(Landing::Base);
    gigantic.pool_state.huge_page_size = PageSize::new(GIB);
    assert_eq!(
        found(known, &gigantic, "6.12.40"),
        name("no_gigantic_overcommit", true)
    );
    // Without a release all that would concern the server is unknown.
    let rows = known.concerning(&server(Landing::Hugetlb), None);
    assert_eq!(rows.iter().filter(|row| row.applies.is_none()).count(), 2);
    let row = known
        .concerning(&server(Landing::Hugetlb), Some("6.12.40"))
        .remove(0);
    assert!(
        row.detail.unwrap().contains("6.6.127"),
        "the source is shown"
    );
}

#[test]
fn a_new_row_needs_no_code() {
    let row = r#"
        [[advisory]]
        name = "example"
        matters = "any"
        text = "Pages are blue on this kernel."
        source = "an example"
        ranges = [{ from = "6.18.40", before = "6.18.50" }, { from = "8.1" }]
        kernels = [{ contains = ".el10", affected = true }, { contains = ".el9", affected = false }]
    "#;
    let table: Advisories = toml::from_str(&format!("{TABLE}\n{row}")).unwrap();
    let facts = Server::default().facts();
    let last = |release| table.concerning(&facts, Some(release)).pop().unwrap();
    let shown = last("6.18.44");
    assert_eq!(shown.name, "kernel_example");
    assert_eq!(
        shown.detail.unwrap(),
        "Pages are blue on this kernel. Source: an example."
    );
    for (release, applies) in [
        ("6.18.39", Some(false)),
        ("6.18.50", Some(false)),
        ("8.2.0", Some(true)),
        ("6.12.0-55.el10.x86_64", Some(true)),
        ("5.14.0-427.13.1.el9_4.x86_64", Some(false)),
        ("4.18.0-553.el8_10.x86_64", None),
    ] {
        assert_eq!(last(release).applies, applies, "{release}");
    }
    assert!(toml::from_str::<Advisories>(&row.replace("any", "all")).is_err());
    assert!(toml::from_str::<Advisories>(&row.replace("6.18.40", "6.18-rc1")).is_err());
    assert!(toml::from_str::<Advisories>(&row.replace("source =", "sauce =")).is_err());
}

/// Kernels whose builds have later changes: what ends or begins after their release is not known of them, from the release on
/// that such changes were taken into.
#[test]
fn builds_with_later_changes() {
    let rows = r#"
        [[advisory]]
        name = "ended"
        matters = "any"
        text = "Ended."
        source = "an example"
        backports_from = "5.14.0"
        ranges = [{ from = "4.0.0", before = "6.1.0" }]
        [[advisory]]
        name = "begun"
        matters = "any"
        text = "Begun."
        source = "an example"
        ranges = [{ from = "5.14.0" }]
    "#;
    let table: Advisories = toml::from_str(rows).unwrap();
    for (name, release, affected) in [
        ("ended", "5.14.0-427.el9.x86_64", None),
        ("ended", "4.18.0-553.el8_10.x86_64", Some(true)),
        ("begun", "5.14.0-427.el9.x86_64", Some(true)),
        ("begun", "4.18.0-553.el8_10.x86_64", None),
        ("begun", "4.18.0", Some(false)),
    ] {
        assert_eq!(table.affects(name, release), affected, "{name} {release}");
    }
}
