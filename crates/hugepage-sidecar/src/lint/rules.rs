//! What is wrong with the huge pages of a PostgreSQL in a manifest. Where a start would land is the core's judgement; what
//! Kubernetes and the operators do with the numbers is here.

use hugepage_core::assess::limits::ROOM_FOR_PRIVATE_MEMORY;
use hugepage_core::assess::status::MIN_WARNING_SIZE;
use hugepage_core::assess::{Outlook, Severity};
use hugepage_core::model::{Asked, HugePages, PoolFact, PoolState};
use hugepage_core::read::cgroup::CgroupLimits;
use hugepage_core::read::pool::Pool;
use hugepage_core::{Bytes, Notes, PageSize, Pages};

use super::edit::{self, Edit, Tree};
use super::need::{Need, Servers, Source};
use super::postgres::{Form, Found, Postgres, Quantity, Resources};
use super::quantity;

/// The size that PostgreSQL asks for with `huge_page_size = 0` on x86-64 and on ARM with pages of 4 kB, unless the node boots
/// with another default_hugepagesz.
pub const USUAL_SIZE: PageSize = PageSize::new(2 << 20).unwrap();
/// More pages than needed by this factor are wasted, as for a host's pool.
const WASTE: u64 = 2;

/// A rule, by which CI systems tell findings apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// Fewer pages than shared memory takes.
    TooFewPages,
    /// None at all, and `huge_pages` is not off.
    NoPages,
    /// Pages of another size than PostgreSQL asks for.
    OtherPageSize,
    /// A request that differs from the limit, or a quantity that Kubernetes refuses.
    Refused,
    /// A limit that initdb's own server exceeds.
    Initdb,
    /// A limit of memory below what counts to it.
    MemoryLimit,
    /// Many more pages than needed.
    Waste,
    /// Settings that the server refuses.
    Settings,
    /// Facts that the files do not have.
    Unknown,
    /// `huge_pages = off`.
    Off,
}

impl Rule {
    /// All of them, with what each says.
    pub const ALL: [(Self, &'static str); 10] = [
        (Self::TooFewPages, "The huge pages of the manifest do not hold PostgreSQL's shared memory."),
        (Self::NoPages, "PostgreSQL asks for huge pages, and the manifest has none."),
        (Self::OtherPageSize, "PostgreSQL asks for huge pages of another size than the manifest has."),
        (Self::Refused, "Kubernetes refuses these resources."),
        (Self::Initdb, "initdb needs more huge pages than the limit allows."),
        (Self::MemoryLimit, "The limit of memory is below what counts to it."),
        (Self::Waste, "The manifest has at least twice the huge pages that PostgreSQL can use."),
        (Self::Settings, "The server refuses the settings."),
        (Self::Unknown, "The files do not say enough."),
        (Self::Off, "PostgreSQL uses base pages by choice."),
    ];

    /// Its name.
    pub fn name(self) -> String {
        serde_json::to_value(self).ok().and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default()
    }
}

/// One finding.
#[derive(Debug)]
pub struct Finding {
    /// The rule.
    pub rule: Rule,
    /// How grave it is.
    pub severity: Severity,
    /// Where.
    pub place: Found,
    /// What is so.
    pub message: String,
    /// What to do.
    pub hint: Option<String>,
    /// The same as changes of the files.
    pub edits: Vec<Edit>,
}

/// The judgement of one PostgreSQL.
#[derive(Debug)]
pub struct Judgement {
    /// The gravest first.
    pub findings: Vec<Finding>,
    /// The page size that it asks for.
    pub page_size: PageSize,
    /// What it needs.
    pub need: Option<Need>,
    /// The limit of huge pages of that size.
    pub limit: Option<Bytes>,
    /// Where it would land on a node with these pages.
    pub outlook: Outlook,
    /// What it asks for.
    pub asked: Asked,
    /// What was not understood.
    pub notes: Vec<String>,
}

impl Judgement {
    /// The gravest finding.
    pub fn verdict(&self) -> Severity {
        self.findings.iter().map(|finding| finding.severity).max().unwrap_or(Severity::Ok)
    }

