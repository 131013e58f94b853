//! Layouts by questions: on each kernel, what every layout answers to every question. A dash is unknown.

use hugepage_host::{Survey, host_advice};
use hugepage_kernel::Pages;

use crate::builder::*;
use crate::layouts::LAYOUTS;

fn text<T: ToString>(value: Option<T>) -> String {
    value.map_or("-".to_owned(), |value| value.to_string())
}

fn settings(survey: &Survey) -> Vec<String> {
    let advice = host_advice::recommendations(survey, &[sizing(survey)]);
    advice
        .into_iter()
        .map(|one| one.recommendation.setting)
        .collect()
}

#[test]
fn every_layout_answers_every_question() {
    for kernel in KERNELS {
        for layout in LAYOUTS {
            let host = (layout.make)(kernel);
            let survey = host.survey();
            let at = format!("{kernel}: {}", layout.name);
            let answers: Vec<_> = survey
                .instances
                .iter()
                .map(|instance| {
                    let status = &instance.status;
                    [
                        instance.id.name.clone(),
                        instance.landed_in().to_string(),
                        text(status.forecast.needed),
                        text(status.cause),
                        status.forecast.outlook.to_string(),
                        status.verdict().0.to_string(),
                    ]
                })
                .collect();
            let expected: Vec<_> = layout
                .running
                .iter()
                .map(|row| [row.0, row.1, row.2, row.3, row.4, row.5])
                .collect();
            assert_eq!(answers, expected, "{at}");
            let answers: Vec<_> = survey
                .stopped
                .iter()
                .map(|stopped| {
                    [
                        stopped.name.clone(),
                        stopped.state.to_string(),
                        stopped.outlook().to_string(),
                    ]
                })
                .collect();
            let expected: Vec<_> = layout
                .stopped
                .iter()
                .map(|row| [row.0, row.1, row.2])
                .collect();
            assert_eq!(answers, expected, "{at}");
            assert_eq!(
                sizing(&survey).recommended,
                Some(Pages(layout.recommended)),
                "{at}"
            );
            assert_eq!(settings(&survey), layout.findings, "{at}");
        }
    }
}
