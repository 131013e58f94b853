//! Coordinates in a chart. Widths are percentages, so that a chart fits every screen without scaling its text; heights are pixels.

/// `part` of `whole` as an SVG length such as `12.5%`; `100%` if `whole` is 0.
pub fn percent(part: u64, whole: u64) -> String {
    if whole == 0 { "100%".to_owned() } else { format!("{:.3}%", share(part, whole)) }
}

#[allow(clippy::cast_precision_loss)]
fn share(part: u64, whole: u64) -> f64 {
    part as f64 / whole as f64 * 100.0
}

/// The marks of an axis from zero to at least `largest` bytes, at most five: round numbers of bytes.
pub fn of_bytes(largest: u64) -> Vec<u64> {
    let largest = largest.max(1);
    let mut steps =
        (10..=60).step_by(10).flat_map(|power| [1, 2, 5, 10, 20, 50, 100, 200, 500].map(|many| many << power));
    let step: u64 = steps.find(|step| largest.div_ceil(*step) <= 4).unwrap_or(largest);
    (0..=largest.div_ceil(step)).map(|mark| step.saturating_mul(mark)).collect()
}

/// The marks of an axis that ends at `largest`: its quarters.
pub fn of_count(largest: u64) -> Vec<u64> {
    let mut marks: Vec<_> = (0..=4).map(|quarter| largest.saturating_mul(quarter) / 4).collect();
    marks.dedup();
    marks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_marks_up_to_the_largest() {
        let mib = |marks: Vec<u64>| marks.into_iter().map(|mark| mark >> 20).collect::<Vec<_>>();
        assert_eq!(mib(of_bytes(70 << 20)), [0, 20, 40, 60, 80]);
        assert_eq!(mib(of_bytes(1 << 30)), [0, 500, 1000, 1500]);
        assert_eq!(mib(of_bytes(3 << 40)), [0, 1 << 20, 2 << 20, 3 << 20]);
        assert_eq!(of_bytes(0), [0, 1024]);
        assert!(of_bytes(u64::MAX).len() <= 5);
        assert_eq!(of_count(500), [0, 125, 250, 375, 500]);
        assert_eq!(of_count(1), [0, 1]);
        assert_eq!(of_count(7), [0, 1, 3, 5, 7]);
    }

    #[test]
    fn format_shares() {
        assert_eq!(percent(1, 8), "12.500%");
        assert_eq!(percent(1, 0), "100%");
    }
}
