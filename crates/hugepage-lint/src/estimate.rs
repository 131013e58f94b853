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
    /// `wal_segment_size`, which bounds the `wal_buffers` of -1.
    pub wal_segment: Bytes,
    /// `max_connections`.
    pub max_connections: u64,
    /// Workers, WAL senders and prepared transactions.
    pub other_processes: u64,
    /// `max_locks_per_transaction`, at least and at most: its default depends on the major version.
    pub locks: (u64, u64),
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
    let wal = terms
        .wal_buffers
        .map_or((terms.shared_buffers.0 / 32).clamp(64 << 10, terms.wal_segment.0.max(1 << 20)), |size| size.0);
    let backends = terms.max_connections.saturating_add(terms.other_processes);
    let sum = |buffer: u64, backend: u64, locks: u64, predicate: u64, fixed: u64| {
        let locks = locks.saturating_add(predicate.saturating_mul(terms.predicate_locks));
        let backend = backend.saturating_add(locks).saturating_add(terms.query_size).saturating_mul(backends);
        let sum = buffers.saturating_mul(buffer).saturating_add(backend).saturating_add(wal);
        sum.saturating_add(fixed).saturating_add(terms.added.0)
    };
    let locks = (LOCK.0.saturating_mul(terms.locks.0), LOCK.1.saturating_mul(terms.locks.1));
    let least = sum(BUFFER.0, BACKEND.0, locks.0, PREDICATE_LOCK.0, FIXED.0);
    let mut most = sum(BUFFER.1, BACKEND.1, locks.1, PREDICATE_LOCK.1, FIXED.1);
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

    /// What PostgreSQL reports in kB, for its major, shared_buffers in MB, max_connections, workers and the like, and locks.
    #[test]
    fn bounds_hold_what_a_server_reports() {
        for (major, buffers, connections, others, locks, reported) in [
            (15, 16, 100, 22, 64, 24_297),
            (15, 128, 100, 22, 64, 146_017),
            (15, 1024, 100, 22, 64, 1_099_105),
            (15, 1024, 10, 22, 64, 1_094_865),
            (15, 1024, 5000, 22, 64, 1_339_177),
            (15, 1024, 1000, 22, 1024, 1_512_409),
            (15, 1024, 1000, 22, 16, 1_122_721),
            (15, 1024, 100, 142, 64, 1_104_825),
            (15, 16 << 10, 100, 22, 64, 17_173_473),
            (15, 64 << 10, 100, 22, 64, 68_611_425),
            (15, 256 << 10, 100, 22, 64, 273_811_169),
            (17, 128, 100, 22, 64, 146_385),
            (17, 1024, 100, 22, 64, 1_104_529),
            (17, 1024, 150, 46, 64, 1_108_209),
            (17, 1024, 5000, 22, 64, 1_344_689),
            (17, 8 << 10, 300, 22, 64, 8_647_977),
            (17, 64 << 10, 200, 22, 64, 68_711_081),
            (18, 128, 100, 35, 64, 153_361),
            (18, 1024, 100, 35, 64, 1_111_497),
            (18, 1024, 150, 59, 64, 1_117_249),
            (18, 1024, 1000, 35, 64, 1_186_889),
            (18, 1024, 5000, 35, 64, 1_413_801),
            (18, 8 << 10, 300, 35, 64, 8_661_233),
            (18, 64 << 10, 200, 35, 64, 68_720_985),
            (19, 128, 100, 35, 64, 156_112),
            (19, 1024, 100, 35, 64, 1_114_248),
            (19, 1024, 150, 59, 64, 1_121_312),
            (19, 1024, 1000, 35, 64, 1_207_672),
            (19, 1024, 5000, 35, 64, 1_512_528),
            (19, 8 << 10, 300, 35, 64, 8_667_824),
            (19, 64 << 10, 200, 35, 64, 68_725_504),
        ] {
            let terms = EstimateSettings {
                major: Some(major),
                shared_buffers: Bytes(buffers << 20),
                wal_buffers: None,
                wal_segment: Bytes(16 << 20),
                max_connections: connections,
                other_processes: others,
                locks: (locks, locks),
                predicate_locks: 64,
                query_size: 1024,
                added: Bytes(0),
            };
            let (least, most) = shared_memory(&terms);
            let reported = Bytes::from_kib(reported);
            assert!(least <= reported && reported <= most, "{major}, {buffers} MB: {least:?} {reported:?} {most:?}");
            // Before 18 the error stays below a tenth, or 20 MB.
            let error = if major < 18 { (reported.0 / 10).max(20 << 20) } else { (reported.0 / 3).max(40 << 20) };
            assert!(most.0 - least.0 < error, "{major}, {buffers} MB: {least:?} {most:?}");
        }
    }

    /// What 18.6 and 19 report in MB for 1 GB of shared_buffers and the default of `max_locks_per_transaction`, 64 and 128.
    #[test]
    fn bounds_of_majors_with_other_defaults() {
        for (major, locks, connections, reported) in [
            (Some(18), (64, 64), 100, 1086),
            (Some(18), (64, 64), 1000, 1160),
            (Some(19), (128, 128), 100, 1089),
            (Some(19), (128, 128), 1000, 1180),
            (None, (64, 128), 1000, 1160),
            (None, (64, 128), 1000, 1180),
        ] {
            let terms = EstimateSettings {
                major,
                shared_buffers: Bytes(1 << 30),
                wal_buffers: None,
                wal_segment: Bytes(16 << 20),
                max_connections: connections,
                other_processes: 35,
                locks,
                predicate_locks: 64,
                query_size: 1024,
                added: Bytes(0),
            };
            let (least, most) = shared_memory(&terms);
            let reported = Bytes(reported << 20);
            assert!(least <= reported && reported <= most, "{major:?} {connections}: {least} {reported} {most}");
        }
    }
}
