//! A metric: its name, its HELP, and where its values come from.

use std::time::Duration;

use super::{Family, Labels, Number, Sample};

/// A metric of a `T`. Its full name ends with the unit.
pub(super) struct Metric<T> {
    name: &'static str,
    unit: Option<&'static str>,
    help: &'static str,
    value: Value<T>,
}

/// Where the value comes from.
enum Value<T> {
    /// One number; `None` is unknown.
    Number(fn(&T) -> Option<u64>),
    /// A time; `None` is unknown.
    Seconds(fn(&T) -> Option<Duration>),
    /// A number for each text that the label can have.
    Each(&'static str, fn(&T) -> Vec<(String, u64)>),
    /// 1, with facts that do not change while the server runs as labels.
    Info(fn(&T) -> Labels),
}

impl<T> Metric<T> {
    pub(super) const fn number(
        name: &'static str,
        unit: Option<&'static str>,
        help: &'static str,
        value: fn(&T) -> Option<u64>,
    ) -> Self {
        Self { name, unit, help, value: Value::Number(value) }
    }

    pub(super) const fn seconds(name: &'static str, help: &'static str, value: fn(&T) -> Option<Duration>) -> Self {
        Self { name, unit: Some("seconds"), help, value: Value::Seconds(value) }
    }

    /// A number for each text of the label.
    pub(super) const fn each(
        name: &'static str,
        help: &'static str,
        label: &'static str,
        values: fn(&T) -> Vec<(String, u64)>,
    ) -> Self {
        Self { name, unit: None, help, value: Value::Each(label, values) }
    }

    /// 1 for the state that holds, 0 for each other. The label has the metric's name, as OpenMetrics has it for a state set.
    pub(super) const fn states(name: &'static str, help: &'static str, values: fn(&T) -> Vec<(String, u64)>) -> Self {
        Self::each(name, help, name, values)
    }

    pub(super) const fn info(name: &'static str, help: &'static str, labels: fn(&T) -> Labels) -> Self {
        Self { name, unit: None, help, value: Value::Info(labels) }
    }

    /// The samples of all `things`, each with its labels.
    pub(super) fn family(&self, things: &[&T], labels: impl Fn(&T) -> Labels) -> Family {
        let samples = things.iter().flat_map(|thing| self.samples(thing, labels(thing))).collect();
        Family { name: self.name, unit: self.unit, help: self.help, samples }
    }

    fn samples(&self, thing: &T, labels: Labels) -> Vec<Sample> {
        match &self.value {
            Value::Number(number) => {
                number(thing).map(|value| Sample { labels, value: Number::Whole(value) }).into_iter().collect()
            }
            Value::Seconds(seconds) => {
                let sample = |time: Duration| Sample { labels, value: Number::Seconds(time.as_secs_f64()) };
                seconds(thing).map(sample).into_iter().collect()
            }
            Value::Info(more) => vec![Sample { labels: [labels, more(thing)].concat(), value: Number::Whole(1) }],
            Value::Each(label, each) => {
                let sample = |(text, value)| Sample {
                    labels: [&labels[..], &[(*label, text)]].concat(),
                    value: Number::Whole(value),
                };
                each(thing).into_iter().map(sample).collect()
            }
        }
    }
}
