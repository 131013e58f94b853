//! Range by range: what the kernel answers, and what ends a collapse.

use std::time::Duration;

/// A range that takes longer ends the collapse: sessions wait for it.
const MAX_STALL: Duration = Duration::from_millis(500);
/// How often a range is tried for which the kernel says EAGAIN, and the pause between.
const ATTEMPTS: usize = 3;
const PAUSE: Duration = Duration::from_millis(10);

/// What a collapse does to the host.
pub trait Kernel {
    /// Why the next range is not asked for: memory ends, or the server is another one by now.
    fn refusal(&mut self) -> Option<String>;
    /// Asks for the range at `start`; the answer is an error number, and the time that it took.
    fn collapse(&mut self, start: u64) -> (Result<(), i32>, Duration);
    /// Waits; whether a signal came.
    fn wait(&mut self, time: Duration) -> bool;
}

/// How a collapse ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum End {
    /// After the last range.
    #[default]
    Done,
    /// By a signal, between two ranges.
    Interrupted,
    /// For this reason.
    Stopped(String),
}

/// What was done.
#[derive(Clone, Debug, Default)]
pub struct Ranges {
    /// The ranges that are huge pages now.
    pub collapsed: Vec<u64>,
    /// Ranges of which nothing is resident, or which the kernel can't collapse.
    pub refused: usize,
    /// Ranges whose pages were in use at each attempt.
    pub busy: usize,
    /// The time of each range.
    pub times: Vec<Duration>,
    /// The end.
    pub end: End,
}

/// Asks for the ranges that begin at `starts`, each in `shortest` at least. `after` is called after each of them.
pub fn collapse(
    kernel: &mut impl Kernel,
    starts: &[u64],
    shortest: Duration,
    mut after: impl FnMut(&Ranges),
) -> Ranges {
    let mut done = Ranges::default();
    for &start in starts {
        if kernel.wait(Duration::ZERO) {
            done.end = End::Interrupted;
            break;
        }
        if let Some(end) = one(kernel, start, &mut done) {
            done.end = end;
            break;
        }
        after(&done);
        let took = done.times.last().copied().unwrap_or_default();
        if took < shortest && kernel.wait(shortest - took) {
            done.end = End::Interrupted;
            break;
        }
    }
    done
}

