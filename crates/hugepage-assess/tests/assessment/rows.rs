//! Rows, pools, commands and stopped servers, as other crates show them.

use std::collections::BTreeMap;

use hugepage_assess::advice::command::{quoted, set_pool_at_boot};
use hugepage_assess::assessment::Status;
use hugepage_assess::columns::{NamedValue, Value, fields};
use hugepage_assess::model::{Landing, Product, UseLargePages};
use hugepage_assess::pools::{self, PoolColumns, PoolRow};
use hugepage_assess::status_row::{StatusRow, beside};
use hugepage_kernel::cgroups::cgroup::CgroupLimit;
use hugepage_kernel::memory::pool::Pool;
use hugepage_kernel::{Bytes, Pages};

use super::{GIB, MIB, Server, page_size, pool};

#[test]
fn commands_for_root() {
    let (huge, gigantic) = (page_size(2 * MIB), page_size(GIB));
    let own = "echo 'vm.nr_hugepages = 7' > /etc/sysctl.d/90-postgresql-hugepages.conf";
    let edit = "'s#^[-[:space:]]*vm[./]nr_hugepages[[:space:]]*=.*#vm.nr_hugepages = 7#'";
    let copied = |from: &str, name: &str| format!("sed -E {edit} {from}/{name} > /etc/sysctl.d/{name}");
    for (file, expected) in [
        (None, own.to_owned()),
        (Some("/proc/cmdline"), own.to_owned()),
        (Some("/etc/sysctl.d/10-huge.conf"), own.to_owned()),
        (Some("/usr/lib/sysctl.d/50-vendor.conf"), own.to_owned()),
        (Some("/etc/sysctl.d/90-postgresql-hugepages.conf"), own.to_owned()),
        (Some("/etc/sysctl.d/99-sysctl.conf"), format!("sed -i -E {edit} /etc/sysctl.d/99-sysctl.conf")),
        (Some("/etc/sysctl.conf"), format!("sed -i -E {edit} /etc/sysctl.conf")),
        (Some("/usr/lib/sysctl.d/99-vendor.conf"), copied("/usr/lib/sysctl.d", "99-vendor.conf")),
        (Some("/usr/local/lib/sysctl.d/zz.conf"), copied("/usr/local/lib/sysctl.d", "zz.conf")),
    ] {
        assert_eq!(set_pool_at_boot(huge, true, Pages(7), file).unwrap(), expected, "{file:?}");
    }
    assert!(set_pool_at_boot(gigantic, false, Pages(7), None).unwrap().contains("hugepagesz=1G hugepages=7"));
    assert_eq!(set_pool_at_boot(gigantic, false, Pages(7), Some("/boot/grub/grub.cfg")), None);
}

#[test]
fn words_for_a_shell() {
    for (word, expected) in [
        ("/srv/pg-15.main", "/srv/pg-15.main"),
        ("", "''"),
        ("a b", "'a b'"),
        ("it's", "'it'\\''s'"),
        ("a\nb's\u{1b}é", "$'a\\012b\\'s\\033\\303\\251'"),
    ] {
        assert_eq!(quoted(word), expected);
    }
}

#[test]
fn pools_of_a_host() {
    let row = |node, size, nr| PoolRow {
        node,
        is_default: size == 2 * MIB,
        pool: Pool { page_size: page_size(size), ..pool(nr, 0, 0) },
        limit: None,
    };
    let rows = [row(None, 2 * MIB, 5), row(Some(0), 2 * MIB, 5), row(None, GIB, 3)];
    assert_eq!(pools::of_size(&rows, page_size(GIB)), Some(&rows[2]));
    assert_eq!(pools::of_size(&rows, page_size(2 * MIB)), Some(&rows[0]));
    assert_eq!(pools::of_size(&rows[..2], page_size(GIB)), None);
    assert_eq!(pools::memory(pools::of_host(&rows)), Bytes(10 * MIB + 3 * GIB));
}

fn of_status(status: &Status) -> StatusRow {
    StatusRow::new(status)
}

