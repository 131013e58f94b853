//! The words in which each product's administrators speak of the same things.

use crate::model::{HugePages, Product};

/// One product's words.
pub struct Terms {
    /// Shared memory, at the beginning of a sentence.
    pub memory: &'static str,
    /// Shared memory, inside of a sentence.
    pub the_memory: &'static str,
    /// What is restarted.
    pub server: &'static str,
    /// What allocates shared memory anew.
    pub restart: &'static str,
    /// The same, behind "the next start".
    pub next_start: &'static str,
    /// Settings of base pages by choice, of huge pages or none, and of huge pages where they can be had.
    settings: [&'static str; 3],
    /// What to reduce so that less shared memory is needed.
    pub reduce: &'static str,
}

const POSTGRESQL: Terms = Terms {
    memory: "Shared memory",
    the_memory: "shared memory",
    server: "server",
    restart: "a restart, or a crash of one backend,",
    next_start: ", a restart after a crash included",
    settings: ["huge_pages = off", "huge_pages = on", "huge_pages = try"],
    reduce: "shared_buffers so that all of shared memory needs",
};

const ORACLE: Terms = Terms {
    memory: "The SGA",
    the_memory: "the SGA",
    server: "instance",
    restart: "a restart",
    next_start: "",
    settings: ["use_large_pages = FALSE", "use_large_pages = ONLY", "use_large_pages = TRUE"],
    reduce: "SGA_MAX_SIZE so that the SGA needs",
};

impl Terms {
    /// Those of `product`.
    pub const fn of(product: Product) -> &'static Self {
        match product {
            Product::PostgreSql => &POSTGRESQL,
            Product::Oracle { .. } => &ORACLE,
        }
    }

    /// The setting, as it is written.
    pub const fn setting(&self, huge_pages: HugePages) -> &'static str {
        match huge_pages {
            HugePages::Off => self.settings[0],
            HugePages::On => self.settings[1],
            HugePages::Try => self.settings[2],
        }
    }
}
