//! What the server's own program says about a start with the configuration on disk.
//!
//! `postgres -C shared_memory_size_in_huge_pages` loads the configuration and the preload libraries, calculates the size of shared
//! memory and ends, without allocating it ([`hugepage_start`]); `postgres -C NAME` prints what the configuration sets. It refuses the
//! data directory of a running server, so it gets a stub ([`stub`](super::stub)), with the arguments and the environment of the
//! running postmaster. The command line consists of the arguments and of numbers; it never contains text from a caller.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::time::Instant;

use hugepage_assess::model::{Demand, HugePages, Product, Requested};
use hugepage_facts::StartAnswer;
use hugepage_kernel::memory::meminfo::Meminfo;
use hugepage_kernel::postgresql::pg_control::RecoveryParameters;
use hugepage_kernel::postgresql::postmaster_opts;
use hugepage_kernel::stranger::limit;
use hugepage_kernel::{Bytes, InstanceFiles, PageSize, ROOT};
use hugepage_start::{Ending, StartQuestion, TwoStarts, not_checked};

use super::stub::Stub;
use super::{Overrides, child};
use crate::found::Asked;
use crate::next_start::NextRestart;
use crate::{server, standby};

/// How often the program is asked, if the configuration changes while it reads.
const MAX_ATTEMPTS: usize = 2;

/// Asks the program about a start with these overrides, and returns the answer with the key of what it is about.
pub fn ask(overrides: Overrides, deadline: Instant) -> (u64, Asked) {
    for _ in 0..MAX_ATTEMPTS {
        let next = NextRestart::now();
        let asked = ask_once(&next.options, overrides, deadline)
            .unwrap_or_else(|error| Asked::unknown(not_asked(&error)));
        if NextRestart::now().key == next.key {
            return (next.key, asked);
        }
    }
    (0, Asked::unknown("the configuration changes".to_owned()))
}

fn not_asked(error: &io::Error) -> String {
    format!("could not check the configuration: {error}")
}

/// `options`: those of the command line that a start may lack.
fn ask_once(options: &[String], overrides: Overrides, deadline: Instant) -> io::Result<Asked> {
    let data = server::data_directory();
    // This is the server's own process, and the kernel holds it to what the server may read.
    let own = InstanceFiles::own(&ROOT);
    let local = server::local_paths().map_err(io::Error::other)?;
    let found = |name: &str| {
        local
            .resolve(&data.join(name))
            .map_err(|why| io::Error::other(format!("{name}: {why}")))
    };
    let opts = own.read_text(
        &found("postmaster.opts")?.path.to_string_lossy(),
        limit::POSTMASTER_OPTS,
    );
    let arguments = postmaster_opts::arguments(&opts.map_err(io::Error::other)?);
    let stub = Stub::new(&found("base/pgsql_tmp")?.path)?;
    let start = |arguments| AskedStart {
        arguments,
        overrides,
        data: &data,
        stub: &stub,
        deadline,
    };
    let with_options = start(&arguments);
    let recovery = standby::primary()
        .map(|_| with_options.recovery_parameters())
        .transpose();
    let is_left_out = |name: &str| options.iter().any(|option| option == name);
    let left_out = postmaster_opts::settings(&arguments)
        .into_iter()
        .filter(|(name, _)| is_left_out(name));
    let left_out: Vec<_> = left_out
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    let rest = postmaster_opts::without(&arguments, is_left_out);
    let without = (!left_out.is_empty()).then_some((&left_out[..], || start(&rest).demand()));
    let answer: StartAnswer<TwoStarts<Demand>> = TwoStarts::of_both(with_options.demand(), without);
    Ok(match recovery {
        Ok(recovery) => Asked { answer, recovery },
        // The size is refused for the same reason.
        Err(_) if !matches!(answer, StartAnswer::Starts(_)) => Asked {
            answer,
            recovery: None,
        },
        Err(why) => Asked::unknown(why),
    })
}

/// A start that the program is asked about.
#[derive(Clone, Copy)]
struct AskedStart<'a> {
    arguments: &'a [String],
    overrides: Overrides,
    data: &'a Path,
    stub: &'a Stub,
    deadline: Instant,
}

