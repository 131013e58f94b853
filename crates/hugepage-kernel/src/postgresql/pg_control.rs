//! global/pg_control of a PostgreSQL cluster (pg_control.h): the fields that the next start depends on.
//!
//! Majors have different fields before and after them. In between is a constant, by which they are found.

use serde::{Deserialize, Serialize};

use crate::Bytes;

/// The bytes that the server writes at once: all fields are in them (`PG_CONTROL_MAX_SAFE_SIZE`).
pub const LENGTH: u64 = 512;
/// The files of a data directory with which a start replays the log of another server (xlog.h, `STANDBY_SIGNAL_FILE`).
pub const SIGNAL_FILES: [&str; 2] = ["standby.signal", "recovery.signal"];
/// `FLOATFORMAT_VALUE`.
const FLOAT_FORMAT: f64 = 1_234_567.0;

/// The fields, of PostgreSQL 12 and later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PgControl {
    /// `xlog_seg_size`.
    pub wal_segment: Bytes,
    /// `wal_level` of the running server, or of a standby's primary: 0 `minimal`, 1 `replica`, 2 `logical`.
    pub wal_level: i32,
    /// The recovery parameters of the running server, or of a standby's primary.
    pub parameters: RecoveryParameters,
}

/// The settings that a standby must have at least as high as its primary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecoveryParameters {
    /// `hot_standby`: without it nothing is compared.
    pub hot_standby: bool,
    /// Each has its setting's name.
    pub max_connections: i32,
    /// As above.
    pub max_worker_processes: i32,
    /// As above.
    pub max_wal_senders: i32,
    /// As above.
    pub max_prepared_transactions: i32,
    /// As above.
    pub max_locks_per_transaction: i32,
}

impl PgControl {
    /// Reads the fields from the first [`LENGTH`] bytes, in the byte order of the machine; `None` if they are not found.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let word = |at: usize| {
            bytes
                .get(at..at.checked_add(4)?)?
                .try_into()
                .ok()
                .map(i32::from_ne_bytes)
        };
        let is_constant = |at: &usize| bytes.get(*at..*at + 8) == Some(&FLOAT_FORMAT.to_ne_bytes());
        let mut found = (0..bytes.len()).step_by(8).filter(is_constant);
        let (constant, None) = (found.next()?, found.next()) else {
            return None;
        };
        // maxAlign is 8 there, with four bytes of padding behind it or none.
        let align = [constant.checked_sub(4)?, constant.checked_sub(8)?]
            .into_iter()
            .find(|at| word(*at) == Some(8))?;
        let before = |distance: usize| word(align.checked_sub(distance)?);
        // 19 has slru_pages_per_segment before xlog_blcksz, which is below the range.
        let is_size = |size: &u64| size.is_power_of_two() && (1 << 20..=1 << 30).contains(size);
        let wal_segment = [20, 24].into_iter().find_map(|distance| {
            u64::try_from(word(constant.checked_add(distance)?)?)
                .ok()
                .filter(is_size)
        })?;
        let parameters = RecoveryParameters {
            hot_standby: true,
            max_connections: before(24)?,
            max_worker_processes: before(20)?,
            max_wal_senders: before(16)?,
            max_prepared_transactions: before(12)?,
            max_locks_per_transaction: before(8)?,
        };
        let wal_level = before(32)?;
        let is_plausible = (0..=2).contains(&wal_level)
            && parameters.max_connections > 0
            && parameters.max_locks_per_transaction > 0;
        is_plausible.then_some(Self {
            wal_segment: Bytes(wal_segment),
            wal_level,
            parameters,
        })
    }
}

impl RecoveryParameters {
    /// The server's error text, if a standby with these would abort recovery.
    pub fn refusal(&self, primary: &Self) -> Option<String> {
        if !self.hot_standby {
            return None;
        }
        let pairs = [
            (
                "max_connections",
                self.max_connections,
                primary.max_connections,
            ),
            (
                "max_worker_processes",
                self.max_worker_processes,
                primary.max_worker_processes,
            ),
            (
                "max_wal_senders",
                self.max_wal_senders,
                primary.max_wal_senders,
            ),
            (
                "max_prepared_transactions",
                self.max_prepared_transactions,
                primary.max_prepared_transactions,
            ),
            (
                "max_locks_per_transaction",
                self.max_locks_per_transaction,
                primary.max_locks_per_transaction,
            ),
        ];
        let (name, own, least) = pairs.into_iter().find(|(_, own, least)| own < least)?;
        Some(format!(
            "FATAL:  recovery aborted because of insufficient parameter settings\n\
             DETAIL:  {name} = {own} is a lower setting than on the primary server, where its value was {least}."
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A control file with the layout of PostgreSQL 15.
    fn control(wal_segment: i32) -> Vec<u8> {
        let mut bytes = vec![7; 172];
        for word in [1, 0, 100, 8, 10, 0, 64, 0, 8] {
            bytes.extend(i32::to_ne_bytes(word));
        }
        bytes.extend(FLOAT_FORMAT.to_ne_bytes());
        for word in [8192, 131_072, 8192, wal_segment, 64, 32] {
            bytes.extend(i32::to_ne_bytes(word));
        }
        bytes.resize(512, 0);
        bytes
    }

    #[test]
    fn fields_beside_the_constant() {
        let found = PgControl::parse(&control(16 << 20)).unwrap();
        assert_eq!((found.wal_segment, found.wal_level), (Bytes(16 << 20), 1));
        let parameters = found.parameters;
        assert_eq!(
            (
                parameters.max_connections,
                parameters.max_locks_per_transaction
            ),
            (100, 64)
        );
        assert_eq!(
            (parameters.max_worker_processes, parameters.max_wal_senders),
            (8, 10)
        );
        for bytes in [
            control(17),
            control(0),
            vec![0; 512],
            control(1 << 20)[..200].to_vec(),
            Vec::new(),
        ] {
            assert_eq!(PgControl::parse(&bytes), None);
        }
    }

    /// The first 512 bytes of global/pg_control of clusters made with `--wal-segsize=32` and max_connections = 123, by major;
    /// pg_controldata says the same of each.
    #[test]
    fn files_of_each_major() {
        let files = [
            (64, &include_bytes!("../../tests/pg_control/15")[..]),
            (64, &include_bytes!("../../tests/pg_control/17")[..]),
            (64, &include_bytes!("../../tests/pg_control/18")[..]),
            (128, &include_bytes!("../../tests/pg_control/19")[..]),
        ];
        for (max_locks_per_transaction, bytes) in files {
            let parameters = RecoveryParameters {
                hot_standby: true,
                max_connections: 123,
                max_worker_processes: 8,
                max_wal_senders: 10,
                max_prepared_transactions: 0,
                max_locks_per_transaction,
            };
            let expected = PgControl {
                wal_segment: Bytes(32 << 20),
                wal_level: 1,
                parameters,
            };
            assert_eq!(PgControl::parse(bytes), Some(expected));
            // So much of it is in a tree.
            assert_eq!(PgControl::parse(&bytes[..244]), Some(expected));
        }
    }

    #[test]
    fn a_standby_with_less_than_its_primary() {
        let primary = PgControl::parse(&control(1 << 20)).unwrap().parameters;
        let less = RecoveryParameters {
            max_wal_senders: 9,
            ..primary
        };
        assert!(
            less.refusal(&primary)
                .unwrap()
                .contains("max_wal_senders = 9 is a lower setting")
        );
        assert_eq!(
            RecoveryParameters {
                hot_standby: false,
                ..less
            }
            .refusal(&primary),
            None
        );
        assert_eq!(primary.refusal(&less), None);
    }
}
