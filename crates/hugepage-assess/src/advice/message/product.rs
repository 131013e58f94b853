//! The terms of each product for the same things.

use crate::model::{HugePages, Product, Requested, UseLargePages};

/// The terms of one product.
pub struct ProductTerms {
    /// Shared memory, at the beginning of a sentence.
    pub memory: &'static str,
    /// Shared memory, within a sentence.
    pub the_memory: &'static str,
    /// The server.
    pub server: &'static str,
    /// The event that allocates shared memory again.
    pub restart: &'static str,
    /// Behind a clause on the next start.
    pub next_start: &'static str,
    /// The settings for base pages, for huge pages or no start, and for huge pages if available.
    settings: [&'static str; 3],
    /// The setting to reduce, before the largest size of shared memory that fits.
    pub reduce: &'static str,
}

const POSTGRESQL: ProductTerms = ProductTerms {
    memory: "Shared memory",
    the_memory: "shared memory",
    server: "server",
    restart: "a restart, or a crash of one backend,",
    next_start: " (also after a crash)",
    settings: ["huge_pages = off", "huge_pages = on", "huge_pages = try"],
    reduce: "shared_buffers until shared memory takes",
};

const ORACLE: ProductTerms = ProductTerms {
    memory: "The SGA",
    the_memory: "the SGA",
    server: "instance",
    restart: "a restart",
    next_start: "",
    settings: ["use_large_pages = FALSE", "use_large_pages = ONLY", "use_large_pages = TRUE"],
    reduce: "SGA_MAX_SIZE until the SGA takes",
};

impl ProductTerms {
    /// The terms of `product`.
    pub const fn of_product(product: Product) -> &'static Self {
        match product {
            Product::PostgreSql => &POSTGRESQL,
            Product::Oracle { .. } => &ORACLE,
        }
    }

    /// The setting in effect, as written in the configuration; where it is unknown, the one that is assumed.
    pub const fn current(requested: &Requested) -> &'static str {
        match requested.product {
            Product::Oracle { use_large_pages: Some(UseLargePages::Auto), .. } => "use_large_pages = AUTO",
            Product::Oracle { use_large_pages: Some(UseLargePages::AutoOnly), .. } => "use_large_pages = AUTO_ONLY",
            product => Self::of_product(product).setting(requested.huge_pages),
        }
    }

    /// The setting, as written in the configuration.
    pub const fn setting(&self, huge_pages: HugePages) -> &'static str {
        match huge_pages {
            HugePages::Off => self.settings[0],
            HugePages::On => self.settings[1],
            HugePages::Try => self.settings[2],
        }
    }
}
