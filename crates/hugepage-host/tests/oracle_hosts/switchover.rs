//! The pool of a standby's host for a switchover: the larger of what the standby has and what the primary has.

use hugepage_host::Survey;
use hugepage_kernel::PageSize;
use hugepage_oracle::readers::Parameters;
use hugepage_oracle::switchover::PrimaryNeed;

use crate::builder::*;

fn need(survey: &Survey, file: &str) -> Result<PrimaryNeed, String> {
    survey.need_of_primary(&Parameters::of_each_instance(file.as_bytes()), PageSize::from_kib(2048).unwrap())
}

/// The pages of each need of the pool of 2 MB pages, and what is recommended.
fn sized(survey: &Survey, primaries: &[PrimaryNeed]) -> (Vec<(String, u64)>, Option<u64>) {
    let sizings = survey.sizings_for_switchover(&survey.stopped_needs(), primaries, 20);
    let sizing = sizings.into_iter().find(|sizing| sizing.page_size.bytes().0 == 2 * MIB).unwrap();
    let needs = sizing.needs.into_iter().map(|need| (need.name, need.pages.0)).collect();
    (needs, sizing.recommended.map(|pages| pages.0))
}

/// A standby of 4 GB, beside another database.
fn standby(runs: bool) -> OracleHost {
    let host = OracleHost::new(KERNELS[1], 64, (4000, if runs { 1000 } else { 3048 }));
    host.home(DB_HOME);
    host.write("/etc/oratab", &format!("stby:{DB_HOME}:N\n"));
    let parameters =
        ["sga_max_size = 4G", "db_name = \"ORCL\"", "db_unique_name = \"stby\""].map(str::to_owned).to_vec();
    if runs {
        host.run(&Running { sid: "stby", segments: vec![(4 * GIB, 2048)], ..Running::default() });
    }
    host.log("stby", "stby", &host.start(&LoggedStart { parameters, ..LoggedStart::default() }));
    host.run(&Running { pid: 6000, sid: "other", segments: vec![(952 * 2 * MIB, 2048)], ..Running::default() });
    host
}

/// The pages that the pool has and keeps.
const POOL: u64 = 4000;

#[test]
fn the_larger_of_both_counts() {
    for (runs, own) in [(true, 2048), (false, 2052)] {
        let survey = standby(runs).survey();
        let of = |name: &str, pages| (name.to_owned(), pages);
        let (needs, recommended) = sized(&survey, &[]);
        assert!(needs.contains(&of("stby", own)) && recommended == Some(POOL), "{needs:?} {recommended:?}");
        for (file, pages) in [
            ("*.db_name='orcl'\n*.sga_target=8G\n*.db_unique_name='prim'\n", 4100),
            // RAC: the largest of its instances.
            ("*.db_name='orcl'\n*.sga_target=2G\norcl1.sga_target=6G\norcl2.sga_max_size=8G\n", 4100),
            ("*.db_name='orcl'\norcl1.sga_target=8G\n", 4100),
            // The primary is smaller: the standby keeps what it has.
            ("*.db_name='orcl'\n*.sga_target=2G\n", own),
            ("*.db_name='orcl'\n*.sga_target=8G\n*.use_large_pages='FALSE'\n", own),
            ("*.db_name='orcl'\n*.sga_target=8G\n*.memory_target=9G\n", own),
        ] {
            let primary = need(&survey, file).unwrap();
            assert_eq!(primary.instances, ["stby"], "{file}");
            let (needs, recommended) = sized(&survey, &[primary]);
            assert!(needs.contains(&of("stby", pages)) && needs.contains(&of("other", 952)), "{file} {needs:?}");
            assert_eq!((needs.len(), recommended), (2, Some((952 + pages).max(POOL))), "{file}");
        }
    }
}

/// No database here has the name: its pages are counted in addition.
#[test]
fn a_standby_that_is_yet_to_be_made() {
    let survey = standby(true).survey();
    let primary = need(&survey, "*.db_name='SALES'\n*.sga_max_size=1G\n").unwrap();
    assert_eq!(primary.instances, [""; 0]);
    let (needs, recommended) = sized(&survey, &[primary]);
    assert!(needs.contains(&("SALES (a new standby)".to_owned(), 516)), "{needs:?}");
    assert_eq!(recommended, Some(POOL));
}

/// What the standby itself needs is unknown, but not what the primary does.
#[test]
fn a_standby_without_a_size_of_its_own() {
    let host = OracleHost::new(KERNELS[1], 64, (0, 0));
    host.home(DB_HOME);
    host.write("/etc/oratab", &format!("stby:{DB_HOME}:N\n"));
    host.write(&format!("{DB_HOME}/dbs/initstby.ora"), "db_name=orcl\n");
    let survey = host.survey();
    let primary = need(&survey, "db_name=orcl\nsga_target=8G\n").unwrap();
    assert_eq!(sized(&survey, &[primary]), (vec![("stby".to_owned(), 4100)], Some(4100)));
}

#[test]
fn files_that_do_not_tell() {
    let survey = standby(true).survey();
    for (file, why) in [
        ("*.sga_target=8G\n", "it has no DB_NAME"),
        ("", "it has no DB_NAME"),
        ("*.db_name='orcl'\n", "it has neither SGA_MAX_SIZE nor SGA_TARGET"),
        (
            "*.db_name='orcl'\nspfile='+DATA/orcl/spfile.ora'\n",
            "it names another file, +DATA/orcl/spfile.ora: run CREATE PFILE",
        ),
    ] {
        let error = need(&survey, file).unwrap_err();
        assert!(error.starts_with(why), "{file}: {error}");
    }
}
