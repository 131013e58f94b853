//! Custom resources: which fields say what. What an operator sets where a manifest does not is a table, `operators.yaml`. The
//! names of fields are those of CloudNativePG's `api/v1/cluster_types.go`, Crunchy's `postgrescluster_types.go`, and Zalando's
//! `postgresql.crd.yaml`.

use std::rc::Rc;

use super::containers::nonexistent;
use super::fields::{Documents, document_beside, name_of, only_strings, settings_of};
use super::image;
use super::node;
use super::operator_table::OperatorRow;
use super::options::{self, Argument};
use super::postgres::{ManifestForm, Postgres, Resources};
use super::settings::{Initdb, KnownSettings, NotUnderstood, Setting, not_understood};
use super::yaml::{LocatedNode, YamlNode};

/// How initdb of CloudNativePG is told to ask for no huge pages.
const INITDB_CURE: &str = "bootstrap.initdb.options = [\"--set\", \"huge_pages=off\"]";
/// Libraries that CloudNativePG loads where a setting with the prefix is there.
const MANAGED: [&str; 4] = ["pg_stat_statements", "auto_explain", "pgaudit", "pg_failover_slots"];

/// An operator's custom resource, with the row of the table.
struct CustomResource<'a> {
    documents: &'a Documents,
    place: &'a LocatedNode,
    spec: &'a Rc<YamlNode>,
    operator: OperatorRow,
}

/// The PostgreSQLs of a custom resource; `None` if the table does not have its kind.
pub fn postgreses(documents: &Documents, place: &LocatedNode, group: &str, kind: &str) -> Option<Vec<Postgres>> {
    let operator = OperatorRow::find(group, kind)?;
    let Some(spec) = place.node.get("spec") else { return Some(Vec::new()) };
    let resource = CustomResource { documents, place, spec, operator };
    Some(match resource.operator.text("form") {
        Some("cloudnativepg") => vec![resource.cloudnativepg()],
        Some("pgo") => resource.pgo(),
        _ => vec![resource.zalando()],
    })
}

fn major(text: &str) -> Option<u32> {
    text.split('.').next()?.parse().ok()
}