    /// Whether nothing grave was found, and something is unknown.
    pub fn is_unknown(&self) -> bool {
        self.verdict() < Severity::Warning && self.findings.iter().any(|finding| finding.rule == Rule::Unknown)
    }
}

/// Judges one PostgreSQL. `texts`: those of all files.
pub fn judge(postgres: &Postgres, servers: &mut Servers, texts: &[String]) -> Judgement {
    let mut notes = Notes::default();
    let asked = postgres.asked(&mut notes);
    let sizes = postgres.resources.page_sizes();
    let page_size = asked.huge_page_size.unwrap_or(USUAL_SIZE);
    let need = postgres.settings_unknown.is_none().then(|| servers.need(postgres, &asked, &mut notes));
    let mut work = Work { postgres, texts, asked, sizes, page_size, need: need.as_ref(), findings: Vec::new() };
    work.refusals();
    let limit = work.limit();
    let outlook = work.outlook(limit.as_ref().and_then(|limit| limit.bytes));
    work.landing(limit.as_ref(), outlook);
    work.memory(outlook);
    if work.asked.huge_pages != HugePages::Off {
        if let Some(limit) = limit.as_ref().and_then(|limit| limit.bytes) {
            work.initdb(limit, servers.of_initdb(postgres));
        }
    }
    let mut findings = work.findings;
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    let limit = limit.and_then(|limit| limit.bytes);
    Judgement { findings, page_size, need, limit, outlook, asked, notes: notes.into_vec() }
}

struct Work<'a> {
    postgres: &'a Postgres,
    texts: &'a [String],
    asked: Asked,
    sizes: Vec<PageSize>,
    page_size: PageSize,
    need: Option<&'a Need>,
    findings: Vec<Finding>,
}

