//! Whatever a file holds, a reader does not panic, and garbage beside a well-formed line costs nothing but itself. Where a
//! line could be the one that is looked for (maps), garbage is an error that names it, never a silent loss.

#![allow(clippy::disallowed_methods)]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use hugepage_kernel::cgroups::cgroup::Hierarchy;
use hugepage_kernel::host::mounts;
use hugepage_kernel::mapping::maps::{self, Mapping};
use hugepage_kernel::mapping::{own_mapping, smaps};
use hugepage_kernel::memory::meminfo::Meminfo;
use hugepage_kernel::memory::{pool, thp};
use hugepage_kernel::{Bytes, Notes, PageSize, Root};
use proptest::prelude::*;
use tempfile::TempDir;

const MAPPING: &str = "7f0000000000-7f0000200000 rw-s 00000000 00:01 1028 /dev/zero (deleted)";

/// A tree with these files.
fn tree(files: &[(&str, &[u8])]) -> (TempDir, Root) {
    let directory = tempfile::tempdir().unwrap();
    for (path, content) in files {
        let path = directory.path().join(path);
        fs::create_dir_all(path.parent().unwrap_or(Path::new("/"))).unwrap();
        fs::write(path, content).unwrap();
    }
    let root = Root::at(directory.path());
    (directory, root)
}

fn page_size(kib: u64) -> PageSize {
    PageSize::from_kib(kib).unwrap()
}

/// One line that is nothing, of any characters and of those that the kernel's files are made of.
fn garbage() -> impl Strategy<Value = String> {
    prop_oneof![
        "[^\n\r]{0,60}",
        "[0-9a-f:,/ -]{0,40}",
        "[A-Za-z_]{0,12}:? *[0-9]{0,30}( kB)?"
    ]
}

/// Lines of garbage around `line`.
fn around(line: String) -> impl Strategy<Value = String> {
    let lines = || prop::collection::vec(garbage(), 0..4);
    (lines(), lines()).prop_map(move |(before, after)| {
        let lines: Vec<_> = before
            .into_iter()
            .chain([line.clone()])
            .chain(after)
            .collect();
        lines.join("\n")
    })
}

