//! The largest shared_buffers with which shared memory stays within a budget, found by asking the server's program.

use crate::Bytes;

/// Results are multiples of 1 MB.
const STEP: u64 = 1 << 20;
/// The maximum of runs of the server's program.
const MAX_QUESTIONS: usize = 12;

/// `now`: shared_buffers and the size of shared memory with it. `size_of`: that size for other values. `None` if no
/// value fits, or `size_of` gave no answer.
pub fn shared_buffers(
    budget: Bytes,
    now: (Bytes, Bytes),
    size_of: &mut dyn FnMut(Bytes) -> Option<Bytes>,
) -> Option<Bytes> {
    let (buffers, size) = (now.0.0, now.1.0);
    // In steps: `fits` is known to fit, `above` is known not to. Shared memory is never less than shared_buffers.
    let (mut fits, mut above) = (None, budget.0 / STEP + 1);
    // A buffer costs 8372 to 8380 bytes; the rest of shared memory hardly depends on their number.
    let rest = size.saturating_sub(buffers.saturating_mul(8380) / 8192);
    let mut guess = budget.0.saturating_sub(rest) / 8380 * 8192 / STEP;
    for _ in 0..MAX_QUESTIONS {
        let low: u64 = fits.unwrap_or(0);
        if above - low <= 1 {
            break;
        }
        let asked = guess.clamp(low + 1, above - 1);
        let size = size_of(Bytes(asked * STEP))?.0;
        // Corrects the guess by its error, at least by one step.
        if size <= budget.0 {
            fits = Some(asked);
            guess = asked + ((budget.0 - size) / 8380 * 8192 / STEP).max(1);
        } else {
            above = asked;
            guess = asked.saturating_sub(((size - budget.0) / 8372 * 8192 / STEP).max(1));
        }
    }
    fits.map(|steps| Bytes(steps * STEP))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// As the server's: hash tables that step by powers of two.
    fn size_of(buffers: u64, rest: u64) -> u64 {
        let blocks = buffers / 8192;
        blocks * 8340 + blocks.next_power_of_two() * 16 + rest
    }

    proptest! {
        #[test]
        fn fits_and_one_more_does_not(budget in 1u64..(1 << 38), now in 1u64..(1 << 15), rest in 0u64..(1 << 28)) {
            let now = now << 20;
            let mut questions = 0;
            let found = shared_buffers(Bytes(budget), (Bytes(now), Bytes(size_of(now, rest))), &mut |buffers| {
                questions += 1;
                Some(Bytes(size_of(buffers.0, rest)))
            });
            prop_assert!(questions <= MAX_QUESTIONS);
            match found {
                Some(found) => {
                    prop_assert!(size_of(found.0, rest) <= budget);
                    prop_assert!(size_of(found.0 + STEP, rest) > budget || questions == MAX_QUESTIONS);
                }
                None => prop_assert!(size_of(STEP, rest) > budget || questions == MAX_QUESTIONS),
            }
        }
    }

    #[test]
    fn no_answer_is_no_number() {
        assert_eq!(shared_buffers(Bytes(1 << 30), (Bytes(1 << 27), Bytes(1 << 28)), &mut |_| None), None);
    }
}