#[test]
fn row_of_a_status() {
    let huge = of_status(&Server::default().status());
    assert_eq!((huge.landed_in.is_hugetlb(), huge.huge_pages), (Some(true), Some("try")));
    assert_eq!((huge.huge_page_bytes, huge.base_page_bytes), (Some(Bytes(GIB)), Some(Bytes(0))));
    let base = of_status(&Server::in_base_pages().status());
    assert_eq!((base.landed_in.is_hugetlb(), base.base_page_bytes), (Some(false), Some(Bytes(GIB))));
    let unknown = of_status(&Server { landing: Some(Landing::Unknown), ..Server::default() }.status());
    assert_eq!((unknown.landed_in.is_hugetlb(), unknown.huge_page_bytes, unknown.base_page_bytes), (None, None, None));
    for (use_large_pages, setting) in [(None, None), (Some(UseLargePages::Only), Some("TRUE"))] {
        let mut status = Server::default().status();
        status.facts.requested.product =
            Product::Oracle { use_large_pages, memory_target: false, is_asm: false, may_mix: false };
        assert_eq!(of_status(&status).use_large_pages, setting);
    }
}

/// Name and type of each column that a view of the extension declares.
fn declared(view: &str) -> BTreeMap<&str, &str> {
    let (_, columns) = view.split_once(" RETURNS TABLE (\n").unwrap();
    let columns = columns.lines().take_while(|line| *line != ")");
    columns
        .map(|line| line.trim_start().split_once(" -- ").unwrap().0.trim_end_matches(',').split_once(' ').unwrap())
        .collect()
}

/// Holds the `rows` of a view, none of whose columns may be null in all of them, against its declaration. `elsewhere`: the columns
/// that only other outputs have. The columns of the declaration that the view itself adds.
fn added_by<'a>(view: &'a str, rows: impl IntoIterator<Item = NamedValue>, elsewhere: &[&str]) -> Vec<&'a str> {
    let mut columns = declared(view);
    let mut types = BTreeMap::new();
    for (name, value) in rows {
        let kind = match value {
            Value::Null => None,
            Value::Bool(_) => Some("boolean"),
            Value::Number(_) => Some("bigint"),
            _ => Some("text"),
        };
        let known = types.entry(name.into_owned()).or_insert(kind);
        *known = known.or(kind);
    }
    for (name, kind) in types {
        assert_eq!(elsewhere.contains(&&*name), !columns.contains_key(&*name), "{name}");
        assert!(kind.is_some(), "{name} is null in all rows");
        assert!(columns.remove(&*name).is_none_or(|declared| Some(declared) == kind), "{name} is {kind:?}");
    }
    columns.into_keys().collect()
}

#[test]
fn views_declare_the_columns_of_their_rows() {
    let mut of_oracle = Server::default().status();
    of_oracle.facts.requested.product = Product::Oracle {
        use_large_pages: Some(UseLargePages::Only),
        memory_target: false,
        is_asm: false,
        may_mix: false,
    };
    let statuses = [Server::default().status(), Server::in_base_pages().status(), of_oracle];
    let rows = statuses.iter().flat_map(|status| fields(&of_status(status)).chain(beside(status)));
    assert_eq!(
        added_by(
            include_str!("../../../../src/views/status.sql"),
            rows,
            &["huge_page_bytes", "base_page_bytes", "use_large_pages", "pages_held"]
        ),
        [
            "boot_outlook",
            "crash_outlook",
            "generation",
            "notes",
            "shared_buffers",
            "shared_buffers_in_huge_pages",
            "transparent_hugepage",
        ]
    );
    let limit = CgroupLimit { path: String::new(), limit: Bytes(GIB), usage: Bytes(MIB), promised: None };
    let pool = PoolRow {
        node: Some(0),
        is_default: true,
        pool: Pool { page_size: page_size(2 * MIB), overcommit: Some(Pages(0)), ..pool(5, 5, 0) },
        limit: Some(limit),
    };
    let row = fields(&PoolColumns::new(&pool));
    assert_eq!(added_by(include_str!("../../../../src/views/pools.sql"), row, &["node"]), Vec::<&str>::new());
}
