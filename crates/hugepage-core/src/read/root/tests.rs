//! Files that stay open, recorded accesses, trees of captured hosts, and links.

use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

/// A file that stays open gives the text of now, and no descriptor is lost.
#[test]
fn a_kept_file_is_read_anew() {
    static OPEN: AtomicUsize = AtomicUsize::new(0);
    let acquire = || OPEN.fetch_add(1, Ordering::Relaxed) < 100;
    let files = KeptFiles::new(acquire, || {
        OPEN.fetch_sub(1, Ordering::Relaxed);
    });
    let root = Root::keeping(&files);
    let descriptor = || root.open_often("/proc/thread-self/comm").unwrap().as_raw_fd();
    let name = || root.read_often("/proc/thread-self/comm", |text| text.trim().to_owned()).unwrap();
    let set = |name: &str| fs::write("/proc/thread-self/comm", name).unwrap();
    set("first");
    assert_eq!(name(), "first");
    let first = descriptor();
    set("second");
    assert_eq!((name(), descriptor()), ("second".to_owned(), first));
    assert!(root.keeps("/proc/thread-self/comm") && !Root::live().keeps("/proc/thread-self/comm"));
    // No file of the kernel's: another one of that name is seen.
    let tree = tempfile::tempdir().unwrap();
    let path = tree.path().join("file").to_str().unwrap().to_owned();
    for text in ["old", "new"] {
        fs::write(tree.path().join("next"), text).unwrap();
        fs::rename(tree.path().join("next"), &path).unwrap();
        assert_eq!(root.read_often(&path, str::to_owned).unwrap(), text);
    }
    assert!(!root.keeps(&path));
    // More files than are kept.
    for number in 0..30 {
        root.read_often(&format!("/proc/{}/comm{}", "self", "/".repeat(number)), |_| ()).ok();
        root.read_often(&format!("/proc{}/self/comm", "/".repeat(number)), |_| ()).unwrap();
    }
    assert_eq!(OPEN.load(Ordering::Relaxed), 16);
    root.kept.as_ref().unwrap().forget("/proc/self/none");
    assert!(root.read_often("/proc/self/none", |_| ()).unwrap_err().is_not_found());
}

/// A survey reads most files once, but not what must be of now at each of its passes.
#[test]
fn a_survey_reads_again() {
    let tree = tempfile::tempdir().unwrap();
    let root = Root::at(tree.path()).for_survey();
    let mut seen = Vec::new();
    for text in ["old", "new"] {
        fs::write(tree.path().join("file"), text).unwrap();
        seen.push([Root::read_often, Root::read_again].map(|read| read(&root, "/file", str::to_owned).unwrap()));
    }
    assert_eq!(seen, [["old", "old"], ["old", "new"]]);
}

/// What is kept of a process that has ended is opened again.
#[test]
fn a_kept_file_that_fails_is_opened_again() {
    let files = KeptFiles::new(|| true, || ());
    let root = Root::keeping(&files);
    let mut child = std::process::Command::new("/bin/sleep").arg("100").spawn().unwrap();
    let path = format!("/proc/{}/stat", child.id());
    root.read_often(&path, |_| ()).unwrap();
    assert!(root.keeps(&path));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(root.read_often(&path, |_| ()).unwrap_err().is_not_found());
    assert!(!root.keeps(&path));
}

#[test]
fn every_look_is_noted_and_files_answer() {
    let (root, record) = Root::live().recording();
    assert!(!root.is_live());
    assert_eq!(root.base_page_size().unwrap(), crate::PageSize::base());
    let _ = root.clone().read("/proc/none");
    let _ = root.list("/proc/self/ns");
    let _ = root.read_link("/proc/self/exe");
    let _ = root.directory("/proc/sys/vm").unwrap().read_number("swappiness");
    root.exists("/sys/kernel/mm");
    let looks: Vec<_> = record.accesses().into_iter().map(|access| (access.path, access.kind)).collect();
    let expected = [
        ("/proc/none", AccessKind::Content),
        ("/proc/self/auxv", AccessKind::Content),
        ("/proc/self/exe", AccessKind::Link),
        ("/proc/self/ns", AccessKind::Names),
        ("/proc/sys/vm/swappiness", AccessKind::Content),
        ("/sys/kernel/mm", AccessKind::Existence),
    ];
    assert_eq!(looks, expected.map(|(path, how)| (path.to_owned(), how)));
}

#[test]
fn what_the_captured_host_refused_is_refused_again() {
    let tree = tempfile::tempdir().unwrap();
    fs::write(tree.path().join(REFUSED), format!("{} /proc/7/maps\nnonsense\n", libc::EACCES)).unwrap();
    let root = Root::at(tree.path());
    let error = root.read("/proc/7/maps").unwrap_err().to_string();
    assert!(error.contains("Permission denied"), "{error}");
    assert!(root.read("/proc/8/maps").unwrap_err().is_not_found());
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
