//! An estimate of shared memory where no server can be asked, between two bounds. The terms were fitted to what PostgreSQL 15
//! reports; the bounds include what later majors add. A test holds it against the installed server.

use hugepage_kernel::Bytes;

/// Bytes of a buffer of 8 kB with its descriptor and hash entry: the least and the most, from 16 MB to 256 GB.
const BUFFER: (u64, u64) = (8348, 8384);
/// Bytes for one possible backend, without its locks and the text of its query.
const BACKEND: (u64, u64) = (6 << 10, 10 << 10);
/// Bytes of a lock and of a predicate lock.
const LOCK: (u64, u64) = (370, 410);
const PREDICATE_LOCK: (u64, u64) = (215, 250);
/// Bytes that depend on no setting.
const FIXED: (u64, u64) = (1 << 20, 9 << 20);
/// Caches of the transaction status (SLRU), which grow with shared_buffers from 17 on: the part, and the most of all.
const TRANSACTION_CACHES: (u64, u64) = (128, 32 << 20);
/// Handles of asynchronous I/O for one process, from 18 on.
const IO_OF_PROCESS: u64 = 48 << 10;

/// The settings that the estimate takes.
#[derive(Clone, Copy, Debug)]
pub struct EstimateSettings {
    /// The major version, if it is known.
    pub major: Option<u32>,
    /// `shared_buffers`.
    pub shared_buffers: Bytes,
    /// `wal_buffers`; `None` for -1.
    pub wal_buffers: Option<Bytes>,
    /// `max_connections`.
    pub max_connections: u64,
    /// Workers, WAL senders and prepared transactions.
    pub other_processes: u64,
    /// `max_locks_per_transaction`.
    pub locks: u64,
    /// `max_pred_locks_per_transaction`.
    pub predicate_locks: u64,
    /// `track_activity_query_size`.
    pub query_size: u64,
    /// The sum of `min_dynamic_shared_memory` and other sizes that are added as they are.
    pub added: Bytes,
}

/// The least and the most shared memory of a server with these settings.
pub fn shared_memory(terms: &EstimateSettings) -> (Bytes, Bytes) {
    let buffers = terms.shared_buffers.0.div_ceil(8192);
    // XLOGChooseNumBuffers.
    let wal = terms.wal_buffers.map_or((terms.shared_buffers.0 / 32).clamp(64 << 10, 16 << 20), |size| size.0);
    let backends = terms.max_connections.saturating_add(terms.other_processes);
    let sum = |buffer: u64, backend: u64, lock: u64, predicate: u64, fixed: u64| {
        let locks = lock.saturating_mul(terms.locks).saturating_add(predicate.saturating_mul(terms.predicate_locks));
        let backend = backend.saturating_add(locks).saturating_add(terms.query_size).saturating_mul(backends);
        let sum = buffers.saturating_mul(buffer).saturating_add(backend).saturating_add(wal);
        sum.saturating_add(fixed).saturating_add(terms.added.0)
    };
    let least = sum(BUFFER.0, BACKEND.0, LOCK.0, PREDICATE_LOCK.0, FIXED.0);
    let mut most = sum(BUFFER.1, BACKEND.1, LOCK.1, PREDICATE_LOCK.1, FIXED.1);
    if terms.major.is_none_or(|major| major >= 17) {
        most = most.saturating_add((terms.shared_buffers.0 / TRANSACTION_CACHES.0).min(TRANSACTION_CACHES.1));
    }
    if terms.major.is_none_or(|major| major >= 18) {
        most = most.saturating_add(IO_OF_PROCESS.saturating_mul(backends.saturating_add(32)));
    }
    (Bytes(least), Bytes(most))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What PostgreSQL 15 reports in kB, for shared_buffers in MB, max_connections, workers and the like, and locks.
    #[test]
    fn bounds_hold_what_a_server_reports() {
        for (buffers, connections, others, locks, reported) in [
            (16, 100, 22, 64, 24_297),
            (128, 100, 22, 64, 146_017),
            (1024, 100, 22, 64, 1_099_105),
            (1024, 10, 22, 64, 1_094_865),
            (1024, 5000, 22, 64, 1_339_177),
            (1024, 1000, 22, 1024, 1_512_409),
            (1024, 1000, 22, 16, 1_122_721),
            (1024, 100, 142, 64, 1_104_825),
            (16 << 10, 100, 22, 64, 17_173_473),
            (64 << 10, 100, 22, 64, 68_611_425),
            (256 << 10, 100, 22, 64, 273_811_169),
        ] {
            let terms = EstimateSettings {
                major: Some(15),
                shared_buffers: Bytes(buffers << 20),
                wal_buffers: None,
                max_connections: connections,
                other_processes: others,
                locks,
                predicate_locks: 64,
                query_size: 1024,
                added: Bytes(0),
            };
            let (least, most) = shared_memory(&terms);
            let reported = Bytes::from_kib(reported);
            assert!(least <= reported && reported <= most, "{buffers} MB: {least} {reported} {most}");
            // The error stays below a tenth, or 20 MB.
            assert!(most.0 - least.0 < (reported.0 / 10).max(20 << 20), "{buffers} MB: {least} {most}");
        }
    }
}
