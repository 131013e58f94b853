//! The parser of the kernel's command line, compared with what kernels were seen to make of each line of the lab's table.

use hugepage_kernel::next_boot::command_line::CommandLine;
use hugepage_kernel::next_boot::machine::Machine;
use hugepage_kernel::next_boot::pool_at_boot::PoolAtBoot;
use hugepage_kernel::next_boot::releases::Releases;
use hugepage_kernel::{Bytes, PageSize};

const TABLE: &str = include_str!("../../../tests/lab/command-lines.tsv");

#[test]
fn every_command_line_that_was_booted() {
    let (huge, gigantic) = (PageSize::from_kib(2048).unwrap(), PageSize::from_kib(1 << 20).unwrap());
    let machine = Machine {
        sizes: Some(vec![huge, gigantic]),
        running_default: Some(huge),
        own_default: Some(huge),
        nodes: Some(vec![0, 1]),
        memory: Some(Bytes(6 << 30)),
        ..Machine::default()
    };
    let mut rows = TABLE.lines().filter(|line| !line.starts_with('#')).map(|line| line.split('\t'));
    let releases: Vec<_> = rows.next().unwrap().skip(1).collect();
    assert!(releases.len() >= 4, "{releases:?}");
    let (mut wrong, mut compared) = (Vec::new(), 0);
    for mut row in rows {
        let words = row.next().unwrap();
        for (release, booted) in releases.iter().zip(row).filter(|(_, booted)| !booted.is_empty()) {
            let line = CommandLine::read(words, "/proc/cmdline", &Releases::running(Some(release)), &machine);
            let pages = |size| match line.pool(size) {
                PoolAtBoot::Set { pages, .. } => pages.to_string(),
                PoolAtBoot::Unset => "0".to_owned(),
                PoolAtBoot::Unknown(_) => "?".to_owned(),
            };
            let default = if line.default_size == Ok(gigantic) { "1G" } else { "2M" };
            let read = format!("{default} {} {}", pages(huge), pages(gigantic));
            let is_honest = read
                .split(' ')
                .zip(booted.replace('-', "0").split(' '))
                .all(|(read, booted)| read == booted || read == "?");
            compared += 1;
            // Only areas for gigantic pages depend on more than the release.
            if !is_honest || read.contains('?') && !words.contains("cma") {
                wrong.push(format!("Linux {release}: {words}: read {read}, booted {booted}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {compared}:\n{}", wrong.len(), wrong.join("\n"));
}
