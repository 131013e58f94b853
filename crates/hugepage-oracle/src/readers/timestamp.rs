//! The times between the lines of an alert log.

use std::time::UNIX_EPOCH;

use hugepage_facts::Timestamp;

use crate::readers::words::is_number;

/// Parses `Wed Aug 12 09:26:27 2015` (up to 12.1) or `2018-07-30T15:21:00.796201-05:00` (since 12.2, and
/// `2018-07-30 15:21:00.796 -05:00` as adrci prints it), and returns the text after it as well.
pub fn split(line: &str) -> Option<(Timestamp, &str)> {
    let line = line.trim();
    let (at, offset, rest) = weekday_form(line).or_else(|| iso_form(line))?;
    let at = humantime::parse_rfc3339_weak(&at).ok()?;
    let at = at.duration_since(UNIX_EPOCH).ok()?.as_secs();
    let time = Timestamp {
        local: i64::try_from(at).ok()?,
        offset,
    };
    Some((time, rest.trim_start()))
}

/// The time as `2015-08-12 09:26:27`, and what follows.
fn weekday_form(line: &str) -> Option<(String, Option<i64>, &str)> {
    const DAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let mut rest = line;
    let mut word = || {
        let (word, after) = rest.split_once(' ').unwrap_or((rest, ""));
        rest = after.trim_start_matches(' ');
        word
    };
    DAYS.contains(&word()).then_some(())?;
    let name = word();
    let month = MONTHS.iter().position(|month| *month == name)? + 1;
    let (day, time, mut year) = (word(), word(), word());
    // The log of a server with another locale has its zone before the year.
    if !is_number(year) {
        year = word();
    }
    Some((format!("{year}-{month:02}-{day:0>2} {time}"), None, rest))
}

/// The time without its fraction, the offset from UTC, and what follows.
fn iso_form(line: &str) -> Option<(String, Option<i64>, &str)> {
    let (at, rest) = line.split_at_checked(19)?;
    let fraction = rest.strip_prefix('.').unwrap_or(rest);
    let zone = fraction.trim_start_matches(|c: char| c.is_ascii_digit());
    let zone = zone.trim_start();
    let offset = offset(zone);
    let rest = if offset.is_some() { &zone[6..] } else { zone };
    Some((at.to_owned(), offset, rest))
}

/// `-05:30` in seconds.
fn offset(text: &str) -> Option<i64> {
    let (hours, minutes) = text.get(1..6)?.split_once(':')?;
    let sign = match text.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let (hours, minutes): (i64, i64) = (hours.parse().ok()?, minutes.parse().ok()?);
    (hours < 24 && minutes < 60).then_some(sign * (hours * 3600 + minutes * 60))
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
            (
                "Sun Aug 24 13:00:35 2014 Starting ORACLE",
                1_408_885_235,
                None,
                "Starting ORACLE",
            ),
            (
                "2018-07-30T15:21:00.796201-05:00",
                1_532_964_060,
                Some(-18_000),
                "",
            ),
            (
                "2020-03-24T00:34:05.482917+00:00\r",
                1_585_010_045,
                Some(0),
                "",
            ),
            (
                "2019-05-02 16:52:30.837000 +05:30 text",
                1_556_815_950,
                Some(19_800),
                "text",
            ),
            ("2025-01-15 10:23:45.123", 1_736_936_625, None, ""),
        ] {
            let (found, behind) = split(line).unwrap();
            assert_eq!(
                (found.local, found.offset, behind),
                (local, offset, rest),
                "{line}"
            );
        }
        let (found, _) = split("2018-07-30T15:21:00.796201-05:00").unwrap();
        assert_eq!(found.unix(), Some(1_532_982_060));
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
            assert_eq!(split(line), None, "{line}");
        }
    }
}
