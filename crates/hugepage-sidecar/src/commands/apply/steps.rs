//! The way from one size of the pool to another, in steps so short that the host answers in between, and so that
//! somebody who changes their mind is heard.

use std::time::{Duration, Instant};

use hugepage_core::{Bytes, PageSize, Pages};

/// A step that took less is followed by a longer one, one that took more by a shorter one: while the kernel makes huge
/// pages it holds the lock of the pool, and one of its processors is busy.
const FAST_STEP: Duration = Duration::from_millis(25);
const SLOW_STEP: Duration = Duration::from_millis(100);
/// No step is shorter, however slow the kernel is: it would never arrive.
const MIN_STEP: Bytes = Bytes(64 << 20);

/// What can be done when the kernel gives fewer pages than asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reclaim {
    /// Let it move base pages together.
    Compact,
    /// Let it forget files that it has read and that are unchanged on disk, then move the rest together.
    DropCaches,
}

/// The kernel's side of the pool.
pub trait Kernel {
    /// What keeps it from its work.
    type Error;

    /// Asks for a pool of so many pages and returns how many it keeps, which may be fewer.
    fn set(&mut self, pages: Pages) -> Result<Pages, Self::Error>;
    /// Makes room.
    fn reclaim(&mut self, method: Reclaim) -> Result<(), Self::Error>;
    /// Whether enough memory is available that the pool may grow on.
    fn has_memory(&mut self) -> Result<bool, Self::Error>;
    /// Pages that are touched or promised.
    fn in_use(&mut self) -> Result<Pages, Self::Error>;
}

/// Where the way outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Where it should.
    Reached,
    /// The kernel gave this many and no more.
    Incomplete(Pages),
    /// At this many pages others had taken so much memory that going on would have made the host swap.
    LowMemory(Pages),
    /// This many pages are in use meanwhile, more than were to be left.
    InUse(Pages),
    /// Somebody asked for the end.
    Interrupted,
}

/// From where to where, and by what means.
#[derive(Clone, Copy, Debug)]
pub struct Resize<'a> {
    /// What the pool keeps now.
    pub from: Pages,
    /// What it is to keep.
    pub to: Pages,
    /// The size of its pages.
    pub size: PageSize,
    /// What to try where the kernel gives fewer, in this order.
    pub reclaim: &'a [Reclaim],
}

/// Goes that way. `progress` is told where it is, and `interrupted` is asked.
pub fn resize<K: Kernel>(
    kernel: &mut K,
    request: Resize<'_>,
    interrupted: &dyn Fn() -> bool,
    progress: &mut dyn FnMut(Pages),
) -> Result<Outcome, K::Error> {
    let Resize { from, to, size, reclaim } = request;
    let shortest = size.pages_to_hold(MIN_STEP);
    let (mut at, mut step) = (from, shortest);
    while at != to {
        if interrupted() {
            return Ok(Outcome::Interrupted);
        }
        let began = Instant::now();
        if at < to {
            if !kernel.has_memory()? {
                return Ok(Outcome::LowMemory(at));
            }
            let next = at.saturating_add(step).min(to);
            let mut got = kernel.set(next)?;
            for method in reclaim {
                got = reclaim_pages(kernel, next, got, *method, interrupted)?;
            }
            // A signal makes the kernel stop early, and is no want of memory.
            if got < next && interrupted() {
                return Ok(Outcome::Interrupted);
            }
            if got < next {
                return Ok(Outcome::Incomplete(got));
            }
            at = next;
        } else {
            let next = at.saturating_sub(step).max(to);
            let in_use = kernel.in_use()?;
            if in_use > next && in_use <= at {
                return Ok(Outcome::InUse(in_use));
            }
            let got = kernel.set(next)?;
            if got != next {
                return Ok(Outcome::Incomplete(got));
            }
            at = next;
        }
        progress(at);
        step = next_step(step, began.elapsed()).max(shortest);
    }
    Ok(Outcome::Reached)
}

