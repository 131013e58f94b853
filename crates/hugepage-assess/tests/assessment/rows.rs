//! Rows, pools, commands and stopped servers, as other crates show them.

use hugepage_assess::advice::command::{quoted, set_pool_at_boot};
use hugepage_assess::assessment::{Finding, Outlook, Status};
use hugepage_assess::columns::{self, Column, ColumnType, NamedValue, Value, fields};
use hugepage_assess::model::{Product, UseLargePages};
use hugepage_assess::pools::PoolColumns;
use hugepage_assess::status_row::{HostOfServer, StatusRow};
use hugepage_facts::{Cause, Landing, PoolRow, pools};
use hugepage_kernel::cgroups::cgroup::CgroupLimit;
use hugepage_kernel::memory::pool::Pool;
use hugepage_kernel::next_boot::TOLD;
use hugepage_kernel::{Bytes, Pages};

use super::{GIB, MIB, Server, page_size, pool};

#[test]
fn commands_for_root() {
    let (huge, gigantic) = (page_size(2 * MIB), page_size(GIB));
    let own = "echo 'vm.nr_hugepages = 7' > /etc/sysctl.d/90-postgresql-hugepages.conf";
    let edit = "'s#^[-[:space:]]*vm[./]nr_hugepages[[:space:]]*=.*#vm.nr_hugepages = 7#'";
    let copied =
        |from: &str, name: &str| format!("sed -E {edit} {from}/{name} > /etc/sysctl.d/{name}");
    for (file, expected) in [
        (None, own.to_owned()),
        (Some("/proc/cmdline"), own.to_owned()),
        (Some("/etc/sysctl.d/10-huge.conf"), own.to_owned()),
        (Some("/usr/lib/sysctl.d/50-vendor.conf"), own.to_owned()),
        (
            Some("/etc/sysctl.d/90-postgresql-hugepages.conf"),
            own.to_owned(),
        ),
        (
            Some("/etc/sysctl.d/99-sysctl.conf"),
            format!("sed -i -E {edit} /etc/sysctl.d/99-sysctl.conf"),
        ),
        (
            Some("/etc/sysctl.conf"),
            format!("sed -i -E {edit} /etc/sysctl.conf"),
        ),
        (
            Some("/usr/lib/sysctl.d/99-vendor.conf"),
            copied("/usr/lib/sysctl.d", "99-vendor.conf"),
        ),
        (
            Some("/usr/local/lib/sysctl.d/zz.conf"),
            copied("/usr/local/lib/sysctl.d", "zz.conf"),
        ),
    ] {
        assert_eq!(
            set_pool_at_boot(huge, true, Pages(7), file).unwrap(),
            expected,
            "{file:?}"
        );
    }
    assert!(
        set_pool_at_boot(gigantic, false, Pages(7), None)
            .unwrap()
            .contains("hugepagesz=1G hugepages=7")
    );
    for (size, is_default, file) in [(gigantic, false, "/boot/grub/grub.cfg"), (huge, true, TOLD)] {
        let command = set_pool_at_boot(size, is_default, Pages(7), Some(file));
        assert_eq!(command, None, "{file}");
    }
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
        pool: Pool {
            page_size: page_size(size),
            ..pool(nr, 0, 0)
        },
        limit: None,
    };
    let rows = [
        row(None, 2 * MIB, 5),
        row(Some(0), 2 * MIB, 5),
        row(None, GIB, 3),
    ];
    assert_eq!(pools::of_size(&rows, page_size(GIB)), Some(&rows[2]));
    assert_eq!(pools::of_size(&rows, page_size(2 * MIB)), Some(&rows[0]));
    assert_eq!(pools::of_size(&rows[..2], page_size(GIB)), None);
    assert_eq!(
        pools::memory(pools::of_host(&rows)),
        Bytes(10 * MIB + 3 * GIB)
    );
}

fn of_status(status: &Status) -> StatusRow {
    StatusRow::new(status)
}

