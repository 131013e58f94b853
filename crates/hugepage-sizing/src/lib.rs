//! The pool that a whole host needs: for all servers that run, for those that are only configured, and beside what others hold.
//!
//! Values in, values out, as in `hugepage_assess`, whose [`Capacity`](hugepage_assess::assessment::Capacity) says what a host can hold.
//! The extension, which sees one server, links none of it.
//!
//! ```
//! use hugepage_kernel::Pages;
//! use hugepage_sizing::Wants;
//!
//! assert_eq!(Wants::Pages(Pages(7)).pages(), Some(Pages(7)));
//! ```

use std::borrow::Cow;

use hugepage_assess::advice::plan::Step;
use hugepage_assess::advice::pool;
use hugepage_assess::advice::recommendation::{Area, Effect, Recommendation};
use hugepage_assess::assessment::{Capacity, Severity};
use hugepage_assess::model::PagesOfStrangers;
use hugepage_facts::InstanceKey;
use hugepage_kernel::{Bytes, PageSize, Pages, Pool};
use serde::Serialize;

/// A server that does not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoppedDatabase {
    /// Which it is.
    pub key: InstanceKey,
    /// The size of the pages that it asks for; `None` for the host's default.
    pub page_size: Option<PageSize>,
    /// What it needs of them.
    pub wants: Wants,
    /// Whether a boot starts it: `auto` in the start.conf of Debian.
    pub is_automatic: bool,
    /// What is said beside its name: the word in its start.conf, or when it was last seen.
    pub remark: Option<String>,
}

/// What a server that does not run will ask for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wants {
    /// This number of huge pages.
    Pages(Pages),
    /// None, and why.
    None(Cow<'static, str>),
    /// Could not be determined, and why.
    Unknown(String),
}

impl Wants {
    /// The number of huge pages, 0 if it asks for none; `None` if it could not be determined.
    pub const fn pages(&self) -> Option<Pages> {
        match self {
            Self::Pages(pages) => Some(*pages),
            Self::None(_) => Some(Pages(0)),
            Self::Unknown(_) => None,
        }
    }
}

impl StoppedDatabase {
    /// One of the host's own, of which no more is known.
    pub fn named(kind: &str, name: String, wants: Wants) -> Self {
        Self {
            key: InstanceKey {
                kind: kind.to_owned(),
                name,
                ..InstanceKey::default()
            },
            page_size: None,
            wants,
            is_automatic: false,
            remark: None,
        }
    }

    /// The need of a pool; `None` if the number is unknown.
    pub fn need(&self) -> Option<(Option<PageSize>, PoolNeed)> {
        let Wants::Pages(pages) = &self.wants else {
            return None;
        };
        Some((
            self.page_size,
            PoolNeed {
                pages: *pages,
                remark: self.remark.clone(),
                ..PoolNeed::of(self.key.clone())
            },
        ))
    }
}

/// What one server needs of a pool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PoolNeed {
    /// Which server it is.
    #[serde(skip)]
    pub key: InstanceKey,
    /// Its name, with the container that it is in.
    #[serde(rename = "instance")]
    pub name: String,
    /// What is said beside it: the word in the start.conf of a stopped one, or when it was last seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remark: Option<String>,
    /// Whether it runs.
    pub is_running: bool,
    /// The pages that it needs.
    #[serde(rename = "pages_needed")]
    pub pages: Pages,
    /// The pages that it needs with its running settings, whatever is on disk; zero if it does not run.
    #[serde(skip)]
    pub running: Pages,
    /// The needed pages that it has now.
    #[serde(rename = "pages_held")]
    pub held: Pages,
    /// The memory in base pages that it leaves for them.
    #[serde(skip)]
    pub movable: Bytes,
}

impl PoolNeed {
    /// Of a server that needs nothing.
    pub fn of(key: InstanceKey) -> Self {
        Self {
            name: key.to_string(),
            key,
            ..Self::default()
        }
    }
}

/// A server that does not fit into the host's memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Misfit {
    /// Which server it is.
    #[serde(skip)]
    pub key: InstanceKey,
    /// Its name, with the container that it is in.
    #[serde(rename = "instance")]
    pub name: String,
    /// What it needs.
    #[serde(rename = "pages_needed")]
    pub pages: Pages,
    /// The pages that are missing for it, after all servers that fit.
    #[serde(rename = "pages_over")]
    pub over: Pages,
    /// What it counts with: what it runs with, or has.
    #[serde(skip)]
    pub counted: Pages,
}

/// One pool of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sizing {
    /// The size of its pages.
    pub page_size: PageSize,
    /// Every server that needs pages of it.
    pub needs: Vec<PoolNeed>,
    /// Pages held by processes that belong to none of these servers.
    pub others: Pages,
    /// Those of them that do not count.
    pub strangers: PagesOfStrangers,
    /// All needed pages together, whether they fit or not.
    pub total: Pages,
    /// What the host can hold; `None` if its memory could not be read.
    pub capacity: Option<Capacity>,
    /// The pool for all that fits, as [`Capacity::recommended`] defines it; `None` without a capacity: the host may not hold it.
    pub recommended: Option<Pages>,
    /// The servers that do not fit.
    pub misfits: Vec<Misfit>,
    /// The memory that remains for base pages beside this pool and the pools of other sizes.
    pub remains: Option<Bytes>,
}

impl Sizing {
    /// The sizing of one page size.
    pub fn of_size(sizings: &[Self], size: PageSize) -> Option<&Self> {
        sizings.iter().find(|sizing| sizing.page_size == size)
    }

    /// What all servers count with together.
    pub fn fitting(&self) -> Pages {
        self.needs.iter().map(|need| self.counted(need)).sum()
    }