impl Work<'_> {
    fn find(&mut self, rule: Rule, severity: Severity, place: Option<&Found>, message: String, hint: Option<String>) {
        let place = place.unwrap_or(&self.postgres.place).clone();
        self.findings.push(Finding { rule, severity, place, message, hint, edits: Vec::new() });
    }

    fn edit(&mut self, edits: Option<Vec<Edit>>) {
        if let (Some(finding), Some(edits)) = (self.findings.last_mut(), edits) {
            finding.edits = edits;
        }
    }

    fn text(&self, found: &Found) -> &str {
        self.texts.get(found.file).map(String::as_str).unwrap_or_default()
    }

    /// The limit of pages of the size that PostgreSQL asks for; a request alone is meant as one.
    fn limit(&self) -> Option<Quantity> {
        let name = quantity::resource(self.page_size);
        let resources = &self.postgres.resources;
        let found = resources.quantity("limits", &name).or_else(|| resources.quantity("requests", &name));
        found.filter(|found| found.bytes != Some(Bytes(0)))
    }

    /// Where it would land on a node whose pool has the pages of the limit: Kubernetes starts a pod on no other.
    fn outlook(&self, limit: Option<Bytes>) -> Outlook {
        let pages = self.page_size.pages_within(limit.unwrap_or_default());
        let pool = Pool {
            page_size: self.page_size,
            nr: pages,
            free: pages,
            resv: Some(Pages(0)),
            surplus: Some(Pages(0)),
            overcommit: Some(Pages(0)),
        };
        let ground = PoolState {
            huge_page_size: Some(self.page_size),
            pool: PoolFact::Known(pool),
            limits: Some(CgroupLimits::default()),
            nodes: None,
            lock_limit: None,
        };
        let of = |needed| Outlook::of(&self.asked, needed, Pages(0), &ground);
        let Some(need) = self.need else { return of(None) };
        let (least, most) = need.pages(self.page_size);
        let (best, worst) = (of(Some(least)), of(Some(most)));
        match best == worst && (need.libraries.is_empty() || best != Outlook::Hugetlb) {
            true => best,
            false => Outlook::Unknown,
        }
    }

    /// `556 pages of 2 MB`, with the source.
    fn words_of_need(&self) -> String {
        let Some(need) = self.need else { return "an unknown number of pages".to_owned() };
        let (least, most) = need.pages(self.page_size);
        let range = if least == most { least.to_string() } else { format!("{least} to {most}") };
        match &need.source {
            Source::Server(major) => format!("{range} (postgres -C of version {major})"),
            Source::Estimate(why) => format!("{range} (estimated, because {why})"),
        }
    }

    fn wanted(&self) -> Option<String> {
        Some(quantity::of_pages(self.page_size, self.need?.pages(self.page_size).1))
    }

    /// What the API server refuses (validation.go of Kubernetes), before anything starts.
    fn refusals(&mut self) {
        let resources = &self.postgres.resources;
        let Resources::Limits(_) = resources else { return };
        for size in self.sizes.clone() {
            let name = quantity::resource(size);
            let [limit, request] = ["limits", "requests"].map(|part| resources.quantity(part, &name));
            let divides = |found: &&Quantity| found.bytes.is_none_or(|bytes| bytes.0 % size.bytes().0 != 0);
            if let Some(odd) = [&limit, &request].into_iter().flatten().find(divides) {
                let message = format!("Kubernetes refuses {name}: {}: it is not a multiple of {size}.", odd.text);
                self.find(Rule::Refused, Severity::Critical, Some(&odd.place), message, None);
                continue;
            }
            match (limit, request) {
                (Some(limit), Some(request)) if limit.bytes != request.bytes => {
                    let message = format!(
                        "Kubernetes refuses the request of {name}, {}, which differs from the limit, {}.",
                        request.text, limit.text
                    );
                    let hint = Some(format!("Set both to {}.", limit.text));
                    self.find(Rule::Refused, Severity::Critical, Some(&request.place), message, hint);
                    let edit = edit::replace(self.text(&request.place), &request.place, &limit.text);
                    self.edit(edit.map(|edit| vec![edit]));
                }
                (None, Some(request)) => {
                    let message = format!("Kubernetes refuses a request of {name} without a limit.");
                    let hint = Some(format!("Set the limit to {} as well.", request.text));
                    self.find(Rule::Refused, Severity::Critical, Some(&request.place), message, hint);
                    let edits = edit::huge_pages(self.text(&request.place), resources, size, &request.text, false);
                    self.edit(edits);
                }
                _ => {}
            }
        }
        let has = |name: &str| ["limits", "requests"].iter().any(|part| resources.quantity(part, name).is_some());
        // The operator of Zalando adds its defaults.
        if !self.sizes.is_empty() && self.postgres.form != Form::Zalando && !has("memory") && !has("cpu") {
            let message = "Kubernetes refuses huge pages without a request of memory or cpu.".to_owned();
            self.find(Rule::Refused, Severity::Critical, None, message, Some("Add a request of memory.".to_owned()));
        }
    }

    fn landing(&mut self, limit: Option<&Quantity>, outlook: Outlook) {
        let postgres = self.postgres;
        if self.asked.huge_pages == HugePages::Off {
            let by_whom = match postgres.place_of("huge_pages") {
                None => "Crunchy's operator sets huge_pages to off, because no set of instances has huge pages.",
                Some(_) => "huge_pages is off: shared memory is in base pages.",
            };
            self.find(Rule::Off, Severity::Notice, postgres.place_of("huge_pages"), by_whom.to_owned(), None);
            if !self.sizes.is_empty() {
                let message = "The manifest has huge pages, and huge_pages is off.".to_owned();
                self.find(Rule::Waste, Severity::Warning, postgres.place_of("huge_pages"), message, None);
            }
            return;
        }
        if self.asked.sysv {
            let message = "shared_memory_type = sysv never uses huge pages.".to_owned();
            let severity = self.severity_of_base_pages();
            let hint = Some("Set shared_memory_type to mmap.".to_owned());
            self.find(Rule::NoPages, severity, postgres.place_of("shared_memory_type"), message, hint);
            return;
        }
        if let Some(refused) = self.need.and_then(|need| need.refused.clone()) {
            let message = format!("The server refuses the settings: {}.", refused.trim_end_matches('.'));
            self.find(Rule::Settings, Severity::Critical, None, message, None);
        }
        if let Resources::Elsewhere(why) = &postgres.resources {
            self.find(Rule::Unknown, Severity::Notice, None, format!("The resources are unknown: {why}."), None);
            return;
        }
        match limit {
            None => self.no_pages(),
            Some(limit) => self.pages(limit, outlook),
        }
        let used = self.page_size;
        for size in self.sizes.clone().into_iter().filter(|size| *size != used && limit.is_some()) {
            let message = format!("PostgreSQL never uses the pages of {size}: huge_page_size is {used}.");
            self.find(Rule::Waste, Severity::Warning, None, message, None);
        }
    }

    fn severity_of_base_pages(&self) -> Severity {
        match self.asked.huge_pages {
            HugePages::On => Severity::Critical,
            _ if self.need.is_none_or(|need| need.most >= MIN_WARNING_SIZE) => Severity::Warning,
            _ => Severity::Notice,
        }
    }

    /// What happens without enough pages.
    fn consequence(&self) -> &'static str {
        match self.asked.huge_pages {
            HugePages::On => "The server does not start.",
            _ => {
                "With huge_pages = try the server falls back to base pages and says nothing, or is killed by SIGBUS where \
                 the container's limit is checked only when a page is touched."
            }
        }
    }

    fn no_pages(&mut self) {
        let postgres = self.postgres;
        if let (Some(size), None) = (self.sizes.first().copied(), self.asked.huge_page_size) {
            let message = format!(
                "The manifest has {}, and huge_page_size is 0: PostgreSQL asks for the node's default size, usually {}. {}",
                quantity::resource(size),
                self.page_size,
                self.consequence()
            );
            let hint = format!("Set huge_page_size to {}.", size.setting());
            let severity = self.severity_of_base_pages().max(Severity::Warning);
            self.find(Rule::OtherPageSize, severity, None, message, Some(hint));
            let home = postgres.settings_home.as_ref();
            let edits = home.and_then(|home| {
                edit::insert(self.text(home), home, "huge_page_size", &Tree::Text(size.setting()))
                    .map(|edit| vec![edit])
            });
            self.edit(edits);
            return;
        }
        let mut severity = self.severity_of_base_pages();
        let rule = match self.sizes.is_empty() {
            true => Rule::NoPages,
            false => Rule::OtherPageSize,
        };
        if rule == Rule::OtherPageSize {
            severity = severity.max(Severity::Warning);
        }
        let name = quantity::resource(self.page_size);
        let message = format!(
            "PostgreSQL asks for huge pages of {}, and the manifest has no {name}. It needs {}. {}",
            self.page_size,
            self.words_of_need(),
            self.consequence()
        );
        let hint = self.wanted().map(|wanted| match severity {
            Severity::Notice => format!("Set {name} to {wanted}, or huge_pages to off."),
            _ => format!("Set {name} to {wanted}."),
        });
        self.find(rule, severity, postgres.place_of("huge_pages"), message, hint);
        if severity >= Severity::Warning {
            self.change_pages();
        }
        self.unknown_need();
    }

    fn pages(&mut self, limit: &Quantity, outlook: Outlook) {
        let (name, size) = (quantity::resource(self.page_size), self.page_size);
        let Some(bytes) = limit.bytes else {
            let message = format!("{name}: \"{}\" is not a quantity.", limit.text);
            self.find(Rule::Refused, Severity::Critical, Some(&limit.place), message, None);
            return;
        };
        let pages = size.pages_within(bytes);
        let needs = self.words_of_need();
        let has = format!("{name}: {} is {pages} pages of {size}, and shared memory takes {needs}.", limit.text);
        let hint = self.wanted().map(|wanted| format!("Set {name} to {wanted}."));
        match (outlook, self.need) {
            (_, None) => {}
            (Outlook::Hugetlb, Some(need)) => {
                let most = need.pages(size).1;
                if pages.0 >= most.0.saturating_mul(WASTE) && pages.0 > most.0 + 1 {
                    self.find(Rule::Waste, Severity::Warning, Some(&limit.place), has, None);
                }
            }
            (Outlook::Unknown, Some(need)) if pages >= need.pages(size).1 => {
                let names = need.libraries.join(", ");
                let message = format!("{has} How much {names} adds in shared_preload_libraries is unknown.");
                let hint = Some("Compare with shared_memory_size_in_huge_pages of a running server.".to_owned());
                self.find(Rule::Unknown, Severity::Notice, Some(&limit.place), message, hint);
            }
            (Outlook::Unknown, Some(_)) => {
                let message = format!("{has} Whether they suffice is unknown.");
                self.find(Rule::Unknown, Severity::Notice, Some(&limit.place), message, hint);
                self.change_pages();
            }
            (_, Some(_)) => {
                let severity = self.severity_of_base_pages().max(Severity::Warning);
                let accepted = match self.postgres.form {
                    Form::Cloudnativepg if bytes >= self.asked.shared_buffers => {
                        " CloudNativePG accepts it, because it compares only shared_buffers."
                    }
                    _ => "",
                };
                let message = format!("{has}{accepted} {}", self.consequence());
                self.find(Rule::TooFewPages, severity, Some(&limit.place), message, hint);
                self.change_pages();
            }
        }
        self.unknown_need();
    }

    fn unknown_need(&mut self) {
        if let Some(why) = &self.postgres.settings_unknown {
            let message = format!("The settings of the server are unknown: {why}.");
            self.find(Rule::Unknown, Severity::Notice, None, message, None);
        }
    }

    /// Adds the change of the quantity to the last finding. A finding on unequal quantities is superseded by it.
    fn change_pages(&mut self) {
        let Some(wanted) = self.wanted() else { return };
        let (Resources::Limits(home) | Resources::Single(home)) = &self.postgres.resources else { return };
        let adds_memory = self.postgres.form != Form::Zalando;
        let edits = edit::huge_pages(self.text(home), &self.postgres.resources, self.page_size, &wanted, adds_memory);
        if edits.is_some() {
            for refused in self.findings.iter_mut().filter(|finding| finding.rule == Rule::Refused) {
                refused.edits.clear();
                refused.hint = None;
            }
        }
        self.edit(edits);
    }

    /// Base pages count to the limit of memory always, huge pages on nodes with memory_hugetlb_accounting.
    fn memory(&mut self, outlook: Outlook) {
        let memory = self.postgres.resources.quantity("limits", "memory");
        let (Some(need), Some(limit)) = (self.need, memory) else { return };
        let Some(bytes) = limit.bytes else { return };
        let wanted = need.most.saturating_add(ROOM_FOR_PRIVATE_MEMORY);
        let megabytes = Bytes(wanted.0.div_ceil(1 << 20) << 20);
        let hint = Some(format!("Set the limit of memory to {} or more.", quantity::of_bytes(megabytes)));
        let takes = format!("shared memory takes {}", need.least);
        match outlook {
            Outlook::Base if bytes < need.least => {
                let message = format!(
                    "The limit of memory is {}, and {takes}, which counts to it in base pages: the kernel kills processes \
                     of the server (OOM) when its buffers are used.",
                    limit.text
                );
                self.find(Rule::MemoryLimit, Severity::Critical, Some(&limit.place), message, hint);
            }
            Outlook::Hugetlb | Outlook::Unknown | Outlook::Fails if bytes < wanted && !self.sizes.is_empty() => {
                let message = format!(
                    "The limit of memory is {}, and {takes}. On nodes whose memory cgroups count huge pages (cgroup v2 with \
                     memory_hugetlb_accounting, Linux 6.6), the limit has to hold both.",
                    limit.text
                );
                self.find(Rule::MemoryLimit, Severity::Notice, Some(&limit.place), message, hint);
            }
            _ => {}
        }
    }

    fn initdb(&mut self, limit: Bytes, need: Bytes) {
        // A cluster that is made by initdb asks for the default size, unless the image says otherwise.
        if self.page_size != USUAL_SIZE || limit >= USUAL_SIZE.times(USUAL_SIZE.pages_to_hold(need)) {
            return;
        }
        let wanted = quantity::of_pages(USUAL_SIZE, USUAL_SIZE.pages_to_hold(need));
        let message = format!(
            "initdb starts a server of its own with shared_buffers = 128MB, which takes {need} of huge pages. Where the \
             limit is checked only when a page is touched, it is killed by SIGBUS."
        );
        let hint = Some(format!("Set {} to {wanted} or more.", quantity::resource(USUAL_SIZE)));
        self.find(Rule::Initdb, Severity::Warning, None, message, hint);
    }
}
