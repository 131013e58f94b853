//! The texts: complete, with the numbers of the host, and none where they would not fit. Scenarios run them.

use hugepage_assess::advice::fix::{NoFix, Target, text};

use super::{GIB, Host, MIB, page_size};

fn made(host: &Host, target: Target) -> Result<String, NoFix> {
    text(target, &host.context())
}

#[test]
fn every_place_is_filled() {
    let small = Host { huge: false, pool: [0; 5], ..Host::default() };
    let gigantic = Host { page_size: page_size(GIB), ..small.clone() };
    for (host, pages) in [(small, "534"), (gigantic, "2")] {
        for (name, target) in Target::ALL {
            assert_eq!(name.parse(), Ok(target));
            let text = match made(&host, target) {
                Err(NoFix::NotTheDefaultSize(_)) if name == "sysctl" && pages == "2" => continue,
                text => text.unwrap_or_else(|error| panic!("{name}: {error}")),
            };
            // Another @ than that of a place would be as suspicious.
            assert!(!text.contains('@'), "{name}: {text}");
            if target != Target::Postgresql {
                assert!(text.contains(pages), "{name}: {text}");
            }
        }
    }
    assert!("Sysctl".parse::<Target>().is_err());
}

#[test]
fn no_text_that_the_host_cannot_hold() {
    let host = Host { huge: false, pool: [0; 5], shared_buffers: 14 * GIB, ..Host::default() };
    for (name, target) in Target::ALL {
        match made(&host, target) {
            Ok(text) => assert!(name == "postgresql" && text.contains("ALTER SYSTEM SET shared_buffers = '"), "{text}"),
            Err(NoFix::DoesNotFit(reason, hint)) => {
                assert!(reason.contains("exceeds the 6553 that this host can hold"), "{reason}");
                assert!(hint.as_ref().unwrap().starts_with("Reduce shared_buffers to at most "), "{hint:?}");
            }
            Err(other) => panic!("{name}: {other}"),
        }
    }
}

/// Operators add to the settings of a server, so that its segment alone does not suffice.
#[test]
fn operators_get_sixteen_megabytes_more() {
    let host = Host { huge: false, pool: [0; 5], ..Host::default() };
    for target in [Target::Cloudnativepg, Target::Pgo, Target::Zalando] {
        let text = made(&host, target).unwrap();
        assert!(text.contains(&format!("{}Mi", 534 * 2 + 16)), "{text}");
    }
}

/// The numbers of each text, for pages of 2 MB and of 1 GB.
#[test]
fn numbers_of_the_texts() {
    let small = Host { huge: false, pool: [0; 5], parallel: 100 * MIB + 1, ..Host::default() };
    let gigantic = Host { page_size: page_size(GIB), at_boot: None, ..small.clone() };
    for (target, of_small, of_gigantic) in [
        (Target::Systemd, &["PAGES=534", "hugepages-2048kB"][..], &["PAGES=2", "hugepages-1048576kB"][..]),
        (Target::Grub, &["hugepagesz=2M hugepages=534"], &["hugepagesz=1G hugepages=2"]),
        (Target::Ansible, &["pages: 534", "vm.nr_hugepages"], &["pages: 2", "tmpfiles"]),
        (
            Target::Kubernetes,
            &["hugepages-2Mi: 1068Mi", "memory: 2092Mi", "sizeLimit: 101Mi", "huge_page_size=2MB", "postgres:17"],
            &["hugepages-1Gi: 2048Mi", "memory: 3072Mi"],
        ),
        (Target::Cloudnativepg, &["hugepages-2Mi: 1084Mi", "memory: 2092Mi"], &["hugepages-1Gi: 2048Mi"]),
        (Target::Pgo, &["hugepages-2Mi: 1084Mi", "max_connections: 100"], &["huge_page_size: \"1GB\""]),
        (Target::Zalando, &["hugepages-2Mi: 1084Mi", "shared_buffers: \"1024MB\""], &["hugepages-1Gi: 2048Mi"]),
    ] {
        for (host, expected) in [(&small, of_small), (&gigantic, of_gigantic)] {
            let text = made(host, target).unwrap();
            assert!(expected.iter().all(|part| text.contains(part)), "{expected:?}: {text}");
            assert!(!text.starts_with("# Caution"), "{text}");
        }
    }
    assert!(made(&small, Target::Sysctl).unwrap().contains("vm.nr_hugepages = 534"));
    assert_eq!(made(&gigantic, Target::Sysctl), Err(NoFix::NotTheDefaultSize(page_size(GIB))));
    let few = Host { parallel: MIB, ..small.clone() };
    assert!(made(&few, Target::Kubernetes).unwrap().contains("sizeLimit: 64Mi"));
    // Where the page holds more, a segment that ends early in its last page leaves room for what operators add.
    let early = Host { shared_buffers: 3 * GIB / 2, ..gigantic };
    assert!(made(&early, Target::Cloudnativepg).unwrap().contains("hugepages-1Gi: 2048Mi"));
}

/// A pool that leaves little is said at the top, once it has to be made larger.
#[test]
fn a_caution_where_little_is_left() {
    let host =
        Host { huge: false, pool: [0; 5], shared_buffers: 14 * GIB, available: Some(16 * GIB), ..Host::default() };
    let text = made(&host, Target::Grub).unwrap();
    let caution = "# Caution: a pool of 7339 pages leaves 1706 MB to base pages, less than 20% of memory.\n";
    assert!(text.starts_with(caution), "{text}");
    let there = Host { pool: [7339, 7339, 0, 0, 0], ..host };
    assert!(!made(&there, Target::Grub).unwrap().contains("Caution"));
}

#[test]
fn statements_for_psql() {
    let none = "-- Run this with psql as a superuser, then restart the server.\n-- No setting of the server needs to be changed.\n";
    let base = Host { huge: false, pool: [0; 5], ..Host::default() };
    assert_eq!(made(&base, Target::Postgresql).unwrap(), none);
    let sysv = made(&Host { sysv: true, ..base }, Target::Postgresql).unwrap();
    assert!(sysv.ends_with("sysv.\nALTER SYSTEM SET shared_memory_type = 'mmap';\n"), "{sysv}");
}
