//! Resizes a pool in short steps, so that the host stays responsive and a signal can stop it between two steps.

use std::time::{Duration, Instant};

use hugepage_kernel::{Bytes, PageSize, Pages};

/// After a step faster than this the next is longer, after a slower one shorter: the kernel holds the pool's lock meanwhile.
const FAST_STEP: Duration = Duration::from_millis(25);
const SLOW_STEP: Duration = Duration::from_millis(100);
/// The smallest step, however slow the kernel is.
const MIN_STEP: Bytes = Bytes(64 << 20);

/// The operations of the kernel on a pool.
pub trait PoolOperations {
    /// The error of a failed operation.
    type Error;

    /// Requests a pool of `pages` and returns its size, which may be smaller.
    fn set(&mut self, pages: Pages) -> Result<Pages, Self::Error>;
    /// Compacts memory.
    fn compact(&mut self) -> Result<(), Self::Error>;
    /// Whether enough memory is available to grow the pool further.
    fn has_memory(&mut self) -> Result<bool, Self::Error>;
    /// Pages that are in use or reserved.
    fn in_use(&mut self) -> Result<Pages, Self::Error>;
}

/// The end of a resize.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResizeOutcome {
    /// The pool has the requested size.
    Reached,
    /// The kernel gave only this many pages.
    Incomplete(Pages),
    /// The number of pages at which more would have made the host swap.
    LowMemory(Pages),
    /// The number of pages in use now, more than requested.
    InUse(Pages),
    /// A signal was received.
    Interrupted,
}

/// A change of the pool of one page size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resize {
    pub size: PageSize,
    /// The current number of pages without surplus pages.
    pub from: Pages,
    /// The requested number.
    pub to: Pages,
}

/// Resizes the pool, and stops if `interrupted` returns true.
pub fn resize<K: PoolOperations>(
    kernel: &mut K,
    request: Resize,
    interrupted: &dyn Fn() -> bool,
) -> Result<ResizeOutcome, K::Error> {
    let Resize { from, to, size } = request;
    let shortest = size.pages_to_hold(MIN_STEP);
    let mut at = from;
    let mut step = shortest;
    while at != to {
        if interrupted() {
            return Ok(ResizeOutcome::Interrupted);
        }
        let began = Instant::now();
        if at < to {
            if !kernel.has_memory()? {
                return Ok(ResizeOutcome::LowMemory(at));
            }
            let next = at.saturating_add(step).min(to);
            let got = grow(kernel, next, interrupted)?;
            // A signal also makes the kernel stop early.
            if got < next {
                return Ok(if interrupted() {
                    ResizeOutcome::Interrupted
                } else {
                    ResizeOutcome::Incomplete(got)
                });
            }
            at = next;
        } else {
            let next = at.saturating_sub(step).max(to);
            let in_use = kernel.in_use()?;
            if in_use > next && in_use <= at {
                return Ok(ResizeOutcome::InUse(in_use));
            }
            let got = kernel.set(next)?;
            if got != next {
                return Ok(ResizeOutcome::Incomplete(got));
            }
            at = next;
        }
        step = next_step(step, began.elapsed()).max(shortest);
    }
    Ok(ResizeOutcome::Reached)
}

/// Requests `target` pages, and compacts memory and requests them again while that gives more of them.
fn grow<K: PoolOperations>(
    kernel: &mut K,
    target: Pages,
    interrupted: &dyn Fn() -> bool,
) -> Result<Pages, K::Error> {
    let mut got = kernel.set(target)?;
    while got < target && !interrupted() {
        kernel.compact()?;
        let again = kernel.set(target)?;
        if again <= got {
            break;
        }
        got = again;
    }
    Ok(got)
}

