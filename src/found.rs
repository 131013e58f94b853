//! What the asker has found, as it is in shared memory: the answer of the server's program about a start, what sets the pool at the
//! next boot, and the files of the configuration.

use std::path::PathBuf;

use hugepage_assess::model::Demand;
use hugepage_facts::StartAnswer;
use hugepage_kernel::memory::pool;
use hugepage_kernel::next_boot::{BootLook, NextBoot, PoolAtBoot};
use hugepage_kernel::postgresql::pg_control::RecoveryParameters;
use hugepage_kernel::{PageSize, Pages, ROOT};
use hugepage_start::TwoStarts;
use pgrx::pg_sys;

use crate::fixed::{Few, SharedText};
use crate::shmem::now;

/// The answer on the next start of this server, with and without the options of its command line.
pub type Answer<Text = String> = StartAnswer<TwoStarts<Demand, Text>, Text>;

/// What the server's program says of a start.
#[derive(Clone, Debug)]
pub struct Asked {
    /// The answer.
    pub answer: Answer,
    /// What the recovery of a standby would compare with its primary's settings; `None` for another server.
    pub recovery: Option<RecoveryParameters>,
}

impl Asked {
    /// No answer; the reason.
    pub const fn unknown(why: String) -> Self {
        Self {
            answer: Answer::Unknown(why),
            recovery: None,
        }
    }
}

/// What the asker has found. Written by it, read by every view.
#[derive(Clone, Copy, Default)]
pub struct Found {
    /// What a start would get.
    pub start: Option<SharedAnswer>,
    /// What the next boot gives.
    pub boot: SharedBoot,
    /// The files that the configuration consists of.
    included_files: Few<SharedText<MAX_PATH>, MAX_INCLUDED_FILES>,
    /// Whether not all are known, or there was no room for them.
    has_more_files: bool,
}

impl Found {
    /// The files that the configuration consists of, and whether these are all; none if the asker has not found them.
    pub fn included_files(&self) -> (Vec<PathBuf>, bool) {
        let names = self.included_files.iter().map(|name| name.get().into());
        (names.collect(), !self.has_more_files)
    }

    /// Keeps the files that the configuration consists of; none if not all are known.
    pub fn set_included_files(&mut self, names: &[&str]) {
        let has_room =
            names.len() <= MAX_INCLUDED_FILES && names.iter().all(|name| name.len() <= MAX_PATH);
        self.has_more_files = names.is_empty() || !has_room;
        let kept = if self.has_more_files { &[] } else { names };
        self.included_files = kept.iter().map(|name| SharedText::cut(name)).collect();
    }
}

/// The bytes of a path that has room, and the number of files.
const MAX_PATH: usize = 256;
const MAX_INCLUDED_FILES: usize = 64;
/// The bytes of a reason, of the errors of a start, and of the name of a file or a person.
const MAX_REASON: usize = 2000;
/// The sizes of huge pages that a machine has.
const MAX_POOLS: usize = 8;

/// What the next boot gives each pool.
#[derive(Clone, Copy, Default)]
pub struct SharedBoot {
    /// The time of the look, in microseconds since 2000; 0 if nobody has looked.
    pub time: pg_sys::TimestampTz,
    pools: Few<(PageSize, PoolAtBoot<SharedText<MAX_PATH>>), MAX_POOLS>,
    /// Why nothing is known of a pool that is not there.
    unknown: SharedText<MAX_PATH>,
    /// The look itself, if it is the first after a boot.
    pub first_look: Option<SharedLook>,
}

/// The bytes that are kept of what the sources of a boot say: of more, no later look says the same.
const MAX_SOURCES: usize = 1200;

/// A [`BootLook`].
#[derive(Clone, Copy)]
pub struct SharedLook {
    boot_id: SharedText<40>,
    machine_id: SharedText<40>,
    boot_age_seconds: u64,
    pools: Few<(PageSize, Pages), MAX_POOLS>,
    sources: SharedText<MAX_SOURCES>,
}

/// An answer of the server's program about a start.
#[derive(Clone, Copy)]
pub struct SharedAnswer {
    /// Identifies what was asked about; see [`NextRestart::key`](crate::next_start::NextRestart::key).
    key: u64,
    /// The time of the answer, in microseconds since 2000.
    time: pg_sys::TimestampTz,
    answer: Answer<SharedText<MAX_REASON>>,
    recovery: Option<RecoveryParameters>,
}

impl SharedAnswer {
    /// The answer as others can read it.
    pub fn of(key: u64, asked: &Asked) -> Self {
        let answer = asked.answer.clone();
        Self {
            key,
            time: now(),
            answer: TwoStarts::map_text(answer, |text| SharedText::cut(&text)),
            recovery: asked.recovery,
        }
    }

    /// Whether it was given after `time`, about what has that key.
    pub fn is_of(&self, key: u64, time: pg_sys::TimestampTz) -> bool {
        self.key == key && self.time > time
    }

    /// The answer.
    pub fn asked(&self) -> Asked {
        Asked {
            answer: TwoStarts::map_text(self.answer, |text| text.get()),
            recovery: self.recovery,
        }
    }
}

impl SharedBoot {
    /// What others can read.
    pub fn of(boot: &Result<NextBoot, String>) -> Self {
        let why = boot.as_ref().err().map(String::as_str);
        let boot = boot.as_ref().ok();
        let pools = boot.into_iter().flat_map(|boot| {
            let sizes = pool::sizes(&ROOT).unwrap_or_default().into_iter();
            sizes.map(|size| (size, boot.pool(size).map(|text| SharedText::cut(text))))
        });
        let look = boot.and_then(NextBoot::first_look);
        Self {
            time: now(),
            pools: pools.collect(),
            unknown: SharedText::cut(why.unwrap_or("the kernel had no such pool at that time")),
            first_look: look.map(|look| SharedLook {
                boot_id: SharedText::cut(&look.boot_id),
                machine_id: SharedText::cut(&look.machine_id),
                boot_age_seconds: look.boot_age_seconds,
                pools: look
                    .pools
                    .iter()
                    .map(|(size, pages)| (*size, *pages))
                    .collect(),
                sources: SharedText::cut(&look.sources),
            }),
        }
    }

    /// What it gives the pool of `size`.
    pub fn pool(&self, size: PageSize) -> PoolAtBoot {
        let known = self.pools.iter().find(|(of, _)| *of == size);
        match known {
            Some((_, pool)) => pool.map(SharedText::get),
            None => PoolAtBoot::Unknown(self.unknown.get()),
        }
    }
}

impl SharedLook {
    /// The look.
    pub fn get(&self) -> BootLook {
        BootLook {
            boot_id: self.boot_id.get(),
            machine_id: self.machine_id.get(),
            boot_age_seconds: self.boot_age_seconds,
            pools: self.pools.iter().copied().collect(),
            sources: self.sources.get(),
            ..BootLook::default()
        }
    }
}