/// What the files of the kernel are made of, cut and put together at random, or any bytes.
fn contents() -> impl Strategy<Value = Vec<u8>> {
    let pieces = prop::sample::select(vec![
        MAPPING,
        "MemTotal:",
        "18446744073709551615",
        "99999999999999999999",
        " kB",
        "\n",
        " ",
        "-",
        ":",
        "::",
        "0::/",
        "/..",
        "hugetlb",
        "Node 0, zone",
        " DMA",
        "Normal",
        "29 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw",
        " - ",
        "[",
        "]",
        "KernelPageSize:",
        "Rss:",
        "0",
        "1",
        "ffffffffffffffff",
        "\0",
        "\u{fffd}",
        "\\040",
        "max",
    ]);
    prop_oneof![
        prop::collection::vec(pieces, 0..60).prop_map(|pieces| pieces.concat().into_bytes()),
        prop::collection::vec(any::<u8>(), 0..300),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn meminfo_keeps_its_lines_beside_garbage(text in around("PageTables:     5007924 kB".to_owned())) {
        prop_assume!(text.matches("PageTables").count() == 1);
        prop_assert_eq!(Meminfo::parse(&text).page_tables, Some(Bytes(5_007_924 * 1024)));
    }

    /// Whatever the kernel writes about a mapping is read back.
    #[test]
    fn a_mapping_survives_its_text(
        start in 1..u64::MAX / 2,
        size in 1..u64::MAX / 2,
        access in any::<[bool; 3]>(),
        shared in any::<bool>(),
        offset in any::<u64>(),
        device in (0..4096u32, 0..(1u32 << 20)),
        inode in any::<u64>(),
        path in prop_oneof![Just(String::new()), "/[a-zA-Z0-9 ._()/-]{0,40}[a-z)]", Just("[heap]".to_owned())],
    ) {
        let inaccessible = Bytes(if access == [false; 3] { size } else { 0 });
        let mapping =
            Mapping { start, end: start + size, inaccessible, shared, offset, device, inode, path, page_size: None };
        let access: String = access.iter().zip(['r', 'w', 'x']).map(|(is_set, letter)| if *is_set { letter } else { '-' }).collect();
        let flag = if shared { 's' } else { 'p' };
        let head = format!("{start:08x}-{:08x} {access}{flag} {offset:08x} {:02x}:{:02x} {inode} ", mapping.end, device.0, device.1);
        let line = if mapping.path.is_empty() { head } else { format!("{head:<73}{}", mapping.path) };
        prop_assert_eq!(maps::parse(&line), Some(mapping));
    }
}

proptest! {
    // Each case writes files, so these are fewer.
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_content_makes_a_reader_panic(content in contents(), other in contents(), address in any::<u64>()) {
        let text = String::from_utf8_lossy(&content);
        let _ = (maps::parse(&text), Meminfo::parse(&text));
        let (_directory, root) = tree(&[
            ("proc/meminfo", &content),
            ("proc/self/auxv", &content),
            ("proc/self/maps", &content),
            ("proc/self/smaps", &other),
            ("proc/self/cgroup", &content),
            ("proc/self/mountinfo", &other),
            ("sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", &content),
            ("sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", &other),
            ("sys/kernel/mm/transparent_hugepage/enabled", &content),
            ("sys/fs/cgroup/hugetlb.2MB.max", &content),
        ]);
        let _ = (Meminfo::read(&root), own_mapping::at(&root, address), root.base_page_size());
        let _ = (pool::pool(&root, page_size(2048)), pool::memory(&root), thp::choice(&root, "enabled"));
        let _ = smaps::usage_of(&root, &maps::parse(MAPPING).unwrap());
        if let Ok(Some(hierarchy)) = Hierarchy::find(&root) {
            let mut notes = Notes::default();
            let limits = hierarchy.limits(&root, page_size(2048), &mut notes);
            prop_assert!(notes.into_vec().is_empty() || limits.hidden_levels, "what can't be read is not taken for none");
        }
    }

    #[test]
    fn smaps_keeps_its_lines_beside_garbage(fields in around("Rss:              204800 kB".to_owned())) {
        prop_assume!(fields.matches("Rss").count() == 1 && fields.lines().all(|line| maps::parse(line).is_none()));
        let (_directory, root) = tree(&[("proc/self/smaps", format!("{MAPPING}\n{fields}\n").as_bytes())]);
        let usage = smaps::usage_of(&root, &maps::parse(MAPPING).unwrap()).unwrap().unwrap();
        prop_assert_eq!(usage.resident, Bytes(204_800 * 1024));
    }

    #[test]
    fn cgroup_and_mountinfo_keep_their_lines_beside_garbage(
        memberships in around("0::/a.slice".to_owned()),
        mounts in around("30 22 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate".to_owned()),
    ) {
        prop_assume!(memberships.matches("0::").count() == 1 && !memberships.contains("hugetlb"));
        let (_directory, root) = tree(&[
            ("proc/self/cgroup", memberships.as_bytes()),
            ("proc/self/mountinfo", mounts.as_bytes()),
            ("sys/fs/cgroup/a.slice/hugetlb.2MB.max", b"4194304\n"),
            ("sys/fs/cgroup/a.slice/hugetlb.2MB.current", b"2097152\n"),
        ]);
        let mut notes = Notes::default();
        let limits = Hierarchy::find(&root).unwrap().unwrap().limits(&root, page_size(2048), &mut notes);
        prop_assert_eq!(limits.fault.iter().min_by_key(|limit| limit.limit).map(|limit| (limit.limit, limit.usage)), Some((Bytes(4 << 20), Bytes(2 << 20))));
        prop_assert!(notes.into_vec().is_empty() && !limits.hidden_levels);
    }

    #[test]
    fn maps_finds_the_line_or_names_the_garbage(text in around(MAPPING.to_owned())) {
        let (_directory, root) = tree(&[("proc/self/maps", text.as_bytes())]);
        match maps::read(&root, maps::SELF, |_| true) {
            Ok(mappings) => prop_assert!(mappings.iter().any(|mapping| mapping.holds(0x7f00_0010_0000))),
            Err(error) => {
                let bad = text.lines().find(|line| maps::parse(line).is_none()).unwrap();
                prop_assert!(error.to_string().contains(bad), "{error}");
            }
        }
    }
}

/// Only what lies side by side in memory and in the same object is one mapping.
#[test]
fn neighbours_that_are_one_mapping_or_two() {
    let first = "1000-3000 rw-s 00004000 00:01 5 /dev/zero (deleted)";
    for (what, second, mappings) in [
        (
            "the next pages of the object",
            "3000-4000 rw-s 00006000 00:01 5 /dev/zero (deleted)",
            1,
        ),
        (
            "the same, protected otherwise",
            "3000-4000 ---s 00006000 00:01 5 /dev/zero (deleted)",
            1,
        ),
        (
            "a gap in memory",
            "4000-5000 rw-s 00006000 00:01 5 /dev/zero (deleted)",
            2,
        ),
        (
            "later pages",
            "3000-4000 rw-s 00007000 00:01 5 /dev/zero (deleted)",
            2,
        ),
        (
            "the same pages again",
            "3000-4000 rw-s 00004000 00:01 5 /dev/zero (deleted)",
            2,
        ),
        (
            "another object",
            "3000-4000 rw-s 00006000 00:01 6 /dev/zero (deleted)",
            2,
        ),
        (
            "another device",
            "3000-4000 rw-s 00006000 00:02 5 /dev/zero (deleted)",
            2,
        ),
        (
            "a private copy",
            "3000-4000 rw-p 00006000 00:01 5 /dev/zero (deleted)",
            2,
        ),
    ] {
        let (_directory, root) =
            tree(&[("proc/self/maps", format!("{first}\n{second}\n").as_bytes())]);
        assert_eq!(
            maps::read(&root, maps::SELF, |_| true).unwrap().len(),
            mappings,
            "{what}"
        );
    }
}

/// A container has the host's root below its own, and the kernel shows it the groups of others from its own group on, without the names
/// of those above.
#[test]
fn a_container_sees_the_groups_of_others_where_the_host_is_mounted() {
    const NAMESPACE: &str = "cgroup:[4026532177]";
    let limit = ("hugetlb.2MB.max", &b"4194304\n"[..]);
    let usage = ("hugetlb.2MB.current", &b"0\n"[..]);
    let own = "kubepods/burstable/pod1/beside";
    let (pod, manifest) = ("kubepods/burstable/pod2/77", "hugepages-2Mi");
    let service = "/sys/fs/cgroup/system.slice/x.service/hugetlb.2MB.max";
    for (what, parents, members, membership, group, nested, path, hidden) in [
        (
            "beside",
            4,
            own,
            "/../../pod2/77",
            pod,
            false,
            Some(manifest),
            false,
        ),
        (
            "of another quality",
            4,
            own,
            "/../../../besteffort/pod2/77",
            "kubepods/besteffort/pod2/77",
            false,
            Some(manifest),
            false,
        ),
        (
            "of the host",
            4,
            own,
            "/../../../../system.slice/x.service",
            "system.slice/x.service",
            false,
            Some(service),
            false,
        ),
        (
            "a name twice",
            4,
            own,
            "/../../pod2/77",
            "kubepods/besteffort/pod2/77",
            false,
            None,
            false,
        ),
        (
            "a node that is a container",
            4,
            own,
            "/../../pod2/77",
            pod,
            true,
            Some(manifest),
            true,
        ),
        (
            "a part of the host's",
            3,
            own,
            "/../../pod2/77",
            pod,
            false,
            None,
            true,
        ),
        (
            "not in its group",
            4,
            "kubepods/pod1",
            "/../../pod2/77",
            pod,
            false,
            None,
            true,
        ),
    ] {
        let file = |group: &str, name: &str| format!("sys/fs/cgroup/{group}/{name}");
        let mut files = vec![
            ("proc/42/cgroup".to_owned(), &b"0::/\n"[..]),
            ("proc/1/cgroup".to_owned(), b"0::/../../../../init.scope\n"),
            (file("", "cgroup.procs"), b"2\n"),
            (file(own, "cgroup.procs"), b"7\n"),
            (file(own, limit.0), b"0\n"),
            (file(own, usage.0), b"0\n"),
            (file("kubepods/pod0/x", "cgroup.procs"), b"420\n"),
            (file(members, "cgroup.procs"), b"41\n42\n"),
            (file(group, limit.0), limit.1),
            (file(group, usage.0), usage.1),
        ];
        if nested {
            files.push((file("", "cgroup.events"), b"populated 1\n"));
        }
        let membership = format!("0::{membership}\n");
        files.push(("proc/8/cgroup".to_owned(), membership.as_bytes()));
        let files: Vec<_> = files.iter().map(|(path, text)| (&**path, *text)).collect();
        let (directory, root) = tree(&files);
        let of = |path: &str| directory.path().join(path);
        let mounts = [
            "22 1 0:50 / / rw - overlay overlay rw,upperdir=/x".to_owned(),
            "30 22 0:26 / /sys/fs/cgroup ro - cgroup2 cgroup ro".to_owned(),
            "31 22 8:1 /var/lib/kubelet/pods/1/etc-hosts /etc/hosts rw - ext4 /dev/sda1 rw"
                .to_owned(),
            format!(
                "32 22 8:1 / {} ro - ext4 /dev/sda1 rw",
                directory.path().display()
            ),
            format!(
                "33 32 0:26 {} {} ro - cgroup2 cgroup rw",
                "/..".repeat(parents),
                of("sys/fs/cgroup").display()
            ),
        ];
        fs::write(of("proc/42/mountinfo"), mounts.join("\n")).unwrap();
        fs::create_dir(of("proc/42/ns")).unwrap();
        symlink(NAMESPACE, of("proc/42/ns/cgroup")).unwrap();
        symlink("42", of("proc/self")).unwrap();
        let found = Hierarchy::find(&root).unwrap().unwrap();
        let of_process =
            |process| found.limits_of(&root, process, page_size(2048), &mut Notes::default());
        let limits = of_process("8");
        let paths: Vec<_> = limits.fault.iter().map(|limit| &*limit.path).collect();
        assert_eq!(
            (paths, limits.hidden_levels),
            (Vec::from_iter(path), hidden),
            "{what}"
        );
        assert_eq!(mounts::seen_at(&root, "/").unwrap().kind, "ext4");
    }
}

/// Cases of cgroup paths that decide whether a limit is seen, missed or told to be missed.
#[test]
fn cgroups_below_other_mounts() {
    let mount =
        |root: &str, point: &str| format!("30 22 0:26 {root} {point} rw - cgroup2 cgroup2 rw\n");
    let limit = ("sys/fs/cgroup/hugetlb.2MB.max", &b"4194304\n"[..]);
    let usage = ("sys/fs/cgroup/hugetlb.2MB.current", &b"0\n"[..]);
    for (what, membership, mounts, limits, hidden, notes) in [
        (
            "the container's own part",
            "0::/a.slice/b.scope",
            mount("/a.slice/b.scope", "/sys/fs/cgroup"),
            1,
            true,
            0,
        ),
        (
            "a namespace",
            "0::/",
            mount("/a.slice/b.scope", "/sys/fs/cgroup"),
            1,
            true,
            0,
        ),
        (
            "a sibling with the same beginning",
            "0::/a.slice/b.scopes",
            mount("/a.slice/b.scope", "/sys/fs/cgroup"),
            0,
            true,
            1,
        ),
        (
            "outside",
            "0::/../c.scope",
            mount("/", "/sys/fs/cgroup"),
            0,
            true,
            1,
        ),
        (
            "mounted from outside the namespace",
            "0::/",
            mount("/../..", "/sys/fs/cgroup"),
            0,
            true,
            1,
        ),
        (
            "the host's top has no limits",
            "0::/",
            mount("/", "/sys/fs/cgroup"),
            0,
            false,
            0,
        ),
    ] {
        let files = [
            ("proc/self/cgroup", membership.as_bytes()),
            ("proc/self/mountinfo", mounts.as_bytes()),
            limit,
            usage,
        ];
        let (_directory, root) = tree(&files);
        let mut found_notes = Notes::default();
        let found = Hierarchy::find(&root).unwrap().unwrap().limits(
            &root,
            page_size(2048),
            &mut found_notes,
        );
        assert_eq!(
            (found.fault.len(), found.hidden_levels),
            (limits, hidden),
            "{what}"
        );
        assert_eq!(found_notes.into_vec().len(), notes, "{what}");
    }
}

#[test]
fn a_limit_that_is_no_number_is_a_note() {
    let mounts = b"30 22 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
    for (content, fault, notes) in [
        ("max\n", 0, 0),
        ("0\n", 1, 0),
        ("4611686018427387904\n", 0, 0),
        ("\n", 0, 1),
        ("-1\n", 0, 1),
    ] {
        let (_directory, root) = tree(&[
            ("proc/self/cgroup", b"0::/a\n"),
            ("proc/self/mountinfo", mounts),
            ("sys/fs/cgroup/a/hugetlb.2MB.max", content.as_bytes()),
            ("sys/fs/cgroup/a/hugetlb.2MB.current", b"0\n"),
        ]);
        let mut found_notes = Notes::default();
        let found = Hierarchy::find(&root).unwrap().unwrap().limits(
            &root,
            page_size(2048),
            &mut found_notes,
        );
        assert_eq!(
            (found.fault.len(), found_notes.into_vec().len()),
            (fault, notes),
            "{content:?}"
        );
        assert_eq!(found.hidden_levels, notes > 0, "{content:?}");
    }
}

/// An update of systemd may mount it so; only a limit of memory makes anything unknown.
#[test]
fn a_limit_of_memory_that_counts_huge_pages_is_hidden() {
    let mounts =
        |options: &str| format!("30 22 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw{options}\n");
    for (options, high, parent, hidden) in [
        (",memory_hugetlb_accounting", "max\n", "max\n", None),
        (
            ",memory_hugetlb_accounting",
            "4096\n",
            "max\n",
            Some("a/b/memory.high"),
        ),
        (
            ",memory_hugetlb_accounting",
            "max\n",
            "4096\n",
            Some("a/memory.max"),
        ),
        ("", "4096\n", "4096\n", None),
    ] {
        let (_directory, root) = tree(&[
            ("proc/self/cgroup", b"0::/a/b\n"),
            ("proc/self/mountinfo", mounts(options).as_bytes()),
            ("sys/fs/cgroup/a/b/memory.high", high.as_bytes()),
            ("sys/fs/cgroup/a/memory.max", parent.as_bytes()),
        ]);
        let mut notes = Notes::default();
        let found =
            Hierarchy::find(&root)
                .unwrap()
                .unwrap()
                .limits(&root, page_size(2048), &mut notes);
        let notes = notes.into_vec();
        assert_eq!(
            (found.hidden_levels, notes.len()),
            (hidden.is_some(), usize::from(hidden.is_some())),
            "{notes:?}"
        );
        assert!(
            hidden
                .is_none_or(|file| notes[0].starts_with(&format!("/sys/fs/cgroup/{file} counts"))),
            "{notes:?}"
        );
    }
}

/// The nearest cgroup that has the controller counts what its processes were refused, not the siblings' parent.
#[test]
fn refusals_are_those_of_the_own_cgroup() {
    let mounts = b"30 22 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
    for (own, refusals) in [
        (Some("max 0\n"), Some(("a/b", 0))),
        (Some("other 4\nmax 3\n"), Some(("a/b", 3))),
        (None, Some(("a", 7))),
    ] {
        let mut files: Vec<(&str, &[u8])> = vec![
            ("proc/self/cgroup", b"0::/a/b\n"),
            ("proc/self/mountinfo", mounts),
            ("sys/fs/cgroup/a/hugetlb.2MB.events", b"max 7\n"),
        ];
        files.extend(own.map(|text| ("sys/fs/cgroup/a/b/hugetlb.2MB.events", text.as_bytes())));
        let (_directory, root) = tree(&files);
        let found = Hierarchy::find(&root).unwrap().unwrap().limits(
            &root,
            page_size(2048),
            &mut Notes::default(),
        );
        let expected = refusals
            .map(|(group, count)| (format!("/sys/fs/cgroup/{group}/hugetlb.2MB.events"), count));
        assert_eq!(found.refusals, expected, "{own:?}");
    }
}

/// Version 1 has a counter for each of the two limits.
#[test]
fn refusals_of_version_1() {
    let mounts = b"30 22 0:26 / /sys/fs/cgroup/hugetlb rw - cgroup cgroup rw,hugetlb\n";
    for (fault, reservation, refusals) in
        [("0", "4", ("rsvd.failcnt", 4)), ("5", "0", ("failcnt", 5))]
    {
        let (_directory, root) = tree(&[
            ("proc/self/cgroup", b"5:hugetlb:/a/b\n"),
            ("proc/self/mountinfo", mounts),
            (
                "sys/fs/cgroup/hugetlb/a/b/hugetlb.2MB.failcnt",
                fault.as_bytes(),
            ),
            (
                "sys/fs/cgroup/hugetlb/a/b/hugetlb.2MB.rsvd.failcnt",
                reservation.as_bytes(),
            ),
            ("sys/fs/cgroup/hugetlb/a/hugetlb.2MB.failcnt", b"9\n"),
        ]);
        let found = Hierarchy::find(&root).unwrap().unwrap().limits(
            &root,
            page_size(2048),
            &mut Notes::default(),
        );
        let (file, count) = refusals;
        assert_eq!(
            found.refusals,
            Some((
                format!("/sys/fs/cgroup/hugetlb/a/b/hugetlb.2MB.{file}"),
                count
            ))
        );
    }
}

#[test]
fn a_file_without_end_is_refused() {
    let (_directory, root) = tree(&[("proc/meminfo", &vec![b'x'; 40 << 20])]);
    let error = Meminfo::read(&root).unwrap_err().to_string();
    assert!(error.contains("longer than 16777216 bytes"), "{error}");
}

/// The file of a pod's limit is written anew with each container, so its manifest is named, for the group of all pods, too.
#[test]
fn limits_of_pods_are_of_their_manifests() {
    let pod = "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1.slice";
    let etc_hosts =
        "40 30 8:1 /var/lib/kubelet/pods/1/etc-hosts /etc/hosts rw - ext4 /dev/sda1 rw\n";
    for (membership, root, kubelet, group, name) in [
        (
            format!("0::/{pod}/77"),
            "/",
            "",
            format!("/{pod}/77"),
            "hugepages-2Mi",
        ),
        (
            format!("0::/{pod}/77"),
            "/",
            "",
            format!("/{pod}"),
            "hugepages-2Mi",
        ),
        (
            "0::/kubepods/pod1/77".to_owned(),
            "/",
            "",
            "/kubepods/pod1/77".to_owned(),
            "hugepages-2Mi",
        ),
        (
            format!("0::/{pod}/77"),
            "/",
            "",
            "/kubepods.slice".to_owned(),
            "hugepages-2Mi",
        ),
        (
            "0::/a/libpod-1".to_owned(),
            "/",
            "",
            "/a/libpod-1".to_owned(),
            "/sys/fs/cgroup/a/libpod-1/hugetlb.2MB.max",
        ),
        (
            "0::/".to_owned(),
            "/x",
            etc_hosts,
            String::new(),
            "hugepages-2Mi",
        ),
        (
            "0::/".to_owned(),
            "/x",
            "",
            String::new(),
            "/sys/fs/cgroup/hugetlb.2MB.max",
        ),
        (
            "0::/a".to_owned(),
            "/",
            etc_hosts,
            "/a".to_owned(),
            "/sys/fs/cgroup/a/hugetlb.2MB.max",
        ),
    ] {
        let mounts = format!("30 22 0:26 {root} /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n{kubelet}");
        let file = |name| format!("sys/fs/cgroup{group}/hugetlb.2MB.{name}");
        let (_directory, root) = tree(&[
            ("proc/self/cgroup", membership.as_bytes()),
            ("proc/self/mountinfo", mounts.as_bytes()),
            (&file("max"), b"0\n"),
            (&file("current"), b"0\n"),
        ]);
        let mut notes = Notes::default();
        let found = Hierarchy::find(&root).unwrap().unwrap();
        let found = found.limits(&root, page_size(2048), &mut notes);
        let names: Vec<_> = found.fault.iter().map(|limit| &*limit.path).collect();
        assert_eq!(names, [name], "{membership} {group}");
    }
}
