//! A quantity in base pages and in huge pages, and how it was found.

use std::fmt;

use hugepage_assess::assessment::sessions::HUGE_SIZES;
use hugepage_kernel::PageSize;
use serde::Serialize;

/// The way in which a figure was found, said of the figure for base pages; figures for huge pages are modelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Confidence {
    /// A value from counters of the kernel and from times measured on this machine.
    Measured,
    /// A value that a model computes in part.
    Modelled,
    /// The value could not be determined.
    Unknown,
}

impl fmt::Display for Confidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// A quantity in base pages and in huge pages; `None` where it is unknown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BenefitValue {
    /// The value in base pages.
    pub base: Option<f64>,
    /// The values in pages of [`HUGE_SIZES`].
    pub huge: [Option<f64>; 2],
    /// The way in which the value in base pages was found.
    pub confidence: Confidence,
}

impl BenefitValue {
    /// A figure of which nothing is known.
    pub const UNKNOWN: Self = Self { base: None, huge: [None; 2], confidence: Confidence::Unknown };

    /// A figure from its value in base pages, and in huge pages of each size.
    pub(super) fn new(confidence: Confidence, base: f64, huge: impl Fn(PageSize) -> f64) -> Self {
        let huge = HUGE_SIZES.map(|size| PageSize::new(size).map(&huge));
        Self { base: Some(base), huge, confidence }
    }

    /// The amount that the first huge page size of this kernel saves; `None` if unknown.
    pub fn saving(&self) -> Option<f64> {
        Some(self.base? - self.huge.iter().flatten().next()?)
    }
}