/// As long as it gets the pool any further.
fn reclaim_pages<K: Kernel>(
    kernel: &mut K,
    target: Pages,
    mut got: Pages,
    method: Reclaim,
    interrupted: &dyn Fn() -> bool,
) -> Result<Pages, K::Error> {
    while got < target && !interrupted() {
        kernel.reclaim(method)?;
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

    /// A kernel with so many pages to give; each kind of help frees some, once.
    struct Fake {
        pool: u64,
        ready: u64,
        compaction: u64,
        caches: u64,
        in_use: u64,
        memory_until: u64,
        reclaim: Vec<Reclaim>,
    }

    impl Kernel for Fake {
        type Error = ();

        fn set(&mut self, pages: Pages) -> Result<Pages, ()> {
            let grown = pages.0.saturating_sub(self.pool).min(self.ready);
            self.ready -= grown;
            self.pool = if pages.0 < self.pool { pages.0 } else { self.pool + grown };
            Ok(Pages(self.pool))
        }

        fn reclaim(&mut self, method: Reclaim) -> Result<(), ()> {
            self.reclaim.push(method);
            self.ready += std::mem::take(match method {
                Reclaim::Compact => &mut self.compaction,
                Reclaim::DropCaches => &mut self.caches,
            });
            Ok(())
        }

        fn has_memory(&mut self) -> Result<bool, ()> {
            Ok(self.pool < self.memory_until)
        }

        fn in_use(&mut self) -> Result<Pages, ()> {
            Ok(Pages(self.in_use))
        }
    }

    fn fake(pool: u64, ready: u64, compaction: u64, caches: u64) -> Fake {
        Fake { pool, ready, compaction, caches, in_use: 0, memory_until: u64::MAX, reclaim: Vec::new() }
    }

    fn request(from: Pages, to: u64, reclaim: &[Reclaim]) -> Resize<'_> {
        Resize { from, to: Pages(to), size: PageSize::from_kib(2048).unwrap(), reclaim }
    }

    fn go(kernel: &mut Fake, to: u64, reclaim: &[Reclaim]) -> Outcome {
        let from = Pages(kernel.pool);
        resize(kernel, request(from, to, reclaim), &|| false, &mut |_| {}).unwrap()
    }

    #[test]
    fn every_way_to_the_end() {
        const BOTH: [Reclaim; 2] = [Reclaim::Compact, Reclaim::DropCaches];
        for (mut kernel, to, reclaim, outcome) in [
            (fake(0, 5000, 0, 0), 5000, &[][..], Outcome::Reached),
            (fake(5000, 0, 0, 0), 0, &[], Outcome::Reached),
            (fake(7, 0, 0, 0), 7, &[], Outcome::Reached),
            (fake(0, 3000, 0, 0), 5000, &[], Outcome::Incomplete(Pages(3000))),
            (fake(0, 3000, 2000, 0), 5000, &BOTH[..1], Outcome::Reached),
            (fake(0, 3000, 1000, 1000), 5000, &BOTH[..1], Outcome::Incomplete(Pages(4000))),
            (fake(0, 3000, 1000, 1000), 5000, &BOTH, Outcome::Reached),
            (fake(0, 3000, 1000, 999), 5000, &BOTH, Outcome::Incomplete(Pages(4999))),
            (Fake { memory_until: 100, ..fake(90, 5000, 0, 0) }, 1000, &BOTH, Outcome::LowMemory(Pages(122))),
            (Fake { in_use: 200, ..fake(1000, 0, 0, 0) }, 100, &[], Outcome::InUse(Pages(200))),
            (Fake { in_use: 100, ..fake(1000, 0, 0, 0) }, 100, &[], Outcome::Reached),
        ] {
            let from = kernel.pool;
            assert_eq!(go(&mut kernel, to, reclaim), outcome, "{from} to {to}");
        }
    }

    #[test]
    fn nothing_is_compacted_while_pages_come() {
        let mut kernel = fake(0, 5000, 100, 100);
        go(&mut kernel, 5000, &[Reclaim::Compact]);
        assert_eq!(kernel.reclaim, []);
    }

    #[test]
    fn an_interrupt_is_heard_between_steps() {
        let mut kernel = fake(0, 5000, 0, 0);
        let seen = std::cell::Cell::new(Pages(0));
        let stop = || seen.get() > Pages(0);
        let outcome = resize(&mut kernel, request(Pages(0), 5000, &[]), &stop, &mut |at| seen.set(at));
        assert_eq!((outcome, kernel.pool), (Ok(Outcome::Interrupted), 32));
    }

    #[test]
    fn steps_follow_the_kernels_pace() {
        for (step, milliseconds, next) in [(32, 1, 64), (32, 50, 32), (32, 200, 16)] {
            assert_eq!(next_step(Pages(step), Duration::from_millis(milliseconds)), Pages(next));
        }
        assert_eq!(next_step(Pages(u64::MAX), Duration::ZERO), Pages(u64::MAX));
    }
}
