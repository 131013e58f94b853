//! What an Oracle instance asked for, and asks for at the next start.

use hugepage_assess::model::{LockLimit, Pending, PoolState, Segment};
use hugepage_kernel::notes::Notes;
use hugepage_oracle::readers::Parameters;

use super::asked::asked_next;
use super::context::InspectContext;
use super::identity::ServerIdentity;
use super::observe::ObservedMemory;
use super::oracle::{lock_limit, logged_refusal};
use super::pending::{OracleSettings, pending};
use super::request::ServerRequest;

impl InspectContext<'_> {
    /// `unchanged`: what was seen, as if the next start asked for the same.
    pub(super) fn oracle_request(
        &self,
        unchanged: ServerRequest,
        identity: &ServerIdentity,
        settings: OracleSettings,
        memory: &ObservedMemory,
        notes: &mut Notes,
    ) -> ServerRequest {
        let ServerRequest { asked, segment, ground, .. } = &unchanged;
        let lacks = |segment: Option<&Segment>| lock_limit(self.root, identity.pid, asked, segment, memory.memlock);
        let refused = || logged_refusal(identity.last_start.as_ref()?, segment.as_ref()?);
        let lock_limit = lacks(segment.as_ref()).or_else(|| {
            let refusal = refused()?;
            if refusal == LockLimit::Unexplained {
                notes.add(
                    "the start found enough huge pages and took none of them: compare kernel.shmall, the NUMA policy and the \
                     limits of its owner with the alert log",
                );
            }
            Some(refusal)
        });
        let version = identity.version.as_deref();
        let pending = match asked.is_automatic_asm() {
            true => Pending::Unchanged,
            false => {
                let asked_next = |next: &Parameters| asked_next(next, asked, version);
                let ground = PoolState { lock_limit, ..ground.clone() };
                pending(&settings.on_disk, &unchanged.current_start(), ground, || lacks(None), asked_next)
            }
        };
        let ground = PoolState { lock_limit, ..unchanged.ground };
        ServerRequest { ground, pending, clusterware: settings.clusterware, ..unchanged }
    }
}
