//! Recommendations that no finding leads to, a function for each rule; it returns nothing if nothing needs to change.

mod boot;
mod container;
mod gigantic;
mod huge_pages;
mod kernel;
mod spare_pages;

use std::cmp::Reverse;

use crate::advice::context::AdviceContext;
use crate::advice::plan::rows;
use crate::advice::recommendation::Recommendation;
use crate::model::Landing;
use hugepage_kernel::{Bytes, Pages};

type Rule = fn(&AdviceContext) -> Option<Recommendation>;

/// All recommendations, the most severe first: the steps that findings lead to, then what the rules add.
pub fn recommendations(context: &AdviceContext) -> Vec<Recommendation> {
    const RULES: [Rule; 7] = [
        container::limit,
        spare_pages::overcommit,
        huge_pages::with_on,
        boot::at_boot,
        boot::fragmented,
        gigantic::last_page,
        kernel::transparent,
    ];
    let steps = rows::of_findings(&context.status).into_iter();
    let mut all: Vec<_> =
        steps.map(|row| Recommendation { saving: row.saving.or_else(|| context.saving()), ..row }).collect();
    let planned = context.with_planned_page_size();
    for row in RULES.iter().filter_map(|rule| rule(&planned)).chain(spare_pages::of_others(&planned)) {
        let of_setting = |known: &Recommendation| (known.area, &known.setting) == (row.area, &row.setting);
        if !all.iter().any(of_setting) {
            all.push(row.counting(context.status.facts.others_lack));
        }
    }
    // The sort is stable, so among equals the order above holds.
    all.sort_by_key(|recommendation| Reverse(recommendation.severity));
    all
}

/// Facts that several rules use.
impl AdviceContext {
    fn in_huge_pages(&self) -> bool {
        self.status.facts.landing() == Landing::Hugetlb
    }

    /// Page tables that huge pages would save now; `None` if the server has huge pages, or if unknown.
    fn saving(&self) -> Option<Bytes> {
        self.page_tables.of_shared_memory.filter(|_| !self.in_huge_pages())
    }

    /// The pages of the pool without surplus pages.
    fn persistent(&self) -> Pages {
        self.status.share.map(|share| share.persistent).unwrap_or_default()
    }
}