    /// What one of them counts with.
    pub fn counted(&self, need: &PoolNeed) -> Pages {
        let misfit = self
            .misfits
            .iter()
            .find(|misfit| (&misfit.key, misfit.pages) == (&need.key, need.pages));
        misfit.map_or(need.pages.max(need.held), |misfit| misfit.counted)
    }

    /// The pages of others that count.
    pub fn counted_others(&self) -> Pages {
        self.others.saturating_sub(self.strangers.pages)
    }

    /// The sizing of `pool`, without pages of `strangers`. Who has its pages keeps them; of the others those that
    /// run come before those that do not, and small before large, so that as many as possible fit. A server that does not fit
    /// counts with what it runs with.
    pub fn new(
        pool_now: &Pool,
        mut needs: Vec<PoolNeed>,
        strangers: PagesOfStrangers,
        capacity: Option<Capacity>,
    ) -> Self {
        let page_size = pool_now.page_size;
        // Where reservations are unknown, what was touched.
        let used = pool_now
            .in_use()
            .unwrap_or(pool_now.nr.saturating_sub(pool_now.free));
        needs.retain(|need| need.pages > Pages(0));
        let held: Pages = needs.iter().map(|need| need.held).sum();
        let others = used.saturating_sub(held);
        let counted = others.saturating_sub(strangers.pages);
        let needed = needs.iter().map(|need| need.pages.max(need.held));
        let total = counted.saturating_add(needed.sum());
        let most = capacity.map_or(Pages(u64::MAX), |capacity| capacity.most);
        let mut order: Vec<&PoolNeed> = needs.iter().collect();
        order.sort_by_key(|need| (need.held < need.pages, !need.is_running, need.pages));
        let mut pool = counted.saturating_add(held);
        let mut misfits = Vec::new();
        for need in order {
            let beside = pool.saturating_sub(need.held);
            let over = |pages: Pages| {
                beside
                    .saturating_add(pages.max(need.held))
                    .saturating_sub(most)
            };
            let mut fits = [need.pages, need.running]
                .into_iter()
                .filter(|pages| over(*pages) == Pages(0));
            let counted = fits.next().unwrap_or_default().max(need.held);
            if counted < need.pages {
                misfits.push(Misfit {
                    key: need.key.clone(),
                    name: need.name.clone(),
                    pages: need.pages,
                    over: over(need.pages),
                    counted,
                });
            }
            pool = beside.saturating_add(counted);
        }
        let recommended =
            capacity.map(|capacity| capacity.recommended(pool, pool_now, strangers.pages));
        let beside =
            |Capacity { memory, .. }: Capacity| memory.mem_total.saturating_sub(memory.elsewhere);
        let remains = capacity.map(beside).zip(recommended);
        Self {
            page_size,
            needs,
            others,
            strangers,
            total,
            capacity,
            recommended,
            misfits,
            remains: remains.map(|(memory, pages)| memory.saturating_sub(page_size.times(pages))),
        }
    }

    /// The step that gives `pool` the pages that its servers lack; `None` if it has enough, or the number is unknown.
    pub fn step(&self, pool: &Pool, is_default: bool) -> Option<Step> {
        let size = self.page_size;
        let pages = self
            .recommended
            .filter(|pages| *pages > pool.persistent())?;
        Some(Step::SetPool {
            size,
            is_default,
            pages,
            after_stop: false,
            leaves: self.capacity?.leaves_less(pages, size),
        })
    }

    /// The row of that step. `holder`: a clause on who else holds pages that count.
    pub fn row(
        &self,
        pool: &Pool,
        is_default: bool,
        severity: Severity,
        holder: &str,
    ) -> Option<Recommendation> {
        let command = self.step(pool, is_default)?.command();
        let now = pool.persistent();
        let pages = self.recommended?;
        let who = match &self.needs[..] {
            [one] => format!("{} needs", one.name),
            all => format!("The {} instances of this host need", all.len()),
        };
        let fit = if self.misfits.is_empty() {
            ""
        } else {
            " for what fits"
        };
        let stopped = self
            .by_stopped()
            .map_or(fit.to_owned(), |clause| format!("{fit} ({clause})"));
        let text = pool::shortfall(
            &who,
            (self.fitting(), &stopped),
            self.counted_others(),
            (now, pages),
            self.page_size,
        );
        let strangers = self.strangers.clause();
        let caution = pool::caution(pages, self.page_size, self.capacity);
        let clause =
            |one: &Misfit| format!("; {} would need {} and does not fit", one.name, one.pages);
        let misfits: String = self.misfits.iter().map(clause).collect();
        let setting = pool::setting(self.page_size, is_default);
        Some(Recommendation {
            current: Some(now.to_string()),
            recommended: Some(pages.to_string()),
            command,
            takes_effect: Effect::ServerRestart,
            ..Recommendation::new(
                severity,
                Area::Kernel,
                setting,
                format!("{text}{holder}{strangers}{caution}{misfits}."),
            )
        })
    }

    /// A clause on servers that do not run, which other outputs may not count: `of which 72 for 1 stopped server`.
    pub fn by_stopped(&self) -> Option<String> {
        let fits = |need: &&PoolNeed| self.misfits.iter().all(|misfit| misfit.key != need.key);
        let stopped: Vec<_> = self
            .needs
            .iter()
            .filter(|need| !need.is_running)
            .filter(fits)
            .collect();
        let pages: Pages = stopped.iter().map(|need| need.pages).sum();
        let servers = if stopped.len() == 1 {
            "server"
        } else {
            "servers"
        };
        (!stopped.is_empty())
            .then(|| format!("of which {pages} for {} stopped {servers}", stopped.len()))
    }
}
