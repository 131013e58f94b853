//! The pages of a pool after the next boot, and who sets them.

use crate::Pages;

/// What a pool has after the next boot. `T`: a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PoolAtBoot<T = String> {
    /// So many pages, and the file that sets them.
    Set(Pages, T),
    /// As many as after the last boot.
    Remembered(Pages),
    /// As many as root says, and who sets them.
    Told(Pages, T),
    /// As many as hugepage-reserve.service left after the last boot, or what its servers need by then.
    Made {
        /// The pages.
        pages: Pages,
        /// The smaller number of sysctl.d and its file, which sysctl(8) may set at any time.
        smaller: Option<(Pages, T)>,
    },
    /// None, as after the last boot: nothing sets it.
    Unset,
    /// No boot has been seen, and nothing that was looked at sets it.
    Unseen {
        /// Whether systemd runs, whose settings were looked at.
        has_systemd: bool,
    },
    /// The number can't be known; the reason, a clause.
    Unknown(T),
    /// The host's files are not seen from this container.
    OfHost,
}

impl<T> PoolAtBoot<T> {
    /// The same with other texts.
    pub fn map<U>(&self, text: impl Fn(&T) -> U) -> PoolAtBoot<U> {
        match self {
            Self::Set(pages, file) => PoolAtBoot::Set(*pages, text(file)),
            Self::Remembered(pages) => PoolAtBoot::Remembered(*pages),
            Self::Told(pages, who) => PoolAtBoot::Told(*pages, text(who)),
            Self::Made { pages, smaller } => PoolAtBoot::Made {
                pages: *pages,
                smaller: smaller.as_ref().map(|(pages, file)| (*pages, text(file))),
            },
            Self::Unset => PoolAtBoot::Unset,
            Self::Unseen { has_systemd } => PoolAtBoot::Unseen {
                has_systemd: *has_systemd,
            },
            Self::Unknown(why) => PoolAtBoot::Unknown(text(why)),
            Self::OfHost => PoolAtBoot::OfHost,
        }
    }
}

impl PoolAtBoot {
    /// The pages; `None` if they are unknown.
    pub fn pages(&self) -> Option<Pages> {
        Some(match self {
            Self::Set(pages, _)
            | Self::Remembered(pages)
            | Self::Told(pages, _)
            | Self::Made { pages, .. } => *pages,
            Self::Unset | Self::Unseen { .. } => Pages(0),
            Self::Unknown(_) | Self::OfHost => return None,
        })
    }

    /// Why it is unknown, a clause; `None` if it is known.
    pub fn unknown(&self) -> Option<&str> {
        match self {
            Self::Unseen { .. } => {
                Some("no boot has been seen yet, and nothing that was looked at sets the pool")
            }
            Self::Unknown(why) => Some(why),
            Self::OfHost => Some("the files of a container say nothing of the host's next boot"),
            _ => None,
        }
    }
}
