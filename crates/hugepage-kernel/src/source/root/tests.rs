//! Links.

use std::fs;

use super::*;

/// A container can lay a link, and must not have this program read for it what is the host's.
#[test]
fn links_do_not_lead_out_of_a_container() {
    let tree = tempfile::tempdir().unwrap();
    let of = |path: &str| tree.path().join(path);
    fs::create_dir_all(of("proc/7/root/etc/conf.d")).unwrap();
    fs::create_dir(of("etc")).unwrap();
    fs::write(of("etc/secret"), "the host's").unwrap();
    fs::write(of("proc/7/root/etc/plain"), "its own").unwrap();
    for (link, target) in [
        ("inside", "/etc/plain"),
        ("outside", "/etc/secret"),
        ("above", "../../../../etc/secret"),
    ] {
        std::os::unix::fs::symlink(target, of("proc/7/root/etc").join(link)).unwrap();
    }
    let root = Root::at(tree.path()).below("/proc/7/root");
    assert_eq!(root.read("/etc/plain").unwrap(), "its own");
    assert_eq!(root.read("/etc/inside").unwrap(), "its own");
    for link in ["/etc/outside", "/etc/above"] {
        assert!(root.read(link).unwrap_err().is_not_found(), "{link}");
        assert!(
            !root.exists(link) && root.modified(link).is_none(),
            "{link}"
        );
    }
    assert_eq!(
        root.list("/etc").unwrap(),
        ["above", "conf.d", "inside", "outside", "plain"]
    );
    std::os::unix::fs::symlink("/etc", of("proc/7/root/etc/all")).unwrap();
    assert_eq!(root.list("/etc/all").unwrap().len(), 6);
}
