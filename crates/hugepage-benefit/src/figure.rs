//! A quantity in base pages and in huge pages, and how it was found.

use std::fmt;

use hugepage_assess::assessment::sessions::HUGE_SIZES;
use hugepage_kernel::PageSize;
use serde::Serialize;

/// How a figure was found. It is said of the figure for base pages; figures for huge pages are modelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Confidence {
    /// From counters of the kernel and from times measured on this machine.
    Measured,
    /// A part of it is computed by a model.
    Modelled,
    /// The value could not be determined.
    Unknown,
}

impl fmt::Display for Confidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// One quantity, in the pages that the server has now and in others; `None` if it is unknown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figure {
    /// In base pages.
    pub base: Option<f64>,
    /// In pages of [`HUGE_SIZES`].
    pub huge: [Option<f64>; 2],
    /// How `base` was found.
    pub confidence: Confidence,
}

impl Figure {
    /// Nothing is known of it.
    pub const UNKNOWN: Self = Self { base: None, huge: [None; 2], confidence: Confidence::Unknown };

    /// A figure from its value in base pages, and in huge pages of each size.
    pub(super) fn new(confidence: Confidence, base: f64, huge: impl Fn(PageSize) -> f64) -> Self {
        let huge = HUGE_SIZES.map(|size| PageSize::new(size).map(&huge));
        Self { base: Some(base), huge, confidence }
    }

    /// What the first huge page size saves that this kernel has.
    pub fn saving(&self) -> Option<f64> {
        Some(self.base? - self.huge.iter().flatten().next()?)
    }
}
