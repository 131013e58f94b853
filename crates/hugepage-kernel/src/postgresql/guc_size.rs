//! Sizes as PostgreSQL parses the values of settings (guc.c).

use crate::Bytes;

/// A size as the server parses it: a number with `B`, `kB`, `MB`, `GB` or `TB`, or in units of `unit` bytes (guc.c).
pub fn size_setting(text: &str, unit: u64) -> Option<Bytes> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, name) = text.split_at(end);
    let unit = match name.trim() {
        "" => unit,
        "B" => 1,
        "kB" => 1 << 10,
        "MB" => 1 << 20,
        "GB" => 1 << 30,
        "TB" => 1 << 40,
        _ => return None,
    };
    // The server takes these for octal numbers.
    if number.len() > 1 && number.starts_with('0') && !number.starts_with("0.") {
        return None;
    }
    match number.parse::<u64>() {
        Ok(number) => number.checked_mul(unit).map(Bytes),
        // The server accepts fractions too, and rounds them to its units.
        Err(_) => {
            let (whole, fraction) = number.split_once('.')?;
            let digits = fraction.get(..fraction.len().min(9))?;
            let scale = 10u64.checked_pow(u32::try_from(digits.len()).ok()?)?;
            let part = u128::from(digits.parse::<u64>().ok()?) * u128::from(unit) / u128::from(scale);
            whole.parse::<u64>().ok()?.checked_mul(unit)?.checked_add(u64::try_from(part).ok()?).map(Bytes)
        }
    }
}
