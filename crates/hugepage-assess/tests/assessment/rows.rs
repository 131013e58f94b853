//! Rows, pools, commands and stopped servers, as other crates show them.

use hugepage_assess::advice::command::{quoted, set_overcommit, set_pool_at_boot};
use hugepage_assess::model::{Landing, Product, UseLargePages};
use hugepage_assess::pools::{self, PoolRow};
use hugepage_assess::status_row::StatusRow;
use hugepage_assess::stopped_databases::{StoppedDatabase, Wants};
use hugepage_kernel::memory::pool::Pool;
use hugepage_kernel::{Bytes, Pages};

use super::{GIB, MIB, Server, page_size, pool};

#[test]
fn commands_for_root() {
    let (huge, gigantic) = (page_size(2 * MIB), page_size(GIB));
    assert_eq!(set_overcommit(huge, true, Pages(7)), "sysctl -w vm.nr_overcommit_hugepages=7");
    assert_eq!(
        set_overcommit(gigantic, false, Pages(7)),
        "echo 7 > /sys/kernel/mm/hugepages/hugepages-1048576kB/nr_overcommit_hugepages"
    );
    for (file, is_changed_itself) in [
        (None, false),
        (Some("/etc/sysctl.d/10-huge.conf"), false),
        (Some("/etc/sysctl.d/90-postgresql-hugepages.conf"), false),
        (Some("/etc/sysctl.d/99-sysctl.conf"), true),
        (Some("/usr/lib/sysctl.d/99-vendor.conf"), false),
    ] {
        let command = set_pool_at_boot(huge, true, Pages(7), file).unwrap();
        let expected = match file.filter(|_| is_changed_itself) {
            Some(file) => format!("sed -i -E 's#^[- ]*vm[./]nr_hugepages *=.*#vm.nr_hugepages = 7#' {file}"),
            None => "echo 'vm.nr_hugepages = 7' > /etc/sysctl.d/90-postgresql-hugepages.conf".to_owned(),
        };
        assert_eq!(command, expected, "{file:?}");
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
        obtainable_now: None,
    };
    let rows = [row(None, 2 * MIB, 5), row(Some(0), 2 * MIB, 5), row(None, GIB, 3)];
    assert_eq!(pools::of_size(&rows, page_size(GIB)), Some(&rows[2]));
    assert_eq!(pools::of_size(&rows, page_size(2 * MIB)), Some(&rows[0]));
    assert_eq!(pools::of_size(&rows[..2], page_size(GIB)), None);
    assert_eq!(pools::memory(pools::of_host(&rows)), Bytes(10 * MIB + 3 * GIB));
}

#[test]
fn row_of_a_status() {
    let huge = StatusRow::from(&Server::default().status());
    assert_eq!((huge.in_huge_pages, huge.huge_pages), (Some(true), Some("try")));
    assert_eq!((huge.huge_page_bytes, huge.base_page_bytes), (Some(Bytes(GIB)), Some(Bytes(0))));
    let base = StatusRow::from(&Server::in_base_pages().status());
    assert_eq!((base.in_huge_pages, base.base_page_bytes), (Some(false), Some(Bytes(GIB))));
    let unknown = StatusRow::from(&Server { landing: Some(Landing::Unknown), ..Server::default() }.status());
    assert_eq!((unknown.in_huge_pages, unknown.huge_page_bytes, unknown.base_page_bytes), (None, None, None));
    for (use_large_pages, setting) in [(None, None), (Some(UseLargePages::Only), Some("TRUE"))] {
        let mut status = Server::default().status();
        status.facts.requested.product =
            Product::Oracle { use_large_pages, memory_target: false, is_asm: false, may_mix: false };
        assert_eq!(StatusRow::from(&status).use_large_pages, setting);
    }
}

#[test]
fn servers_that_do_not_run() {
    let stopped = |wants| StoppedDatabase {
        kind: "oracle".into(),
        name: "orcl".to_owned(),
        page_size: None,
        wants,
        is_manual: false,
    };
    let [pages, none, unknown] =
        [Wants::Pages(Pages(7), "the alert log".into()), Wants::None("FALSE".into()), Wants::Unknown("why".to_owned())];
    assert_eq!([pages.pages(), none.pages(), unknown.pages()], [Some(Pages(7)), Some(Pages(0)), None]);
    let (size, need) = stopped(pages).need().unwrap();
    assert_eq!((size, &*need.name, need.pages, need.held, need.is_running), (None, "orcl", Pages(7), Pages(0), false));
    assert!(stopped(none).need().is_none() && stopped(unknown).need().is_none());
}
