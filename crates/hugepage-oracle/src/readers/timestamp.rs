//! The times between the lines of an alert log.

use serde::{Deserialize, Serialize};

/// A time as a log has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timestamp {
    /// The time as the log has it.
    pub text: String,
    /// Seconds from 1970-01-01 00:00 to this time of day in the log's own time zone.
    pub local: i64,
    /// The zone's offset from UTC in seconds, east positive; `None` up to 12.1, which does not print it.
    pub offset: Option<i64>,
}

impl Timestamp {
    /// Seconds since 1970-01-01 00:00 UTC; `None` without an offset.
    pub fn unix(&self) -> Option<i64> {
        Some(self.local - self.offset?)
    }

    /// Parses `Wed Aug 12 09:26:27 2015` (up to 12.1) or `2018-07-30T15:21:00.796201-05:00` (since 12.2, and
    /// `2018-07-30 15:21:00.796 -05:00` as adrci prints it), and returns the text after it as well.
    pub fn split(line: &str) -> Option<(Self, &str)> {
        let line = line.trim();
        let (local, offset, rest) = weekday_form(line).or_else(|| iso_form(line))?;
        let text = line[..line.len() - rest.len()].trim_end().to_owned();
        Some((Self { text, local, offset }, rest.trim_start()))
    }
}

fn weekday_form(line: &str) -> Option<(i64, Option<i64>, &str)> {
    const DAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let mut rest = line;
    let mut word = || {
        let (word, after) = rest.split_once(' ').unwrap_or((rest, ""));
        rest = after.trim_start_matches(' ');
        word
    };
    DAYS.contains(&word()).then_some(())?;
    let name = word();
    let month = MONTHS.iter().position(|month| *month == name)? + 1;
    let day = word().parse().ok()?;
    let seconds = time_of_day(word())?;
    let year = word();
    // The log of a server with another locale has its zone before the year.
    let year = if year.bytes().all(|byte| byte.is_ascii_digit()) { year } else { word() };
    let days = days_since_1970(year.parse().ok()?, u32::try_from(month).ok()?, day)?;
    Some((days * 86400 + seconds, None, rest))
}

fn iso_form(line: &str) -> Option<(i64, Option<i64>, &str)> {
    let (date, rest) = (line.get(..10)?, line.get(10..)?);
    let mut parts = date.splitn(3, '-');
    let mut part = || parts.next()?.parse::<u32>().ok();
    let days = days_since_1970(i64::from(part()?), part()?, part()?)?;
    let rest = rest.strip_prefix(['T', ' '])?;
    let seconds = time_of_day(rest.get(..8)?)?;
    let rest = &rest[8..];
    let fraction = rest.strip_prefix('.').unwrap_or(rest).trim_start_matches(|c: char| c.is_ascii_digit());
    let zone = fraction.trim_start();
    let (offset, rest) = match (zone.strip_prefix('Z'), offset(zone)) {
        (Some(rest), _) => (Some(0), rest),
        (None, Some(offset)) => (Some(offset), &zone[6..]),
        (None, None) => (None, zone),
    };
    Some((days * 86400 + seconds, offset, rest))
}

/// `-05:30` in seconds.
fn offset(text: &str) -> Option<i64> {
    let sign = match text.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let (hours, minutes) = text.get(1..6)?.split_once(':')?;
    let (hours, minutes): (i64, i64) = (two_digits(hours)?, two_digits(minutes)?);
    (hours < 24 && minutes < 60).then_some(sign * (hours * 3600 + minutes * 60))
}

/// `09:26:27` in seconds since midnight.
fn time_of_day(text: &str) -> Option<i64> {
    let mut parts = text.splitn(3, ':').map(two_digits);
    let mut part = || parts.next().flatten();
    let (hours, minutes, seconds) = (part()?, part()?, part()?);
    (hours < 24 && minutes < 60 && seconds <= 60).then_some(hours * 3600 + minutes * 60 + seconds)
}

fn two_digits(text: &str) -> Option<i64> {
    (text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit())).then(|| text.parse().ok())?
}

/// The days since 1970 of a date of the Gregorian calendar; years begin in March here, so that the leap day is their last.
fn days_since_1970(year: i64, month: u32, day: u32) -> Option<i64> {
    if !(1970..=9999).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let (month, day) = (i64::from(month), i64::from(day));
    let year = if month <= 2 { year - 1 } else { year };
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    Some(365 * year + year / 4 - year / 100 + year / 400 + day_of_year - 719_468)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms() {
        for (line, local, offset, rest) in [
            ("Thu Jan 01 00:00:00 1970", 0, None, ""),
            ("Wed Aug 12 09:26:27 2015", 1_439_371_587, None, ""),
            ("Tue Feb  9 22:54:03 2010", 1_265_756_043, None, ""),
            ("Mon Mar 30 05:00:00 CEST 2015", 1_427_691_600, None, ""),
            ("Sun Aug 24 13:00:35 2014 Starting ORACLE", 1_408_885_235, None, "Starting ORACLE"),
            ("2018-07-30T15:21:00.796201-05:00", 1_532_964_060, Some(-18_000), ""),
            ("2020-03-24T00:34:05.482917+00:00\r", 1_585_010_045, Some(0), ""),
            ("2019-05-02 16:52:30.837000 +05:30 text", 1_556_815_950, Some(19_800), "text"),
            ("2025-01-15 10:23:45.123", 1_736_936_625, None, ""),
            ("2000-02-29T12:00:00Z", 951_825_600, Some(0), ""),
        ] {
            let (found, behind) = Timestamp::split(line).unwrap();
            assert_eq!((found.local, found.offset, behind), (local, offset, rest), "{line}");
        }
        let (found, _) = Timestamp::split("2018-07-30T15:21:00.796201-05:00").unwrap();
        assert_eq!((found.unix(), found.text.as_str()), (Some(1_532_982_060), "2018-07-30T15:21:00.796201-05:00"));
    }

    #[test]
    fn no_times() {
        for line in [
            "",
            "Wed",
            "Wednesday Aug 12 09:26:27 2015",
            "Wed Aug 12 09:26 2015",
            "Wed Aug 32 09:26:27 2015",
            "Wed Agu 12 09:26:27 2015",
            "Wed Aug 12 09:26:27 99999999999999999999",
            "2018-13-30T15:21:00",
            "2018-07-30T15:21",
            "2018-07-30x15:21:00",
            "2018-07-3\u{e9}T15:21:00",
            "2018-07-30T15:21:0\u{e9}",
        ] {
            assert_eq!(Timestamp::split(line), None, "{line}");
        }
    }
}
