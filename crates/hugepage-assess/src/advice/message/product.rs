//! The terms of each product for the same things: the one table in which the products are told apart by words.

use crate::advice::recommendation::Area;
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
    /// The settings in the order of [`HugePages`].
    settings: [&'static str; 3],
    /// The setting to reduce, before the largest size of shared memory that fits.
    pub reduce: &'static str,
    /// What to do where the configuration on disk differs and no step helps; `None` where the message says it.
    pub compare: Option<&'static str>,
    /// Where its settings belong.
    pub area: Area,
    /// What stands before and behind a value in the statement that sets it.
    around_value: [&'static str; 2],
}

const POSTGRESQL: ProductTerms = ProductTerms {
    memory: "Shared memory",
    the_memory: "shared memory",
    server: "server",
    restart: "a restart, or a crash of one backend,",
    next_start: " (also after a crash)",
    settings: ["huge_pages = off", "huge_pages = on", "huge_pages = try"],
    reduce: "shared_buffers until shared memory takes",
    compare: None,
    area: Area::Postgresql,
    around_value: ["'", "'"],
};

const ORACLE: ProductTerms = ProductTerms {
    memory: "The SGA",
    the_memory: "the SGA",
    server: "instance",
    restart: "a restart",
    next_start: "",
    settings: [
        "use_large_pages = FALSE",
        "use_large_pages = ONLY",
        "use_large_pages = TRUE",
    ],
    reduce: "SGA_MAX_SIZE until the SGA takes",
    compare: Some("Compare the parameter file with the running instance (SHOW SPPARAMETER)."),
    area: Area::Oracle,
    around_value: ["", " SCOPE=SPFILE"],
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
            Product::Oracle {
                use_large_pages: Some(UseLargePages::Auto),
                ..
            } => "use_large_pages = AUTO",
            Product::Oracle {
                use_large_pages: Some(UseLargePages::AutoOnly),
                ..
            } => "use_large_pages = AUTO_ONLY",
            product => Self::of_product(product).setting(requested.huge_pages),
        }
    }

    /// The name and the value of the setting in effect; `None` where neither a log nor a file shows it.
    pub fn known(requested: &Requested) -> Option<(&'static str, &'static str)> {
        match requested.product {
            Product::Oracle {
                use_large_pages: None,
                ..
            } => None,
            _ => Self::current(requested).split_once(" = "),
        }
    }

    /// The statement that sets `name` to `value`.
    pub fn statement(&self, name: &str, value: &str) -> String {
        let [before, behind] = self.around_value;
        format!("ALTER SYSTEM SET {name} = {before}{value}{behind};")
    }

    /// The setting, as written in the configuration.
    pub const fn setting(&self, huge_pages: HugePages) -> &'static str {
        self.settings[huge_pages as usize]
    }
}