impl CustomResource<'_> {
    fn found(&self, node: &Rc<YamlNode>) -> LocatedNode {
        self.place.beside(node)
    }

    fn postgres(
        &self,
        name: String,
        place: &Rc<YamlNode>,
        resources: &Rc<YamlNode>,
        settings: Result<KnownSettings, NotUnderstood>,
        written: &[Setting],
        major: Option<u32>,
    ) -> Postgres {
        let form = match self.operator.text("form") {
            Some("cloudnativepg") => ManifestForm::Cloudnativepg,
            Some("pgo") => ManifestForm::Pgo,
            _ => ManifestForm::Zalando,
        };
        Postgres {
            form,
            name,
            place: self.found(place),
            settings,
            major,
            nonexistent: nonexistent(written, major),
            resources: Resources::of_container(self.found(resources)),
            default_page_size: node::default_page_size(self.spec),
        }
    }

    /// CloudNativePG, and EDB's operator.
    fn cloudnativepg(&self) -> Postgres {
        let parameters = self.spec.at(&["postgresql", "parameters"]);
        let image = self.spec.text_at(&["imageName"]);
        let major = image.and_then(image::major);
        let major = major.or_else(|| self.spec.text_at(&["imageCatalogRef", "major"]).and_then(self::major));
        let written = settings_of(self.place, parameters);
        let names = written.clone().unwrap_or_default();
        let settings = written.and_then(|written| self.of_cloudnativepg(written, image, major));
        self.postgres(name_of(&self.place.node), &self.place.node, self.spec, settings, &names, major)
    }

    fn of_cloudnativepg(
        &self,
        written: Vec<Setting>,
        image: Option<&str>,
        major: Option<u32>,
    ) -> Result<KnownSettings, NotUnderstood> {
        only_strings(&written)?;
        self.operator.check_version(major, self.spec)?;
        let of_catalog = self.image_of_catalog()?;
        self.operator.check_image(of_catalog.as_deref().or(image))?;
        let annotations = self.place.node.at(&["metadata", "annotations"]).map(|all| all.entries()).unwrap_or_default();
        if annotations.iter().any(|(key, _)| key.text().is_some_and(|key| key.ends_with("/podPatch"))) {
            return not_understood("an annotation changes the pod");
        }
        let bootstrap = self.spec.get("bootstrap").map(|bootstrap| bootstrap.all_below()).unwrap_or_default();
        let alters =
            |node: &Rc<YamlNode>| node.text().is_some_and(|text| text.to_ascii_lowercase().contains("alter system"));
        let is_referenced = |node: &Rc<YamlNode>| {
            ["postInitSQLRefs", "postInitApplicationSQLRefs", "postInitTemplateSQLRefs"]
                .iter()
                .any(|key| node.get(key).is_some())
        };
        if bootstrap.iter().any(|node| alters(node) || is_referenced(node)) {
            return not_understood("SQL of the bootstrap may change settings");
        }
        if self.spec.text_at(&["postgresql", "enableAlterSystem"]) == Some("true") {
            return not_understood("enableAlterSystem lets ALTER SYSTEM change settings");
        }
        let initdb = self.spec.at(&["bootstrap", "initdb"]);
        let words = initdb.and_then(|initdb| initdb.get("options")).map(|words| words.items()).unwrap_or_default();
        let words =
            words.iter().filter_map(|word| Some(Argument { text: word.text()?.to_owned(), place: self.found(word) }));
        let of_initdb = options::of_initdb(&words.collect::<Vec<_>>(), major)?;
        let is_new = initdb.is_some() || self.spec.get("bootstrap").is_none();
        let asks = match super::containers::initdb_asks(&of_initdb.settings, major, is_new) {
            Initdb::AsksForPages(cure) => Initdb::AsksForPages(cure.map(|_| INITDB_CURE)),
            Initdb::Harmless => Initdb::Harmless,
        };
        let libraries = self.libraries_of_cloudnativepg(&written);
        let mut all = of_initdb.settings;
        all.extend(self.operator.defaults());
        all.extend(written);
        all.push(Setting::default_of_operator("shared_preload_libraries", &libraries));
        let home = self.spec.at(&["postgresql", "parameters"]).map(|node| self.found(node));
        let known = KnownSettings::checked(major, all, home, asks)?;
        let size = initdb.and_then(|initdb| initdb.text_at(&["walSegmentSize"])).and_then(|text| text.parse().ok());
        Ok(KnownSettings { wal_segment_mb: size.or(of_initdb.wal_segment_mb), ..known })
    }

    /// The image of the major in a catalog, which has to be among the documents.
    fn image_of_catalog(&self) -> Result<Option<String>, NotUnderstood> {
        let Some(name) = self.spec.text_at(&["imageCatalogRef", "name"]) else { return Ok(None) };
        let kind = self.spec.text_at(&["imageCatalogRef", "kind"]).unwrap_or("ImageCatalog");
        let catalog = document_beside(self.documents, self.place, kind, name);
        let images = catalog.as_ref().and_then(|catalog| catalog.node.at(&["spec", "images"]));
        let major = self.spec.text_at(&["imageCatalogRef", "major"]);
        let mut images = images.map(|images| images.items()).unwrap_or_default().iter();
        let image = images.find(|image| image.text_at(&["major"]) == major).and_then(|image| image.text_at(&["image"]));
        match image {
            Some(image) => Ok(Some(image.to_owned())),
            None => not_understood(format!("the image is in the catalog {name}, which is not in the files")),
        }
    }

    /// A list of its own, to which the operator adds the libraries of managed extensions.
    fn libraries_of_cloudnativepg(&self, written: &[Setting]) -> String {
        let own =
            self.spec.at(&["postgresql", "shared_preload_libraries"]).map(|list| list.items()).unwrap_or_default();
        let is_set = |library: &&str| {
            let prefix = format!("{library}.");
            written.iter().any(|setting| setting.name.starts_with(&prefix))
        };
        let managed = MANAGED.into_iter().filter(is_set);
        own.iter().filter_map(|name| name.text()).chain(managed).collect::<Vec<_>>().join(",")
    }

    /// Crunchy's operator and Percona's: each set of instances.
    fn pgo(&self) -> Vec<Postgres> {
        let image = self.spec.text_at(&["image"]).and_then(image::major);
        let major = self.spec.text_at(&["postgresVersion"]).and_then(self::major).or(image);
        let dynamic = self.spec.at(&["patroni", "dynamicConfiguration", "postgresql", "parameters"]);
        let own = self.spec.at(&["config", "parameters"]);
        let written = settings_of(self.place, dynamic).and_then(|mut written| {
            written.extend(settings_of(self.place, own)?);
            Ok(written)
        });
        let names = written.clone().unwrap_or_default();
        let sets = self.spec.get("instances").map(|sets| sets.items()).unwrap_or_default();
        // One set that has huge pages decides for all.
        let asks = sets.iter().any(|set| !Resources::of_container(self.found(set)).page_sizes().is_empty());
        let settings = written.and_then(|written| self.of_pgo(written, major, asks, own.or(dynamic)));
        let of_set = |set: &Rc<YamlNode>| {
            let name = format!("{}, instances {}", name_of(&self.place.node), set.text_at(&["name"]).unwrap_or("00"));
            self.postgres(name, set, set, settings.clone(), &names, major)
        };
        sets.iter().map(of_set).collect()
    }

    fn of_pgo(
        &self,
        written: Vec<Setting>,
        major: Option<u32>,
        asks: bool,
        home: Option<&Rc<YamlNode>>,
    ) -> Result<KnownSettings, NotUnderstood> {
        self.operator.check_version(major, self.spec)?;
        self.operator.check_image(self.spec.text_at(&["image"]))?;
        for (path, why) in [
            (&["databaseInitSQL"][..], "databaseInitSQL runs SQL that may change settings"),
            (
                &["patroni", "dynamicConfiguration", "postgresql", "custom_conf"],
                "custom_conf names a configuration file",
            ),
        ] {
            if self.spec.at(path).is_some() {
                return not_understood(why);
            }
        }
        let last = |name: &str| written.iter().rev().find(|setting| setting.name == name);
        let mut all = self.operator.defaults();
        let since = self.operator.text("hugePagesSinceMajor").and_then(self::major);
        let is_certain = since.is_none_or(|since| major.is_some_and(|major| major >= since));
        match (asks, is_certain || last("huge_pages").is_some()) {
            (true, _) => all.push(Setting::default_of_operator("huge_pages", "try")),
            (false, true) => all.push(Setting::default_of_operator("huge_pages", "off")),
            (false, false) => {
                return not_understood(
                    "Crunchy's operator sets it only since 2023, and its version is unknown: set huge_pages",
                );
            }
        }
        let libraries = self.libraries_of_pgo(last("shared_preload_libraries").map(|setting| setting.value.as_str()));
        all.extend(written);
        all.push(Setting::default_of_operator("shared_preload_libraries", &libraries));
        // Crunchy's own images have huge_pages = off in postgresql.conf.sample for as long as the operator sets it.
        let has_cured_image = since.is_some() && is_certain;
        let initdb = match has_cured_image || self.spec.get("dataSource").is_some() {
            true => Initdb::Harmless,
            false => Initdb::AsksForPages(None),
        };
        KnownSettings::checked(major, all, home.map(|node| self.found(node)), initdb)
    }

    /// The operator's libraries first, without those that the manifest turns off, and those of its monitoring.
    fn libraries_of_pgo(&self, written: Option<&str>) -> String {
        let is_off = |library: &str| {
            let builtin =
                self.spec.text_at(&["extensions", "builtin", if library == "pgaudit" { "pg_audit" } else { library }]);
            builtin == Some("false")
        };
        let mut all: Vec<_> = self.operator.list("libraries").into_iter().filter(|library| !is_off(library)).collect();
        if self.spec.at(&["monitoring", "pgmonitor"]).is_some() {
            all.extend(["pg_stat_statements", "pgnodemx"]);
        }
        all.extend(written);
        all.join(",")
    }

    /// Zalando's operator, whose image makes the settings by what it finds where it runs.
    fn zalando(&self) -> Postgres {
        let major = self.spec.text_at(&["postgresql", "version"]).and_then(self::major);
        let written = settings_of(self.place, self.spec.at(&["postgresql", "parameters"])).unwrap_or_default();
        let why = "the image Spilo sets shared_buffers, connections and libraries by its version and by the memory that it finds";
        self.postgres(name_of(&self.place.node), &self.place.node, self.spec, not_understood(why), &written, major)
    }
}
