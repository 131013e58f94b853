//! Whose past a record is.

use hugepage_assess::history::record::InstanceIdentity;

use super::instance;

#[test]
fn past_of() {
    let now = instance();
    let other_machine = || InstanceIdentity {
        machine: "0badc0de".to_owned(),
        ..instance()
    };
    let other_directory = || InstanceIdentity {
        directory: "/var/lib/postgresql/15/standby".to_owned(),
        ..instance()
    };
    let other_cluster = || InstanceIdentity {
        system_identifier: "1".to_owned(),
        ..instance()
    };
    let cases = [
        ("itself", instance(), true),
        (
            "an earlier minor of it",
            InstanceIdentity {
                server_version_num: 150_001,
                ..instance()
            },
            true,
        ),
        (
            "a base backup's origin on this machine",
            other_directory(),
            false,
        ),
        (
            "the same directory of another machine",
            other_machine(),
            false,
        ),
        (
            "another cluster that was in this directory",
            other_cluster(),
            false,
        ),
        (
            "what pg_upgrade made it from, in another directory",
            InstanceIdentity {
                server_version_num: 140_010,
                system_identifier: "1".to_owned(),
                ..other_directory()
            },
            true,
        ),
        (
            "what pg_upgrade made it from, in the same directory",
            InstanceIdentity {
                server_version_num: 140_010,
                ..other_cluster()
            },
            true,
        ),
        (
            "what pg_upgrade made it from, on another machine",
            InstanceIdentity {
                server_version_num: 140_010,
                system_identifier: "1".to_owned(),
                ..other_machine()
            },
            false,
        ),
        (
            "a newer major of another cluster",
            InstanceIdentity {
                server_version_num: 160_004,
                ..other_cluster()
            },
            false,
        ),
        (
            "an older major with the same identifier elsewhere",
            InstanceIdentity {
                server_version_num: 140_010,
                ..other_directory()
            },
            false,
        ),
    ];
    for (what, past, expected) in cases {
        assert_eq!(past.is_past_of(&now), expected, "{what}");
    }
}
