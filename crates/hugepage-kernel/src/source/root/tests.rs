//! What a survey reads again, and links.

use std::fs;

use super::*;

/// A survey reads most files once, but not what must be of now at each of its passes.
#[test]
fn a_survey_reads_again() {
    let tree = tempfile::tempdir().unwrap();
    let root = Root::at(tree.path()).for_survey();
    let mut seen = Vec::new();
    for text in ["old", "new"] {
        fs::write(tree.path().join("file"), text).unwrap();
        seen.push([Root::read_once, Root::read_short].map(|read| read(&root, "/file", str::to_owned).unwrap()));
    }
    assert_eq!(seen, [["old", "old"], ["old", "new"]]);
}

/// A container can lay a link, and must not have this program read for it what is the host's.
#[test]
fn links_do_not_lead_out_of_a_container() {
    let tree = tempfile::tempdir().unwrap();
    let of = |path: &str| tree.path().join(path);
    fs::create_dir_all(of("proc/7/root/etc/conf.d")).unwrap();
    fs::create_dir(of("etc")).unwrap();
    fs::write(of("etc/secret"), "the host's").unwrap();
    fs::write(of("proc/7/root/etc/plain"), "its own").unwrap();
    for (link, target) in [("inside", "/etc/plain"), ("outside", "/etc/secret"), ("above", "../../../../etc/secret")] {
        std::os::unix::fs::symlink(target, of("proc/7/root/etc").join(link)).unwrap();
    }
    let root = Root::at(tree.path()).below("/proc/7/root");
    assert_eq!(root.read("/etc/plain").unwrap(), "its own");
    assert_eq!(root.read("/etc/inside").unwrap(), "its own");
    for link in ["/etc/outside", "/etc/above"] {
        assert!(root.read(link).unwrap_err().is_not_found(), "{link}");
        assert!(!root.exists(link) && root.modified(link).is_none(), "{link}");
    }
    assert_eq!(root.list("/etc").unwrap(), ["above", "conf.d", "inside", "outside", "plain"]);
    std::os::unix::fs::symlink("/etc", of("proc/7/root/etc/all")).unwrap();
    assert_eq!(root.list("/etc/all").unwrap().len(), 6);
}
