//! What is known of kernel releases: a table of ranges with their source, `kernel-advisories.toml`.

use std::sync::LazyLock;

use hugepage_facts::Landing;
use hugepage_kernel::host::kernel_release::KernelRelease;
use serde::{Deserialize, Deserializer};

use crate::model::Facts;

/// The table of this program, which its build has turned into JSON.
const KNOWN: &str = include_str!(concat!(env!("OUT_DIR"), "/kernel-advisories.json"));

/// All rows.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Advisories {
    /// In the order of the table.
    pub advisory: Vec<Advisory>,
}

/// One row.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Advisory {
    /// The name of the row.
    pub name: String,
    /// The servers that it concerns.
    pub matters: Matters,
    /// What such a kernel does, one sentence.
    pub text: String,
    /// Where that was read.
    pub source: String,
    ranges: Vec<Range>,
    backports_from: Option<Release>,
    #[serde(default)]
    kernels: Vec<ListedKernel>,
}

hugepage_facts::words! {
    /// Servers that an advisory concerns.
    pub enum Matters {
        /// Servers in huge pages.
        HugePages,
        /// Servers in base pages.
        BasePages,
        /// Servers that use or would use pages of 1 GB or more.
        GiganticPages,
        /// Servers that ask for System V segments.
        SystemV,
        /// All.
        Any,
    }
}

/// Releases of kernel.org.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Range {
    from: Option<Release>,
    before: Option<Release>,
    #[serde(default)]
    unknown: bool,
}

/// A distribution's kernel of which the answer is known.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ListedKernel {
    contains: String,
    affected: bool,
}

/// Major, minor and patch number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Release(u32, u32, u32);

impl<'de> Deserialize<'de> for Release {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let release = KernelRelease::parse(&text)
            .filter(|_| text.bytes().all(|c| c == b'.' || c.is_ascii_digit()));
        let release = release
            .ok_or_else(|| serde::de::Error::custom(format!("\"{text}\" is not a release")))?;
        Ok(Self(
            release.major,
            release.minor,
            release.patch.unwrap_or(0),
        ))
    }
}

/// An advisory that concerns a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelFinding {
    /// The name of the advisory with `kernel_` in front.
    pub name: String,
    /// Whether it applies to this server on this kernel; `None` if that is not known of the kernel.
    pub applies: Option<bool>,
    /// The advisory's sentence and source; `None` if it does not apply.
    pub detail: Option<String>,
}

impl Advisories {
    /// The advisories of this program, parsed once.
    pub fn known() -> &'static Self {
        static TABLE: LazyLock<Advisories> =
            LazyLock::new(|| serde_json::from_str(KNOWN).unwrap_or_default());
        &TABLE
    }

    /// What the advisories say of the kernel `release` to the server with these facts, a row for each; `release`: `None` if unknown.
    pub fn concerning(&self, facts: &Facts, release: Option<&str>) -> Vec<KernelFinding> {
        let finding = |row: &Advisory| {
            let applies = if row.matters.to(facts) {
                release.and_then(|release| row.affects(release))
            } else {
                Some(false)
            };
            let detail = match applies {
                Some(false) => None,
                Some(true) => Some(format!("{} Source: {}.", row.text, row.source)),
                None => Some(format!(
                    "It is not known whether this applies to this kernel: {}",
                    row.text
                )),
            };
            KernelFinding {
                name: format!("kernel_{}", row.name),
                applies,
                detail,
            }
        };
        self.advisory.iter().map(finding).collect()
    }

    /// Whether the row `name` applies to the kernel `release`; `None` if that is not known, or there is no such row.
    pub fn affects(&self, name: &str, release: &str) -> Option<bool> {
        self.advisory
            .iter()
            .find(|row| row.name == name)?
            .affects(release)
    }
}

impl Advisory {
    /// Whether it applies to the kernel `release`; `None` if that is not known.
    pub fn affects(&self, release: &str) -> Option<bool> {
        if let Some(kernel) = self
            .kernels
            .iter()
            .find(|kernel| release.contains(&kernel.contains))
        {
            return Some(kernel.affected);
        }
        let kernel = KernelRelease::parse(release)?;
        let lowest = Release(kernel.major, kernel.minor, 0);
        let bounds = || {
            self.ranges
                .iter()
                .flat_map(|range| [range.from, range.before])
                .flatten()
        };
        let exact = kernel
            .patch
            .map(|patch| Release(kernel.major, kernel.minor, patch));
        if kernel.has_backports {
            let may_have_later = self
                .backports_from
                .is_none_or(|from| exact.unwrap_or(lowest) >= from);
            // Of a later release it may have what the ranges begin or end with.
            if may_have_later && bounds().any(|bound| bound > lowest) {
                return None;
            }
        }
        if let Some(exact) = exact.filter(|_| !kernel.hides_patch) {
            return self.state(exact);
        }
        // All releases of the series that differ.
        let in_series = bounds().filter(|bound| (bound.0, bound.1) == (kernel.major, kernel.minor));
        let mut states = in_series.chain([lowest]).map(|release| self.state(release));
        let first = states.next()?;
        if states.all(|state| state == first) {
            first
        } else {
            None
        }
    }

    fn state(&self, release: Release) -> Option<bool> {
        let holds = |range: &&Range| {
            range.from.is_none_or(|from| from <= release)
                && range.before.is_none_or(|before| release < before)
        };
        match self.ranges.iter().find(holds) {
            Some(range) => (!range.unknown).then_some(true),
            None => Some(false),
        }
    }
}

impl Matters {
    fn to(self, facts: &Facts) -> bool {
        match self {
            Self::HugePages => facts.is_in_huge_pages(),
            Self::BasePages => facts.landing() == Landing::Base,
            Self::GiganticPages => facts
                .pool_state
                .huge_page_size
                .is_some_and(|size| size.bytes().0 >= 1 << 30),
            Self::SystemV => facts.requested.is_oracle(),
            Self::Any => true,
        }
    }
}