#[test]
fn row_of_a_status() {
    let huge = of_status(&Server::default().status());
    assert_eq!(
        (huge.landed_in.is_hugetlb(), huge.huge_pages),
        (Some(true), Some("try"))
    );
    assert_eq!(
        (huge.huge_page_bytes, huge.base_page_bytes),
        (Some(Bytes(GIB)), Some(Bytes(0)))
    );
    let base = of_status(&Server::in_base_pages().status());
    assert_eq!(
        (base.landed_in.is_hugetlb(), base.base_page_bytes),
        (Some(false), Some(Bytes(GIB)))
    );
    let unknown = of_status(
        &Server {
            landing: Some(Landing::Unknown),
            ..Server::default()
        }
        .status(),
    );
    assert_eq!(
        (
            unknown.landed_in.is_hugetlb(),
            unknown.huge_page_bytes,
            unknown.base_page_bytes
        ),
        (None, None, None)
    );
    for (use_large_pages, setting) in [(None, None), (Some(UseLargePages::Only), Some("TRUE"))] {
        let mut status = Server::default().status();
        status.facts.requested.product = Product::Oracle {
            use_large_pages,
            memory_target: false,
            is_asm: false,
            may_mix: false,
        };
        assert_eq!(of_status(&status).use_large_pages, setting);
    }
}

/// Holds `rows`, in none of which a column may be null throughout, against the types that these columns declare.
fn assert_types(columns: &[Column], rows: impl IntoIterator<Item = NamedValue>) {
    let rows: Vec<_> = rows.into_iter().collect();
    for column in columns {
        let values = rows.iter().filter(|(name, _)| name == column.name);
        let mut values = values.map(|(_, value)| value).peekable();
        // What the extension adds itself has its values there.
        if values.peek().is_none() {
            continue;
        }
        let known: Vec<_> = values.filter(|value| !value.is_null()).collect();
        assert!(!known.is_empty(), "{} is null in all rows", column.name);
        let fits = |value: &&Value| match column.kind {
            ColumnType::Flag => value.is_boolean(),
            ColumnType::Bytes | ColumnType::Pages | ColumnType::Count | ColumnType::Int => {
                value.is_u64()
            }
            _ => value.is_string(),
        };
        assert!(known.iter().all(fits), "{}: {known:?}", column.name);
    }
}

#[test]
fn rows_have_the_types_that_are_declared() {
    let mut of_oracle = Server::default().status();
    of_oracle.facts.requested.product = Product::Oracle {
        use_large_pages: Some(UseLargePages::Only),
        memory_target: false,
        is_asm: false,
        may_mix: false,
    };
    let statuses = [
        Server::default().status(),
        Server::in_base_pages().status(),
        of_oracle,
    ];
    let rows: Vec<_> = statuses
        .iter()
        .flat_map(|status| {
            fields(&of_status(status)).chain(fields(&HostOfServer::of_status(status)))
        })
        .collect();
    for columns in [columns::STATUS, columns::ORACLE_INSTANCE, columns::JSON] {
        assert_types(columns, rows.clone());
    }
    let limit = CgroupLimit {
        path: String::new(),
        limit: Bytes(GIB),
        usage: Bytes(MIB),
        promised: None,
    };
    let pool = PoolRow {
        node: Some(0),
        is_default: true,
        pool: Pool {
            page_size: page_size(2 * MIB),
            overcommit: Some(Pages(0)),
            ..pool(5, 5, 0)
        },
        limit: Some(limit),
    };
    let row: Vec<_> = fields(&PoolColumns::new(&pool)).collect();
    for columns in [columns::POOLS, columns::ORACLE_POOL] {
        assert_types(columns, row.clone());
    }
}

/// The metrics have a series for each word that there is, and the exporters' queries too.
#[test]
fn words_are_those_that_are_declared() {
    fn texts<T: ToString>(all: &[T]) -> Vec<String> {
        all.iter().map(ToString::to_string).collect()
    }
    let words = |name: &str| {
        let metrics = columns::METRICS_INSTANCE.iter();
        let found = metrics.clone().find(|metric| metric.metric == name);
        texts(found.unwrap().words)
    };
    assert_eq!(words("hugepage_landed_in"), texts(&Landing::ALL));
    assert_eq!(words("hugepage_fallback_cause"), texts(&Cause::ALL));
    assert_eq!(words("hugepage_restart_outlook"), texts(&Outlook::ALL));
    assert_eq!(words("hugepage_crash_outlook"), texts(&Outlook::ALL));
    let finding = columns::FINDINGS[0];
    assert_eq!(finding.words, Finding::NAMES);
    let metrics = [
        columns::METRICS_INSTANCE,
        columns::METRICS_STOPPED,
        columns::METRICS_POOL,
        columns::METRICS_HOST,
    ];
    for metric in metrics.concat() {
        let is_word = matches!(metric.kind, ColumnType::Word(_));
        assert_eq!(is_word, !metric.words.is_empty(), "{}", metric.metric);
    }
}
