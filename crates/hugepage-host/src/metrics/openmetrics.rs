//! Gauges as OpenMetrics text.

use std::fmt::Display;

use crate::escape;

/// A name or a HELP.
type Text = &'static str;

/// Names and values.
pub(super) type Labels = Vec<(Text, String)>;

/// All metrics, in the order in which they were named first.
#[derive(Default)]
pub(super) struct Families(Vec<Family>);

/// All samples of one metric, a line each.
struct Family {
    name: Text,
    help: Text,
    samples: String,
}

/// One thing: its labels are in each of its samples.
pub(super) struct Measured<'a> {
    labels: Labels,
    families: &'a mut Families,
}

impl Measured<'_> {
    /// One number; `None` is unknown.
    pub(super) fn number<N: Display>(&mut self, name: Text, help: Text, value: Option<N>) {
        self.each(name, help, value.map(|value| (Vec::new(), value)));
    }

    /// 1 for the state that holds, 0 for each other. The label has the metric's name, as OpenMetrics has it for a state set.
    pub(super) fn states<S: Display + PartialEq>(&mut self, name: Text, help: Text, all: &[S], present: Option<S>) {
        let sample = |state: &S| (vec![(name, state.to_string())], u8::from(present.as_ref() == Some(state)));
        self.each(name, help, all.iter().map(sample));
    }

    /// A number for each of several labels.
    pub(super) fn each<N: Display>(&mut self, name: Text, help: Text, samples: impl IntoIterator<Item = (Labels, N)>) {
        let families = &mut self.families.0;
        if !families.iter().any(|family| family.name == name) {
            families.push(Family { name, help, samples: String::new() });
        }
        let Some(family) = families.iter_mut().find(|family| family.name == name) else { return };
        for (more, value) in samples {
            let labels: Vec<_> = self.labels.iter().chain(&more).map(|(name, value)| label(name, value)).collect();
            let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
            family.samples += &format!("{name}{labels} {value}\n");
        }
    }
}

fn label(name: &str, value: &str) -> String {
    let value = escape::lines(value).replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    format!("{name}=\"{value}\"")
}

impl Families {
    /// For the samples of one thing.
    pub(super) fn of(&mut self, labels: Labels) -> Measured<'_> {
        Measured { labels, families: self }
    }

    /// The complete text, without metrics that have no sample.
    pub(super) fn text(self) -> String {
        let mut text = String::new();
        for Family { name, help, samples } in self.0.iter().filter(|family| !family.samples.is_empty()) {
            text += &format!("# HELP {name} {help}\n# TYPE {name} gauge\n");
            text += samples;
        }
        text + "# EOF\n"
    }
}
