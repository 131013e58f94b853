//! Types for numbers with a unit, so that bytes, pages and page sizes are not confused.

use std::fmt;
use std::iter::Sum;
use std::num::NonZeroU64;

use serde::{Deserialize, Serialize};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// A size in bytes.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Bytes(pub u64);

impl Bytes {
    /// At least so many bytes, as Kubernetes accepts them of huge pages: these divide a megabyte, or are of whole megabytes.
    pub fn kubernetes_quantity(self) -> String {
        format!("{}Mi", self.0.div_ceil(1 << 20))
    }

    /// A size the kernel gives in kB, which are 1024 bytes in every file of /proc.
    pub const fn from_kib(kib: u64) -> Self {
        Self(kib.saturating_mul(KIB))
    }

    /// The smaller part of `self` that `other` leaves, zero if `other` is larger.
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// The sum of two sizes.
    pub const fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// `percent` hundredths of the size, rounded down.
    pub fn percent(self, percent: u32) -> Self {
        let part = u128::from(self.0) * u128::from(percent) / 100;
        Self(u64::try_from(part).unwrap_or(u64::MAX))
    }
}

impl Sum for Bytes {
    /// The sum, which stays at the largest number.
    fn sum<I: Iterator<Item = Self>>(sizes: I) -> Self {
        sizes.fold(Self(0), Self::saturating_add)
    }
}

impl fmt::Display for Bytes {
    /// Writes the size for users: in a unit that divides it, else in the largest unit that gives at least ten.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (unit, name) in [(GIB, "GB"), (MIB, "MB"), (KIB, "kB")] {
            if self.0 >= unit && self.0.is_multiple_of(unit) && self.0 / unit < 10_240 {
                return write!(f, "{} {name}", self.0 / unit);
            }
            if self.0 >= 10 * unit {
                let tenths = u128::from(self.0) * 10 / u128::from(unit);
                return match (tenths / 10, tenths % 10) {
                    (whole, tenth) if tenth > 0 && whole < 100 => {
                        write!(f, "{whole}.{tenth} {name}")
                    }
                    (whole, _) => write!(f, "{whole} {name}"),
                };
            }
        }
        write!(f, "{} bytes", self.0)
    }
}

/// A number of pages, whose size is given elsewhere.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Pages(pub u64);

impl Pages {
    /// The pages that `other` leaves, zero if there are none.
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// The sum of two counts.
    pub const fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Sum for Pages {
    /// The sum, which stays at the largest number.
    fn sum<I: Iterator<Item = Self>>(counts: I) -> Self {
        counts.fold(Self(0), Self::saturating_add)
    }
}

impl fmt::Display for Pages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The size of one page, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PageSize(NonZeroU64);

impl PageSize {
    /// A page size from bytes, `None` for zero.
    pub const fn new(bytes: u64) -> Option<Self> {
        match NonZeroU64::new(bytes) {
            Some(bytes) => Some(Self(bytes)),
            None => None,
        }
    }

    /// A page size from the kernel's kB, `None` for zero or more than 64 bits hold.
    pub fn from_kib(kib: u64) -> Option<Self> {
        kib.checked_mul(KIB).and_then(Self::new)
    }

    /// The base page size of this machine (4 kB on x86-64, up to 64 kB elsewhere), from sysconf(3).
    pub fn base() -> Self {
        // SAFETY: sysconf reads a constant of the system and touches no memory of ours.
        #[allow(unsafe_code)]
        let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        // POSIX knows no system without a page size, so the fallback is never taken.
        u64::try_from(bytes)
            .ok()
            .and_then(Self::new)
            .unwrap_or(Self(NonZeroU64::MIN))
    }

    /// The size as bytes.
    pub const fn bytes(self) -> Bytes {
        Bytes(self.0.get())
    }

    /// How many pages hold `size`, the last one filled or not.
    pub const fn pages_to_hold(self, size: Bytes) -> Pages {
        Pages(size.0.div_ceil(self.0.get()))
    }

    /// How many whole pages fit into `size`.
    pub const fn pages_within(self, size: Bytes) -> Pages {
        Pages(size.0 / self.0.get())
    }

    /// The bytes of `pages` pages.
    pub const fn times(self, pages: Pages) -> Bytes {
        Bytes(self.0.get().saturating_mul(pages.0))
    }

    /// A size as the kernel reads it on its command line and among the options of a hugetlbfs: `2M`, `1G`; what follows the letter
    /// is ignored (lib/cmdline.c, `memparse`). `None` for zero, and for anything but decimal digits.
    pub fn of_kernel_text(text: &str) -> Option<Self> {
        let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let shift = match text[digits..]
            .bytes()
            .next()
            .map(|letter| letter.to_ascii_uppercase())
        {
            Some(b'K') => 10,
            Some(b'M') => 20,
            Some(b'G') => 30,
            None => 0,
            _ => return None,
        };
        let number: u64 = text[..digits]
            .parse()
            .ok()
            .filter(|_| !text.starts_with('0'))?;
        Self::new(
            number
                .checked_shl(shift)
                .filter(|size| size >> shift == number)?,
        )
    }

