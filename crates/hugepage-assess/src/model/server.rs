//! What the settings of a server ask of the kernel.

use hugepage_kernel::{Bytes, PageSize};
use serde::{Deserialize, Serialize};

hugepage_facts::words! {
    /// PostgreSQL's setting `huge_pages`. Oracle's `use_large_pages` has the same three meanings.
    pub enum HugePages {
        /// Base pages by choice; Oracle's FALSE.
        Off,
        /// Huge pages, or the server does not start; Oracle's ONLY and AUTO_ONLY.
        On,
        /// Huge pages if they are available, else base pages without a message (the default); Oracle's TRUE and AUTO.
        Try,
    }
}

impl HugePages {
    /// Parses a value of the setting as the server does (guc_tables.c, `huge_pages_options`); `None` if it is invalid.
    pub fn parse(value: &str) -> Option<Self> {
        match value.to_ascii_lowercase().as_str() {
            "try" => Some(Self::Try),
            "on" | "true" | "yes" | "1" => Some(Self::On),
            "off" | "false" | "no" | "0" => Some(Self::Off),
            _ => None,
        }
    }
}

/// The database product, with what only that product has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Product {
    /// One segment, in huge pages as a whole or not at all.
    PostgreSql,
    /// An SGA of several System V segments or files.
    Oracle {
        /// Whether `MEMORY_TARGET` is set: the SGA is files in /dev/shm then, which never have huge pages.
        memory_target: bool,
        /// Whether a part of the SGA may be in huge pages if the pool is too small for all of it (11.2.0.3 and later).
        may_mix: bool,
        /// `use_large_pages`; `None` if neither the log of the start nor a parameter file shows it: TRUE, the default, is assumed.
        use_large_pages: Option<UseLargePages>,
        /// Whether it is an ASM instance, for which MEMORY_TARGET is the default and the right choice (its Administrator's Guide).
        is_asm: bool,
    },
}

/// Oracle's `use_large_pages` (Database Reference).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum UseLargePages {
    /// Huge pages as far as there are any.
    True,
    /// Base pages.
    False,
    /// Huge pages, or no start.
    Only,
    /// The instance asks the kernel for the missing pages at its start, and takes what it gets.
    Auto,
    /// The same, and it does not start without all of them.
    AutoOnly,
}

impl UseLargePages {
    /// Parses a value; `None` if it is none.
    pub fn parse(value: &str) -> Option<Self> {
        match value.to_ascii_uppercase().as_str() {
            "TRUE" => Some(Self::True),
            "FALSE" => Some(Self::False),
            "ONLY" => Some(Self::Only),
            "AUTO" => Some(Self::Auto),
            "AUTO_ONLY" => Some(Self::AutoOnly),
            _ => None,
        }
    }

    /// What it has in common with PostgreSQL's setting.
    pub const fn huge_pages(self) -> HugePages {
        match self {
            Self::True | Self::Auto => HugePages::Try,
            Self::False => HugePages::Off,
            Self::Only | Self::AutoOnly => HugePages::On,
        }
    }
}

impl Product {
    /// This product with or without `MEMORY_TARGET`.
    #[must_use]
    pub const fn with_memory_target(mut self, is_set: bool) -> Self {
        if let Self::Oracle { memory_target, .. } = &mut self {
            *memory_target = is_set;
        }
        self
    }
}

/// What the server's settings ask of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Requested {
    /// The product.
    pub product: Product,
    /// `huge_pages`.
    pub huge_pages: HugePages,
    /// `huge_page_size`; `None` for 0, the kernel's default size.
    pub huge_page_size: Option<PageSize>,
    /// Whether `shared_memory_type` is `sysv`, for which PostgreSQL never asks for huge pages (sysv_shmem.c).
    pub sysv: bool,
    /// `shared_buffers`: the buffer pool alone. For Oracle the SGA.
    pub shared_buffers: Bytes,
    /// Whether `io_method` is `io_uring` (PostgreSQL 18).
    pub io_uring: bool,
}

impl Requested {
    /// Whether `MEMORY_TARGET` puts shared memory into files of /dev/shm, which never have huge pages.
    pub const fn is_in_files(&self) -> bool {
        matches!(
            self.product,
            Product::Oracle {
                memory_target: true,
                ..
            }
        )
    }

    /// Whether these settings rule out huge pages, whatever the pool has.
    pub const fn never_in_huge_pages(&self) -> bool {
        self.sysv || self.is_in_files()
    }

    /// Whether these settings ask for huge pages, and do not rule them out.
    pub fn may_have_huge_pages(&self) -> bool {
        self.huge_pages != HugePages::Off && !self.never_in_huge_pages()
    }

    /// Whether the server asks the kernel for the pages that the pool lacks (AUTO and AUTO_ONLY).
    pub const fn asks_kernel(&self) -> bool {
        use UseLargePages::{Auto, AutoOnly};
        matches!(
            self.product,
            Product::Oracle {
                use_large_pages: Some(Auto | AutoOnly),
                ..
            }
        )
    }

    /// Whether it is an ASM instance with its default, MEMORY_TARGET.
    pub const fn is_automatic_asm(&self) -> bool {
        matches!(
            self.product,
            Product::Oracle {
                memory_target: true,
                is_asm: true,
                ..
            }
        )
    }

    /// Whether it is Oracle: it asks for System V segments, and an instance does not start again by itself after a crash.
    pub const fn is_oracle(&self) -> bool {
        matches!(self.product, Product::Oracle { .. })
    }

    /// Whether a part of the segment may be in huge pages and the rest not.
    pub const fn may_mix(&self) -> bool {
        matches!(self.product, Product::Oracle { may_mix: true, .. })
    }
}
