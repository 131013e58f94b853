//! What was read of a host and its servers: plain data, with the reason where something could not be read.
//!
//! Nothing here was decided, and nothing here decides or reads. [`Snapshot`] is the whole of it, which `hugepage-sidecar capture` writes
//! as JSON. A field is added with a default, never renamed, and never used for something else.
//!
//! A reader sums up what is too much to keep: the page tables of a server's processes ([`PageTables`]), the programs that have huge
//! pages ([`PoolHolder`]). Whose processes and files are read at all is settled before, by service accounts, and what was passed over
//! is said ([`Stranger`], [`ClusterFound::OfNobody`]).
//!
//! ```
//! use hugepage_facts::Configured;
//!
//! let configured = Configured {
//!     files: [("huge_pages".to_owned(), "on".to_owned())].into(),
//!     options: vec![("huge_pages".to_owned(), "off".to_owned())],
//!     ..Configured::default()
//! };
//! assert_eq!(configured.effective()["huge_pages"], "off");
//! ```

/// An enumeration whose values are shown as they are serialized: in snake case, if they have no other name.
#[macro_export]
macro_rules! words {
    ($(#[$about:meta])+ pub enum $name:ident { $($(#[$of:meta])+ $word:ident,)+ }) => {
        $(#[$about])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum $name {
            $($(#[$of])+ $word,)+
        }

        impl $name {
            /// All of them.
            pub const ALL: [Self; [$(stringify!($word)),+].len()] = [$(Self::$word),+];
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                serde::Serialize::serialize(self, f)
            }
        }
    };
}

mod clusters;
pub mod escape;
mod key;
mod landing;
mod memory;
mod oracle;
mod others;
mod owner;
pub mod pools;
mod postgresql;
mod server;
mod snapshot;

pub use clusters::{ClusterFacts, ClusterFiles, ClusterFound, Remembered};
pub use key::InstanceKey;
pub use landing::{Cause, Landing, Loss, Lost, PageKind, Past};
pub use memory::{ObservedMemory, PageTables, TransparentPages};
pub use oracle::{
    LastStart, LockRights, LoggedPageRow, OracleKind, OracleSettings, Parameter, Parameters,
    RunningOracle, StoppedFacts, Timestamp,
};
pub use others::{PoolHolder, Stranger, Strangers};
pub use owner::{Owner, Unread};
pub use pools::PoolRow;
pub use postgresql::{
    Configured, DataDirectory, PostgreSqlServer, PostgreSqlSettings, StartAnswer,
};
pub use server::{InstancePlace, ServerIdentity, ServerProduct};
pub use snapshot::{
    HostFacts, OtherProcesses, PageLimits, ServerFacts, Snapshot, StoppedServers, UnreadList,
};