    /// The directory of this size's pool, as in /sys/kernel/mm/hugepages (`hugepages-2048kB`).
    pub fn sysfs_name(self) -> String {
        format!("hugepages-{}kB", self.0.get() / KIB)
    }

    /// The reverse of [`PageSize::sysfs_name`].
    pub fn from_sysfs_name(name: &str) -> Option<Self> {
        let kib = name.strip_prefix("hugepages-")?.strip_suffix("kB")?;
        Self::from_kib(kib.parse().ok()?)
    }

    /// The size as it stands in the names of the hugetlb controller's files (`2MB` in `hugetlb.2MB.max`).
    pub fn cgroup_name(self) -> String {
        match self.0.get() {
            n if n >= GIB => format!("{}GB", n / GIB),
            n if n >= MIB => format!("{}MB", n / MIB),
            n => format!("{}KB", n / KIB),
        }
    }

    /// The size as the kernel's command line takes it (`2M` in `hugepagesz=2M`, kernel-parameters).
    pub fn kernel_parameter(self) -> String {
        self.cgroup_name().trim_end_matches('B').to_owned()
    }

    /// The resource of a pod's manifest (`hugepages-2Mi`, kubernetes.io/docs/tasks/manage-hugepages).
    pub fn kubernetes_resource(self) -> String {
        format!("hugepages-{}i", self.kernel_parameter())
    }

    /// The size as PostgreSQL's huge_page_size takes it (`2MB`, `1GB`, `64kB`).
    pub fn setting(self) -> String {
        self.cgroup_name().replace("KB", "kB")
    }
}

impl fmt::Display for PageSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.bytes().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_every_size_the_kernel_has() {
        for (kib, sysfs, cgroup, parameter, shown) in [
            (64, "hugepages-64kB", "64KB", "64K", "64 kB"),
            (2048, "hugepages-2048kB", "2MB", "2M", "2 MB"),
            (16 << 10, "hugepages-16384kB", "16MB", "16M", "16 MB"),
            (512 << 10, "hugepages-524288kB", "512MB", "512M", "512 MB"),
            (1 << 20, "hugepages-1048576kB", "1GB", "1G", "1 GB"),
            (16 << 20, "hugepages-16777216kB", "16GB", "16G", "16 GB"),
        ] {
            let size = PageSize::from_kib(kib).unwrap();
            assert_eq!(size.sysfs_name(), sysfs);
            assert_eq!(PageSize::from_sysfs_name(sysfs), Some(size));
            assert_eq!(size.cgroup_name(), cgroup);
            assert_eq!(size.kernel_parameter(), parameter);
            assert_eq!(size.to_string(), shown);
        }
        for name in [
            "hugepages-0kB",
            "hugepages-kB",
            "hugepages-2048",
            "2048kB",
            "hugepages-99999999999999999999kB",
        ] {
            assert_eq!(PageSize::from_sysfs_name(name), None, "{name}");
        }
    }

    #[test]
    fn pages_are_rounded_up_to_hold_and_down_to_fit() {
        let size = PageSize::new(2 * MIB).unwrap();
        for (bytes, hold, within) in [(0, 0, 0), (1, 1, 0), (2 * MIB, 1, 1), (2 * MIB + 1, 2, 1)] {
            assert_eq!(size.pages_to_hold(Bytes(bytes)), Pages(hold));
            assert_eq!(size.pages_within(Bytes(bytes)), Pages(within));
        }
        assert_eq!(size.pages_to_hold(Bytes(u64::MAX)), Pages(1 << 43));
        assert_eq!(size.times(Pages(u64::MAX)), Bytes(u64::MAX));
    }

    #[test]
    fn sizes_read_well() {
        for (bytes, shown) in [
            (0, "0 bytes"),
            (1023, "1023 bytes"),
            (1536, "1536 bytes"),
            (148_897_792, "142 MB"),
            (1_126_170_624, "1074 MB"),
            (1_126_170_625, "1074 MB"),
            (21_042_188_288, "19.5 GB"),
            (u64::MAX, "17179869183 GB"),
        ] {
            assert_eq!(Bytes(bytes).to_string(), shown);
        }
        assert_eq!(Bytes(u64::MAX).percent(100), Bytes(u64::MAX));
        assert_eq!(Bytes(1000).percent(5), Bytes(50));
    }
}
