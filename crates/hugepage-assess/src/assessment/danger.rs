//! What stops a start although its configuration is right: base pages that the kernel does not grant, and a signal at the first touch.

use hugepage_kernel::Bytes;

use crate::assessment::{Outlook, Start};
use crate::model::{HugePages, Requested};

/// What stops a start, or may stop it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Danger {
    /// Whether it is SIGBUS, because a hugetlb cgroup lets it touch less than it reserves. Else the kernel grants no such mapping
    /// in base pages.
    pub is_signal: bool,
    /// What sets the limit.
    pub name: String,
    /// The most that this certainly allows.
    pub allowed: Bytes,
    /// What the start asks for.
    pub size: Bytes,
    /// Whether it stops the start for certain.
    pub is_certain: bool,
}

impl Danger {
    /// The outlook of a start that meets it.
    pub(super) const fn outlook(&self) -> Outlook {
        match self.is_signal {
            _ if self.is_certain => Outlook::Fails,
            true => Outlook::Hugetlb,
            false => Outlook::Unknown,
        }
    }
}

impl Requested {
    /// What a start of PostgreSQL touches at least: a descriptor and a lock of 80 bytes for each buffer of 8 kB, and the WAL buffers,
    /// without `wal_buffers` a 32nd of `shared_buffers` up to 16 MB (`BufferManagerShmemInit`, `XLOGShmemInit`).
    fn touches_at_least(&self) -> Bytes {
        let buffers = self.shared_buffers.0;
        let wal_buffers = (buffers / 32).min(16 << 20);
        Bytes(
            (buffers / 8192)
                .saturating_mul(80)
                .saturating_add(wal_buffers),
        )
    }
}

impl Start<'_> {
    /// What stops it in base pages, what is certain first.
    pub(super) fn danger_in_base_pages(&self) -> Option<Danger> {
        let size = self
            .size
            .filter(|_| self.requested.huge_pages != HugePages::On)?;
        let limits = self.pool_state.base_limits.iter();
        let exceeded = limits.filter(|limit| size > limit.granted);
        let dangers = exceeded.map(|limit| Danger {
            is_signal: false,
            name: limit.name.clone(),
            allowed: limit.granted,
            size,
            is_certain: size > limit.most,
        });
        dangers.max_by_key(|danger| danger.is_certain)
    }

    /// What stops one of PostgreSQL in huge pages.
    pub(super) fn danger_of_touch(&self) -> Option<Danger> {
        let excess = self.excesses().into_iter().next()?;
        (!self.requested.is_oracle()).then(|| Danger {
            is_signal: true,
            name: excess.path,
            allowed: excess.limit,
            size: excess.size,
            is_certain: excess.limit < self.requested.touches_at_least(),
        })
    }
}
