//! Landlock: a thread that can write to named places only (Documentation/userspace-api/landlock.rst of Linux).

use std::io;
use std::path::PathBuf;

use landlock::{
    ABI, AccessFs, CompatLevel, Compatible, PathFd, Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr,
    RulesetError, path_beneath_rules,
};

/// The newest interface whose rights are asked for; an older kernel confines less.
const NEWEST: ABI = ABI::V5;

/// The rules of Landlock, and the places that they allow.
#[derive(Debug)]
pub struct Rules {
    ruleset: RulesetCreated,
    /// A rule belongs to an inode. Those of /proc and /sys stay the same only while they are open.
    _pinned: Vec<PathFd>,
}

/// The rules that allow writing below `places`; a place that does not exist gets none. The note says why there are none.
pub fn rules(places: &[PathBuf]) -> (Option<Rules>, Option<String>) {
    let pinned = places.iter().filter_map(|place| PathFd::new(place).ok()).collect();
    match create(places) {
        Ok(ruleset) => (Some(Rules { ruleset, _pinned: pinned }), None),
        Err(_) => {
            let note =
                "Landlock is unavailable (Linux 5.13): writing is not confined to the directories of the command line";
            (None, Some(note.to_owned()))
        }
    }
}

fn create(places: &[PathBuf]) -> Result<RulesetCreated, RulesetError> {
    // The first interface is required, so that its absence is an error. Newer rights are asked for as far as there are any.
    let ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_write(ABI::V1))?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_write(NEWEST))?
        .create()?;
    ruleset.add_rules(path_beneath_rules(places, AccessFs::from_write(NEWEST)))
}

/// Confines this thread for the rest of its life.
pub fn restrict_this_thread(rules: &Rules) -> io::Result<()> {
    rules.ruleset.try_clone()?.restrict_self().map(|_| ()).map_err(io::Error::other)
}
