//! The texts: complete, with the numbers of the host, and none where they would not fit. Scenarios run them.

use hugepage_assess::advice::fix::{NoFix, Target, text};

use super::{GIB, Host, page_size};

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
