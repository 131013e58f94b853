//! Grid Infrastructure of a host, by the files that its root.sh leaves in /etc/oracle: `olr.loc` in a cluster as well as
//! under Oracle Restart, and `ocr.loc`, which tells both apart.

use hugepage_kernel::source::root::if_there;
use hugepage_kernel::stranger::limit;
use hugepage_kernel::{InstanceFiles, Notes};

use crate::readers::parameters::assignment;

/// The file that names the local registry and the Grid Infrastructure home.
const LOCAL_REGISTRY: &str = "/etc/oracle/olr.loc";
/// The file that names the cluster registry.
const CLUSTER_REGISTRY: &str = "/etc/oracle/ocr.loc";

/// The list of storage cells, which database servers of Exadata alone have.
pub const CELLS_OF_EXADATA: &str = "/etc/oracle/cell/network-config/cellip.ora";

/// Grid Infrastructure of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GridInfrastructure {
    /// Whether Grid Infrastructure is that of a cluster, by `local_only` of `ocr.loc`. `None` if that line is missing.
    pub is_cluster: Option<bool>,
}

impl GridInfrastructure {
    /// Grid Infrastructure of the host, or container, of `files`; `None` if there is none. What cannot be read is a note.
    pub fn read(files: &InstanceFiles, notes: &mut Notes) -> Option<Self> {
        let mut text = |path| notes.keep(if_there(files.read_text(path, limit::CONFIGURATION))).flatten();
        text(LOCAL_REGISTRY)?;
        Some(Self { is_cluster: text(CLUSTER_REGISTRY).and_then(|text| is_cluster(&text)) })
    }
}

fn is_cluster(ocr_loc: &str) -> Option<bool> {
    let lines = ocr_loc.lines().filter_map(assignment);
    let (_, local_only) = lines.into_iter().find(|(name, _)| name.eq_ignore_ascii_case("local_only"))?;
    match local_only.to_ascii_lowercase().as_str() {
        "true" => Some(false),
        "false" => Some(true),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registries_of_both_kinds() {
        for (text, of_cluster) in [
            (
                "#Device/file +DATA getting replaced by device +OCR\nocrconfig_loc=+OCR/rac/OCRFILE/x\nlocal_only=false",
                Some(true),
            ),
            ("ocrconfig_loc=+DATA\nlocal_only=FALSE\n", Some(true)),
            ("ocrconfig_loc=/u01/app/grid/cdata/localhost/local.ocr\nlocal_only=TRUE\n", Some(false)),
            ("ocrconfig_loc=+DATA\n", None),
            ("local_only=perhaps\n", None),
            ("", None),
        ] {
            assert_eq!(is_cluster(text), of_cluster, "{text}");
        }
    }
}