fn next_step(step: Pages, took: Duration) -> Pages {
    match took {
        took if took < FAST_STEP => Pages(step.0.saturating_mul(2)),
        took if took > SLOW_STEP => Pages(step.0 / 2),
        _ => step,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A kernel with a number of free pages. Compaction frees more, once.
    struct Fake {
        pool: u64,
        ready: u64,
        compaction: u64,
        in_use: u64,
        memory_until: u64,
        compacted: u64,
    }

    impl PoolOperations for Fake {
        type Error = ();

        fn set(&mut self, pages: Pages) -> Result<Pages, ()> {
            let grown = pages.0.saturating_sub(self.pool).min(self.ready);
            self.ready -= grown;
            self.pool = if pages.0 < self.pool {
                pages.0
            } else {
                self.pool + grown
            };
            Ok(Pages(self.pool))
        }

        fn compact(&mut self) -> Result<(), ()> {
            self.compacted += 1;
            self.ready += std::mem::take(&mut self.compaction);
            Ok(())
        }

        fn has_memory(&mut self) -> Result<bool, ()> {
            Ok(self.pool < self.memory_until)
        }

        fn in_use(&mut self) -> Result<Pages, ()> {
            Ok(Pages(self.in_use))
        }
    }

    fn fake(pool: u64, ready: u64, compaction: u64) -> Fake {
        Fake {
            pool,
            ready,
            compaction,
            in_use: 0,
            memory_until: u64::MAX,
            compacted: 0,
        }
    }

    fn request(from: Pages, to: u64) -> Resize {
        Resize {
            from,
            to: Pages(to),
            size: PageSize::from_kib(2048).unwrap(),
        }
    }

    fn go(kernel: &mut Fake, to: u64) -> ResizeOutcome {
        let from = Pages(kernel.pool);
        resize(kernel, request(from, to), &|| false).unwrap()
    }

    #[test]
    fn reach_every_outcome() {
        for (mut kernel, to, outcome) in [
            (fake(0, 5000, 0), 5000, ResizeOutcome::Reached),
            (fake(5000, 0, 0), 0, ResizeOutcome::Reached),
            (fake(7, 0, 0), 7, ResizeOutcome::Reached),
            (
                fake(0, 3000, 0),
                5000,
                ResizeOutcome::Incomplete(Pages(3000)),
            ),
            (fake(0, 3000, 2000), 5000, ResizeOutcome::Reached),
            (
                fake(0, 3000, 1000),
                5000,
                ResizeOutcome::Incomplete(Pages(4000)),
            ),
            (
                Fake {
                    memory_until: 100,
                    ..fake(90, 5000, 0)
                },
                1000,
                ResizeOutcome::LowMemory(Pages(122)),
            ),
            (
                Fake {
                    in_use: 200,
                    ..fake(1000, 0, 0)
                },
                100,
                ResizeOutcome::InUse(Pages(200)),
            ),
            (
                Fake {
                    in_use: 100,
                    ..fake(1000, 0, 0)
                },
                100,
                ResizeOutcome::Reached,
            ),
        ] {
            let from = kernel.pool;
            assert_eq!(go(&mut kernel, to), outcome, "{from} to {to}");
        }
    }

    #[test]
    fn compact_only_when_needed() {
        for (ready, compacted) in [(5000, 0), (4900, 1)] {
            let mut kernel = fake(0, ready, 100);
            assert_eq!(
                (go(&mut kernel, 5000), kernel.compacted),
                (ResizeOutcome::Reached, compacted)
            );
        }
    }

    #[test]
    fn stop_between_steps() {
        let mut kernel = fake(0, 5000, 0);
        let asked = std::cell::Cell::new(0);
        // Before the second step.
        let stop = || asked.replace(asked.get() + 1) > 0;
        let outcome = resize(&mut kernel, request(Pages(0), 5000), &stop);
        assert_eq!((outcome, kernel.pool), (Ok(ResizeOutcome::Interrupted), 32));
    }

    #[test]
    fn adapt_the_step() {
        for (step, milliseconds, next) in [(32, 1, 64), (32, 50, 32), (32, 200, 16)] {
            assert_eq!(
                next_step(Pages(step), Duration::from_millis(milliseconds)),
                Pages(next)
            );
        }
        assert_eq!(next_step(Pages(u64::MAX), Duration::ZERO), Pages(u64::MAX));
    }
}
