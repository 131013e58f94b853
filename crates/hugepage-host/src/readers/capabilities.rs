//! Capabilities of a thread (capabilities(7)).

use std::io;

use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, remove_capability_from_bounding_set, set_capabilities,
    set_no_new_privs,
};

/// Keeps of this thread's capabilities `permitted`, with `effective` in effect. No program that it starts gets more.
pub fn limit(effective: CapabilitySet, permitted: CapabilitySet) -> io::Result<()> {
    let held = capabilities(None)?.permitted;
    set_no_new_privs(true)?;
    for capability in (held - permitted).iter() {
        // Without CAP_SETPCAP it stays in the bounding set, which gives nothing to a process that executes nothing.
        let _ = remove_capability_from_bounding_set(capability);
    }
    let sets = CapabilitySets {
        effective: effective & held,
        permitted: permitted & held,
        inheritable: CapabilitySet::empty(),
    };
    Ok(set_capabilities(None, sets)?)
}
