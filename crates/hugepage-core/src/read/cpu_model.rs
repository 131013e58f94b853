//! The model of the CPU: the first processor of /proc/cpuinfo.

use crate::ReadError;
use crate::read::Root;

/// Vendor, family and model, by which the events of its counters differ.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuModel {
    /// `vendor_id`, such as `GenuineIntel`; empty where the architecture has none.
    pub vendor: String,
    /// `cpu family`.
    pub family: u32,
    /// `model`.
    pub model: u32,
}

impl CpuModel {
    /// Reads it. Processors of one machine are of one model.
    pub fn read(root: &Root) -> Result<Self, ReadError> {
        Ok(Self::parse(&root.read("/proc/cpuinfo")?))
    }

    fn parse(text: &str) -> Self {
        let mut found = Self::default();
        for line in text.lines().take_while(|line| !line.trim().is_empty()) {
            let Some((name, value)) = line.split_once(':') else { continue };
            let number = || value.trim().parse().unwrap_or_default();
            match name.trim() {
                "vendor_id" => value.trim().clone_into(&mut found.vendor),
                "cpu family" => found.family = number(),
                "model" => found.model = number(),
                _ => {}
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_processor() {
        let text = "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 143\n\
                    model name\t: Intel(R) Xeon(R) Platinum 8480+\n\nprocessor\t: 1\nmodel\t\t: 7\n";
        let expected = CpuModel { vendor: "GenuineIntel".to_owned(), family: 6, model: 143 };
        assert_eq!(CpuModel::parse(text), expected);
        // An ARM machine names none of these.
        assert_eq!(
            CpuModel::parse("processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n"),
            CpuModel::default()
        );
        assert_eq!(CpuModel::parse(""), CpuModel::default());
    }
}
