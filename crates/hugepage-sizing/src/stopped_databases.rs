//! Servers that are configured on a host and do not run, and the pages that they will need.

use std::borrow::Cow;

use hugepage_kernel::{Bytes, PageSize, Pages};
use serde::{Deserialize, Serialize};

use crate::PoolNeed;

/// A server that does not run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoppedDatabase {
    /// The kind: `oracle`, `asm`, `postgresql`.
    pub kind: Cow<'static, str>,
    /// The SID, or the data directory.
    pub name: String,
    /// The size of the pages that it asks for; `None` for the host's default.
    pub page_size: Option<PageSize>,
    /// What it needs of them.
    pub wants: Wants,
    /// Whether only people start it: `manual` in the start.conf of Debian.
    pub is_manual: bool,
}

/// What a server that does not run will ask for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Wants {
    /// This number of huge pages, and the source of the number.
    Pages(Pages, Cow<'static, str>),
    /// None, and why.
    None(Cow<'static, str>),
    /// Could not be determined, and why.
    Unknown(String),
}

impl Wants {
    /// The number of huge pages, 0 if it asks for none; `None` if it could not be determined.
    pub const fn pages(&self) -> Option<Pages> {
        match self {
            Self::Pages(pages, _) => Some(*pages),
            Self::None(_) => Some(Pages(0)),
            Self::Unknown(_) => None,
        }
    }
}

impl StoppedDatabase {
    /// The need of a pool; `None` if the number is unknown.
    pub fn need(&self) -> Option<(Option<PageSize>, PoolNeed)> {
        let Wants::Pages(pages, _) = &self.wants else { return None };
        let (pages, running, held, movable) = (*pages, Pages(0), Pages(0), Bytes(0));
        Some((self.page_size, PoolNeed { name: self.name.clone(), pages, running, held, movable, is_running: false }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_that_do_not_run() {
        let stopped = |wants| StoppedDatabase {
            kind: "oracle".into(),
            name: "orcl".to_owned(),
            page_size: None,
            wants,
            is_manual: false,
        };
        let [pages, none, unknown] = [
            Wants::Pages(Pages(7), "the alert log".into()),
            Wants::None("FALSE".into()),
            Wants::Unknown("why".to_owned()),
        ];
        assert_eq!([pages.pages(), none.pages(), unknown.pages()], [Some(Pages(7)), Some(Pages(0)), None]);
        let (size, need) = stopped(pages).need().unwrap();
        assert_eq!(
            (size, &*need.name, need.pages, need.held, need.is_running),
            (None, "orcl", Pages(7), Pages(0), false)
        );
        assert!(stopped(none).need().is_none() && stopped(unknown).need().is_none());
    }
}
