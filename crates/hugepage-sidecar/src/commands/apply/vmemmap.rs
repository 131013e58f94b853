//! The memory of the descriptors of pages, most of which the kernel can give back for huge pages (mm/vmemmap_dedup,
//! Linux 5.19).

use anyhow::{Context, bail};
use hugepage_assess::assessment::advisory::Advisories;
use hugepage_kernel::Root;
use hugepage_kernel::host::kernel_release::KernelRelease;
use hugepage_kernel::memory::meminfo::OPTIMIZE_VMEMMAP;
use hugepage_kernel::memory::sysctl;

use super::kernel_file::write;
use crate::output::stream::complain;
use crate::privileges;

/// Keeps `vm.hugetlb_optimize_vmemmap` on until it is dropped, and then sets it as it was. Pages that were allocated
/// meanwhile keep what they have given back.
pub struct VmemmapOptimization<'a> {
    root: &'a Root,
    was: Option<String>,
}

impl<'a> VmemmapOptimization<'a> {
    /// Turns the sysctl on; an error if the kernel does not have it.
    pub fn begin(root: &'a Root) -> anyhow::Result<Self> {
        let was = setting(root)?;
        let is_on = was != "0";
        if !is_on {
            write(&root.path(&sysctl::path(OPTIMIZE_VMEMMAP)), "1")?;
        }
        Ok(Self { root, was: (!is_on).then_some(was) })
    }
}

impl Drop for VmemmapOptimization<'_> {
    fn drop(&mut self) {
        if let Some(was) = &self.was {
            let path = self.root.path(&sysctl::path(OPTIMIZE_VMEMMAP));
            if let Err(error) = privileges::write(|| write(&path, was)) {
                complain!("hugepage-sidecar: {error:#}");
            }
        }
    }
}

/// Refuses the sysctl if this kernel does not have it, or is known to lose such pages when they are freed.
pub fn check(root: &Root) -> anyhow::Result<()> {
    setting(root)?;
    let release = KernelRelease::text(root).unwrap_or_default();
    if Advisories::known().affects("lost_huge_pages", &release) == Some(true) {
        bail!(
            "--optimize-vmemmap is refused: Linux {release} loses such pages when they are freed, until the next boot"
        );
    }
    Ok(())
}

/// The value of the sysctl; an error if this kernel does not have it.
fn setting(root: &Root) -> anyhow::Result<String> {
    sysctl::running(root, OPTIMIZE_VMEMMAP)?.context(
        "this kernel has no vm.hugetlb_optimize_vmemmap: it needs Linux 5.19 and CONFIG_HUGETLB_PAGE_OPTIMIZE_VMEMMAP",
    )
}

/// The warning about freeing such pages: the kernel allocates their descriptors again, page by page and anywhere, and
/// can't move them (mm/hugetlb_vmemmap.c). In a guest of Linux 7.2 with nine free gigabytes in one piece two were left.
pub const WHEN_FREED: &str = "If they are freed later, there may be too little memory in one piece for pages of 1 GB until the \
                              next boot.";