/// Asks for one range, some times if it is busy. Returns how that ends the collapse; `None` if it goes on.
fn one(kernel: &mut impl Kernel, start: u64, done: &mut Ranges) -> Option<End> {
    for attempt in 1..=ATTEMPTS {
        if let Some(why) = kernel.refusal() {
            return Some(End::Stopped(why));
        }
        let (answer, took) = kernel.collapse(start);
        let is_last = attempt == ATTEMPTS || answer != Err(libc::EAGAIN) || took > MAX_STALL;
        if is_last {
            done.times.push(took);
        }
        let why = match answer {
            Ok(()) => {
                done.collapsed.push(start);
                None
            }
            Err(libc::EAGAIN) if !is_last => {
                if kernel.wait(PAUSE) {
                    return Some(End::Interrupted);
                }
                continue;
            }
            Err(libc::EAGAIN) => {
                done.busy += 1;
                None
            }
            Err(libc::EINVAL) => {
                done.refused += 1;
                None
            }
            Err(libc::ENOMEM) => Some(
                "the kernel has no free huge page, or the server has unmapped its memory (ENOMEM)"
                    .to_owned(),
            ),
            Err(libc::EBUSY) => Some("a memory limit refused a huge page (EBUSY)".to_owned()),
            Err(libc::ESRCH) => Some("the process has ended".to_owned()),
            Err(number) => Some(std::io::Error::from_raw_os_error(number).to_string()),
        };
        let slow = || (took > MAX_STALL).then(|| format!("one range took {} ms", took.as_millis()));
        return why.or_else(slow).map(End::Stopped);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers in turn, and then without an error.
    #[derive(Default)]
    struct Fake {
        answers: Vec<(Result<(), i32>, u64)>,
        asked: Vec<u64>,
        refuse_at: Option<usize>,
        signal_at: Option<usize>,
        waited: Duration,
    }

    impl Kernel for Fake {
        fn refusal(&mut self) -> Option<String> {
            (self.refuse_at == Some(self.asked.len())).then(|| "memory".to_owned())
        }

        fn collapse(&mut self, start: u64) -> (Result<(), i32>, Duration) {
            self.asked.push(start);
            let (answer, millis) = match self.answers.is_empty() {
                true => (Ok(()), 12),
                false => self.answers.remove(0),
            };
            (answer, Duration::from_millis(millis))
        }

        fn wait(&mut self, time: Duration) -> bool {
            self.waited += time;
            self.signal_at == Some(self.asked.len())
        }
    }

    fn run(mut fake: Fake) -> (Ranges, Vec<u64>) {
        let done = collapse(&mut fake, &[2, 4, 6], Duration::ZERO, |_| ());
        (done, fake.asked)
    }

    fn stopped(answer: Result<(), i32>, millis: u64) -> (Ranges, Vec<u64>) {
        run(Fake {
            answers: vec![(answer, millis)],
            ..Fake::default()
        })
    }

    #[test]
    fn all_ranges() {
        let (done, asked) = run(Fake::default());
        assert_eq!(
            (done.end, done.collapsed, asked),
            (End::Done, vec![2, 4, 6], vec![2, 4, 6])
        );
    }

    #[test]
    fn an_empty_range_is_no_failure() {
        let (done, asked) = stopped(Err(libc::EINVAL), 1);
        assert_eq!(
            (done.end, done.refused, done.collapsed),
            (End::Done, 1, vec![4, 6])
        );
        assert_eq!(asked, [2, 4, 6]);
    }

    #[test]
    fn a_busy_range_is_tried_again_and_left() {
        let busy = (Err(libc::EAGAIN), 1);
        let (done, asked) = run(Fake {
            answers: vec![busy, (Ok(()), 1), busy, busy, busy],
            ..Fake::default()
        });
        assert_eq!(
            (done.end, done.busy, done.collapsed),
            (End::Done, 1, vec![2, 6])
        );
        assert_eq!(asked, [2, 2, 4, 4, 4, 6]);
    }

    #[test]
    fn what_ends_it() {
        for (answer, millis, why) in [
            (Err(libc::ENOMEM), 1, "ENOMEM"),
            (Err(libc::EBUSY), 1, "EBUSY"),
            (Err(libc::ESRCH), 1, "has ended"),
            (Err(libc::EPERM), 1, "not permitted"),
            (Ok(()), 501, "501 ms"),
            (Err(libc::EAGAIN), 501, "501 ms"),
            (Err(libc::EINVAL), 501, "501 ms"),
        ] {
            let (done, asked) = stopped(answer, millis);
            assert!(
                matches!(&done.end, End::Stopped(found) if found.contains(why)),
                "{done:?}"
            );
            assert_eq!(asked, [2], "{why}");
        }
    }

    #[test]
    fn brakes_and_signals_before_each_range() {
        for (asked, collapsed) in [(0, vec![]), (1, vec![2]), (2, vec![2, 4])] {
            let (done, _) = run(Fake {
                refuse_at: Some(asked),
                ..Fake::default()
            });
            assert_eq!(
                (done.end, &done.collapsed),
                (End::Stopped("memory".to_owned()), &collapsed)
            );
            let (done, _) = run(Fake {
                signal_at: Some(asked),
                ..Fake::default()
            });
            assert_eq!((done.end, &done.collapsed), (End::Interrupted, &collapsed));
        }
    }

    #[test]
    fn a_rate_waits_for_the_rest() {
        let mut fake = Fake::default();
        collapse(&mut fake, &[2, 4], Duration::from_millis(20), |_| ());
        assert_eq!(fake.waited, Duration::from_millis(16));
    }
}