impl AskedStart<'_> {
    fn question(&self) -> StartQuestion<'_> {
        StartQuestion {
            major: server::major(),
            arguments: self.arguments,
            data: self.data,
            settings: self.settings(),
            stand_in: Some(self.stub.path()),
            default_page_size: Meminfo::read(&ROOT)
                .ok()
                .and_then(|meminfo| meminfo.huge_page_size),
        }
    }

    fn run(&self, arguments: &[OsString]) -> Ending {
        let create = || self.stub.create(self.data);
        child::run(&server::executable(), arguments, create, self.deadline)
            .unwrap_or_else(|error| Ending::NoAnswer(not_asked(&error)))
    }

    /// Settings that a start does not have: where its files are, and what replaces the values on disk.
    fn settings(&self) -> Vec<(&'static str, OsString)> {
        let mut settings = vec![
            ("config_file", server::config_file().into_os_string()),
            ("data_directory", self.stub.path().as_os_str().to_owned()),
        ];
        let Overrides {
            shared_buffers,
            max_connections,
            huge_page_size,
        } = self.overrides;
        let numbers = [
            (
                "shared_buffers",
                shared_buffers.map(|blocks| blocks.to_string()),
            ),
            (
                "max_connections",
                max_connections.map(|count| count.to_string()),
            ),
            ("huge_page_size", huge_page_size.map(PageSize::setting)),
        ];
        let set = numbers
            .into_iter()
            .filter_map(|(name, value)| Some((name, value?.into())));
        settings.extend(set);
        settings
    }

    /// What the start asks the kernel for.
    fn demand(&self) -> StartAnswer<Demand> {
        let size = self.question().ask(|arguments| self.run(arguments));
        size.and_then(|shared_memory| {
            self.demand_of(shared_memory)
                .map_or_else(StartAnswer::Unknown, StartAnswer::Starts)
        })
    }

    fn demand_of(&self, shared_memory: Bytes) -> Result<Demand, String> {
        let huge_pages = self.value("huge_pages")?;
        let requested = Requested {
            huge_pages: HugePages::parse(&huge_pages)
                .ok_or_else(|| unexpected("huge_pages", &huge_pages))?,
            huge_page_size: PageSize::from_kib(self.number("huge_page_size")?),
            product: Product::PostgreSql,
            sysv: self.value("shared_memory_type")? == "sysv",
            shared_buffers: Bytes(self.number("shared_buffers")? * u64::from(pgrx::pg_sys::BLCKSZ)),
            io_uring: server::major() >= 18 && self.value("io_method")? == "io_uring",
        };
        Ok(Demand {
            requested,
            max_connections: self.number("max_connections")?,
            shared_memory,
        })
    }

    /// The settings that the recovery of a standby compares with its primary's.
    fn recovery_parameters(&self) -> Result<RecoveryParameters, String> {
        let number =
            |name| i32::try_from(self.number(name)?).map_err(|_| unexpected(name, "a number"));
        Ok(RecoveryParameters {
            hot_standby: self.value("hot_standby")? == "on",
            max_connections: number("max_connections")?,
            max_worker_processes: number("max_worker_processes")?,
            max_wal_senders: number("max_wal_senders")?,
            max_prepared_transactions: number("max_prepared_transactions")?,
            max_locks_per_transaction: number("max_locks_per_transaction")?,
        })
    }

    fn number(&self, name: &str) -> Result<u64, String> {
        let value = self.value(name)?;
        value.parse().map_err(|_| unexpected(name, &value))
    }

    /// The value of a parameter as the program prints it: a number in the parameter's unit.
    fn value(&self, name: &str) -> Result<String, String> {
        match self.run(&self.question().command_line(None, name)) {
            Ending::Success(output) => Ok(output.trim().to_owned()),
            Ending::Failure(errors) => Err(not_checked(&errors)),
            Ending::NoAnswer(why) => Err(why),
        }
    }
}

fn unexpected(name: &str, value: &str) -> String {
    not_checked(&format!("{name} = {value}"))
}
