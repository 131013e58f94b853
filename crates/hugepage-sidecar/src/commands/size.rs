//! `size`: the pools that the host should have, for what runs and for what is only configured.

use std::path::PathBuf;

use clap::Args;
use hugepage_core::advise::command::set_pool;
use hugepage_core::assess::Sizing;
use hugepage_core::assess::oracle_size::{Segment, hugepages_settings, script_knows_kernel};
use hugepage_core::read::{Root, sysctl, sysvipc};
use hugepage_core::survey::down::{self, Down, Wants};
use hugepage_core::survey::instances::{Instance, Kind, Survey, memlock_counts};
use hugepage_core::{Bytes, Notes, PageSize, Pages};
use serde::Serialize;

use super::status::{Look, look};
use crate::exit::{self, Exit};
use crate::show::table::{or_unknown, table, wrapped};
use crate::show::{Format, json};
use crate::stopped;

/// Options of `size`.
#[derive(Clone, Debug, Args)]
pub struct Options {
    #[command(flatten)]
    look: Look,
    /// A data directory of a PostgreSQL server that is down; more are found where packages put them
    #[arg(long, value_name = "DIR")]
    postgresql_data: Vec<PathBuf>,
    /// Count only what runs
    #[arg(long)]
    running_only: bool,
    /// Show how hugepages_settings.sh (MOS 401749.1) would have counted, and why it differs
    #[arg(long)]
    explain: bool,
    /// How to print it
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// A host's sizing, with all that it was worked out from.
pub struct Sized {
    pub survey: Survey,
    pub down: Vec<Down>,
    pub sizings: Vec<Sizing>,
    pub notes: Vec<String>,
}

/// Works it out.
pub fn of(root: &Root, options: &Look, postgresql_data: &[PathBuf], running_only: bool) -> Sized {
    let (survey, _) = look(root, options);
    let mut notes = Notes::default();
    let mut down = Vec::new();
    if !running_only {
        down = down::oracle(root, &survey, &mut notes);
        down.extend(stopped::clusters(root, &survey, postgresql_data, &mut notes));
    }
    let needs: Vec<_> = down.iter().filter_map(Down::need).collect();
    let sizings = survey.sizings(&needs, options.reserve_percent);
    Sized { survey, down, sizings, notes: notes.into_vec() }
}

pub fn run(root: &Root, options: &Options) -> anyhow::Result<Exit> {
    let sized = of(root, &options.look, &options.postgresql_data, options.running_only);
    let out = Out::of(root, &sized, options);
    match options.format {
        Format::Json => json(&out)?,
        Format::Csv => csv(&out)?,
        Format::Table => print(&out),
    }
    let known = out.not_counted.iter().all(|one| one.is_known);
    let complete = known && out.pools.iter().all(|pool| pool.recommended_nr_hugepages.is_some());
    Ok(match out.pools.iter().any(|pool| !pool.does_not_fit.is_empty()) {
        true => exit::WARNING,
        false if complete => exit::OK,
        false => exit::UNKNOWN,
    })
}

/// What is printed.
#[derive(Debug, Serialize)]
struct Out {
    pools: Vec<PoolOut>,
    /// Servers that count nothing, or whose need is not known, and why.
    not_counted: Vec<NotCounted>,
    /// For limits.conf(5), for the owner of the Oracle instance with the largest SGA; null if none runs.
    memlock_kb: Option<u64>,
    /// `vm.hugetlb_shm_group` now.
    hugetlb_shm_group: Option<String>,
    /// Whether this kernel lets Oracle have huge pages by memlock alone, without that group.
    memlock_is_enough: Option<bool>,
    hugepages_settings_sh: Option<Script>,
    notes: Vec<String>,
}

#[derive(Debug, Serialize)]
struct PoolOut {
    page_size: u64,
    is_default: bool,
    nr_hugepages: u64,
    /// Null: somebody's need could not be seen, so any number may be too small.
    recommended_nr_hugepages: Option<u64>,
    needed_in_all: u64,
    capacity: Option<u64>,
    remains_for_base_pages: Option<u64>,
    held_by_others: u64,
    needs: Vec<NeedOut>,
    does_not_fit: Vec<MisfitOut>,
    command: Option<String>,
}

#[derive(Debug, Serialize)]
struct NeedOut {
    instance: String,
    is_running: bool,
    pages: u64,
    held: u64,
}

#[derive(Debug, Serialize)]
struct MisfitOut {
    instance: String,
    pages: u64,
    over: u64,
}

#[derive(Debug, Serialize)]
struct NotCounted {
    instance: String,
    kind: String,
    why: String,
    is_known: bool,
}

/// What the script would have said.
#[derive(Debug, Serialize)]
struct Script {
    pages: u64,
    knows_this_kernel: bool,
    gives_up: bool,
    one_page_too_many_for_each_segment: u64,
    of_segments_that_are_not_oracles: u64,
    skipped_small_segments: u64,
}

impl Out {
    fn of(root: &Root, sized: &Sized, options: &Options) -> Self {
        let Sized { survey, down, sizings, .. } = sized;
        let default = survey.meminfo.as_ref().and_then(|meminfo| meminfo.huge_page_size);
        let mut notes = sized.notes.clone();
        notes.extend(survey.notes.iter().cloned());
        notes.extend(survey.instances.iter().flat_map(|instance| instance.notes.iter().cloned()));
        Self {
            pools: sizings.iter().map(|sizing| pool(survey, sizing, default)).collect(),
            not_counted: not_counted(survey, down),
            memlock_kb: survey.instances.iter().filter_map(sga).max().map(|size| size.0.div_ceil(1024)),
            memlock_is_enough: sysctl::running(root, "kernel.osrelease")
                .ok()
                .flatten()
                .map(|release| memlock_counts(&release)),
            hugetlb_shm_group: sysctl::running(root, "vm.hugetlb_shm_group").ok().flatten(),
            hugepages_settings_sh: options.explain.then(|| script(root, survey, default)).flatten(),
            notes,
        }
    }
}

fn pool(survey: &Survey, sizing: &Sizing, default: Option<PageSize>) -> PoolOut {
    let size = sizing.page_size;
    let is_default = default == Some(size);
    let row = survey.pools.iter().find(|row| row.node.is_none() && row.pool.page_size == size);
    let now = row.map_or(Pages(0), |row| row.pool.nr.saturating_sub(row.pool.surplus.unwrap_or_default()));
    PoolOut {
        page_size: size.bytes().0,
        is_default,
        nr_hugepages: row.map_or(0, |row| row.pool.nr.0),
        recommended_nr_hugepages: sizing.recommended.map(|pages| pages.0),
        needed_in_all: sizing.total.0,
        capacity: sizing.capacity.map(|pages| pages.0),
        remains_for_base_pages: sizing.remains.map(|size| size.0),
        held_by_others: sizing.others.0,
        needs: sizing
            .needs
            .iter()
            .map(|need| NeedOut {
                instance: need.name.clone(),
                is_running: need.is_running,
                pages: need.pages.0,
                held: need.held.0,
            })
            .collect(),
        does_not_fit: sizing
            .misfits
            .iter()
            .map(|misfit| MisfitOut { instance: misfit.name.clone(), pages: misfit.pages.0, over: misfit.over.0 })
            .collect(),
        command: sizing.recommended.filter(|wanted| *wanted != now).map(|wanted| set_pool(size, is_default, wanted)),
    }
}

fn not_counted(survey: &Survey, down: &[Down]) -> Vec<NotCounted> {
    let running = survey.instances.iter().filter_map(|instance| {
        let facts = &instance.status.facts;
        let (why, is_known) = match &facts.segment {
            None => ("its shared memory can't be seen: run this as root", false),
            Some(_) if instance.need().pages > Pages(0) => return None,
            Some(_) if facts.asked.never_in_huge_pages() => ("its shared memory can't be in huge pages", true),
            Some(_) => ("it was not asked to use huge pages", true),
        };
        Some(NotCounted {
            instance: instance.name.clone(),
            kind: instance.kind.to_string(),
            why: why.to_owned(),
            is_known,
        })
    });
    let down = down.iter().filter_map(|down| {
        let (why, is_known) = match &down.wants {
            Wants::Pages(..) => return None,
            Wants::None(why) => ((*why).to_owned(), true),
            Wants::Unknown(why) => (why.clone(), false),
        };
        Some(NotCounted { instance: down.name.clone(), kind: down.kind.to_owned(), why, is_known })
    });
    running.chain(down).collect()
}

/// What an Oracle instance has to be allowed to lock.
fn sga(instance: &Instance) -> Option<Bytes> {
    (instance.kind != Kind::PostgreSql).then(|| Some(instance.status.facts.segment.as_ref()?.to_reserve)).flatten()
}

fn script(root: &Root, survey: &Survey, default: Option<PageSize>) -> Option<Script> {
    let segments = sysvipc::read(root).ok().flatten()?;
    let of_oracle = |shmid: u64| {
        let oracles = survey.instances.iter().filter(|instance| instance.kind != Kind::PostgreSql);
        oracles
            .flat_map(|instance| instance.memory.iter().flat_map(|memory| &memory.mappings))
            .any(|one| one.inode == shmid)
    };
    let segments = segments.iter().map(|segment| Segment { size: segment.size, of_oracle: of_oracle(segment.shmid) });
    let count = hugepages_settings(segments, default?);
    let release = sysctl::running(root, "kernel.osrelease").ok().flatten().unwrap_or_default();
    Some(Script {
        pages: count.pages.0,
        knows_this_kernel: script_knows_kernel(&release),
        gives_up: count.gives_up,
        one_page_too_many_for_each_segment: count.one_each.0,
        of_segments_that_are_not_oracles: count.of_others.0,
        skipped_small_segments: count.skipped.0,
    })
}

fn csv(out: &Out) -> anyhow::Result<()> {
    let mut writer = csv::Writer::from_writer(std::io::stdout());
    writer.write_record(["page_size", "instance", "is_running", "pages", "held", "does_not_fit_by"])?;
    for pool in &out.pools {
        for need in &pool.needs {
            let misfit = pool.does_not_fit.iter().find(|misfit| misfit.instance == need.instance);
            writer.write_record([
                pool.page_size.to_string(),
                need.instance.clone(),
                need.is_running.to_string(),
                need.pages.to_string(),
                need.held.to_string(),
                misfit.map(|misfit| misfit.over.to_string()).unwrap_or_default(),
            ])?;
        }
    }
    writer.flush()?;
    Ok(())
}

fn print(out: &Out) {
    for pool in &out.pools {
        print_pool(pool);
    }
    for one in &out.not_counted {
        println!("{}", wrapped(&format!("not counted: {} {}: {}", one.kind, one.instance, one.why), 0, 2));
    }
    if let Some(memlock) = out.memlock_kb {
        println!("memlock of Oracle's owner (limits.conf): at least {memlock} kB");
        let group = or_unknown(out.hugetlb_shm_group.clone());
        let what = match out.memlock_is_enough {
            Some(true) => "it need not be set where memlock is that high",
            Some(false) => "this kernel asks for a group of Oracle's owner here, whatever memlock is",
            None => "from Linux 5.18 on it has to be a group of Oracle's owner",
        };
        println!("vm.hugetlb_shm_group: {group}; {what}");
    }
    if let Some(script) = &out.hugepages_settings_sh {
        print_script(script, out);
    }
    for note in &out.notes {
        println!("{}", wrapped(&format!("note: {note}"), 0, 2));
    }
}

fn print_pool(pool: &PoolOut) {
    let size = Bytes(pool.page_size);
    match pool.recommended_nr_hugepages {
        Some(pages) if pool.is_default => {
            println!("vm.nr_hugepages = {pages}   (pages of {size}, now {})", pool.nr_hugepages)
        }
        Some(pages) => println!("{pages} pages of {size}   (now {})", pool.nr_hugepages),
        None => {
            println!("pages of {size}: no number, because somebody's need can't be seen (now {})", pool.nr_hugepages)
        }
    }
    let mut rows = table(&["  INSTANCE", "STATE", "PAGES", "HELD", "MISSING"], 2);
    for need in &pool.needs {
        rows.add_row(vec![
            format!("  {}", need.instance),
            if need.is_running { "running" } else { "down" }.to_owned(),
            need.pages.to_string(),
            need.held.to_string(),
            need.pages.saturating_sub(need.held).to_string(),
        ]);
    }
    if pool.held_by_others > 0 {
        let held = pool.held_by_others.to_string();
        rows.add_row(vec!["  (others)".to_owned(), String::new(), held.clone(), held, "0".to_owned()]);
    }
    if rows.row_count() > 0 {
        println!("{rows}");
    }
    for misfit in &pool.does_not_fit {
        let capacity = or_unknown(pool.capacity);
        let text = format!(
            "{} does not fit: its {} pages are {} more than the {capacity} that this host can hold beside all others and what \
             it keeps for base pages",
            misfit.instance, misfit.pages, misfit.over
        );
        println!("{}", wrapped(&text, 2, 4));
    }
    if let Some(remains) = pool.remains_for_base_pages {
        println!("  {} remain for base pages", Bytes(remains));
    }
    if let Some(command) = &pool.command {
        println!("  {command}");
    }
    println!();
}

fn print_script(script: &Script, out: &Out) {
    let ours = out.pools.iter().find(|pool| pool.is_default).and_then(|pool| pool.recommended_nr_hugepages);
    println!("hugepages_settings.sh would say {} where this says {}:", script.pages, or_unknown(ours));
    let lines = [
        (script.one_page_too_many_for_each_segment, "pages too many: it adds one to each segment"),
        (script.of_segments_that_are_not_oracles, "pages for System V segments that are not Oracle's"),
        (script.skipped_small_segments, "pages too few: it skips segments smaller than a page"),
    ];
    for (pages, why) in lines.iter().filter(|(pages, _)| *pages > 0) {
        println!("  {pages} {why}");
    }
    println!("  it sees neither PostgreSQL, nor what is down, nor how much memory the host has");
    if !script.knows_this_kernel {
        println!("  and on this kernel it gives up, because its list of kernels ends with 4.14");
    } else if script.gives_up {
        println!("  and with so little shared memory in use it gives up");
    }
    println!();
}
