//! Families as text, by the library of the Prometheus project.

use std::fmt;

use hugepage_kernel::escape;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeGaugeValue, GaugeValueEncoder, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};

use super::{Family, Number};

#[derive(Debug)]
struct Families(Vec<Family>);

/// The complete text.
pub(super) fn text(families: Vec<Family>) -> String {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Families(families)));
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = text::encode(&mut text, &registry);
    text
}

impl Collector for Families {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        for Family { name, unit, help, samples } in &self.0 {
            let unit = unit.map(|unit| Unit::Other(unit.to_owned()));
            let mut metric = encoder.encode_descriptor(name, help, unit.as_ref(), MetricType::Gauge)?;
            for sample in samples {
                match sample.labels.is_empty() {
                    true => metric.encode_gauge(&sample.value)?,
                    false => {
                        // The format itself escapes quotes, backslashes and line breaks.
                        let labels: Vec<_> =
                            sample.labels.iter().map(|(name, value)| (*name, escape::lines(value))).collect();
                        metric.encode_family(&labels)?.encode_gauge(&sample.value)?
                    }
                }
            }
        }
        Ok(())
    }
}

impl EncodeGaugeValue for Number {
    fn encode(&self, encoder: &mut GaugeValueEncoder<'_>) -> Result<(), fmt::Error> {
        match self {
            Self::Whole(number) => number.encode(encoder),
            Self::Seconds(number) => number.encode(encoder),
        }
    }
}
