//! What Oracle's script hugepages_settings.sh prints on this host, beside `size`.

use hugepage_host::Survey;
use hugepage_kernel::mapping::sysvipc;
use hugepage_kernel::{PageSize, Root};
use hugepage_oracle::sga_size::{SCRIPT_REVISIONS, ScriptAnswer, ScriptRevision, SgaSegment, hugepages_settings};
use serde::Serialize;

/// The result of hugepages_settings.sh.
#[derive(Debug, Serialize)]
pub struct ScriptComparison {
    /// The script's sum of pages over the segments, in all revisions.
    pub pages: u64,
    /// The output of each revision, the oldest first.
    pub revisions: Vec<RevisionOutput>,
    pub one_page_too_many_for_each_segment: u64,
    pub of_segments_that_are_not_oracles: u64,
    pub skipped_small_segments: u64,
}

/// The output of a revision of the script on this host.
#[derive(Debug, Serialize)]
pub struct RevisionOutput {
    pub revision: &'static str,
    /// The pages that the revision prints; null if it prints no number.
    pub pages: Option<u64>,
    /// The reason why the revision prints no number; null if it prints one.
    pub fails: Option<String>,
}

impl ScriptComparison {
    /// Compares the script with this host, whose default page size is `default`; `None` if the segments could not be read.
    pub fn new(root: &Root, survey: &Survey, default: Option<PageSize>, release: &str) -> Option<Self> {
        let segments = sysvipc::read(root).ok().flatten()?;
        let of_oracle = |shmid: u64| {
            let oracles = survey.instances.iter().filter(|instance| instance.id.oracle().is_some());
            oracles
                .flat_map(|instance| instance.memory.shared.iter().flat_map(|memory| &memory.mappings))
                .any(|one| one.inode == shmid)
        };
        let segments =
            segments.iter().map(|segment| SgaSegment { size: segment.size, of_oracle: of_oracle(segment.shmid) });
        let size = default?;
        let count = hugepages_settings(segments, size);
        Some(Self {
            pages: count.pages.0,
            revisions: SCRIPT_REVISIONS.iter().map(|one| revision(one, one.answer(count, size, release))).collect(),
            one_page_too_many_for_each_segment: count.one_each.0,
            of_segments_that_are_not_oracles: count.of_others.0,
            skipped_small_segments: count.skipped.0,
        })
    }
}

fn revision(revision: &ScriptRevision, answer: ScriptAnswer) -> RevisionOutput {
    let fails = match answer {
        ScriptAnswer::Pages(_) => None,
        ScriptAnswer::UnknownKernel(major, minor) => {
            Some(format!("this kernel is not in its list, which ends with {major}.{minor} at the latest"))
        }
        ScriptAnswer::TooLittleMemory => {
            Some(format!("less than {} bytes of shared memory are in use", revision.min_memory.0))
        }
    };
    let pages = if let ScriptAnswer::Pages(pages) = answer { Some(pages.0) } else { None };
    RevisionOutput { revision: revision.mark, pages, fails }
}
