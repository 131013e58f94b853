//! What the kernel limits shared memory by, beside its pools: kernel parameters (sysctl(8)), and the System V segments that there are.

use serde::{Deserialize, Serialize};

use crate::memory::sysctl::running_number;
use crate::memory::sysvipc::{self, SysvSegment};
use crate::{KernelRelease, PageSize, Root};

/// The values of the running kernel; `None` for what could not be read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct KernelLimits {
    /// `kernel.osrelease`.
    pub release: Option<String>,
    /// The size of base pages.
    pub base_page_size: Option<PageSize>,
    /// `vm.admin_reserve_kbytes`.
    pub admin_reserve: Option<u64>,
    /// The rest.
    pub system_v: SystemV,
}

/// What is of System V shared memory alone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SystemV {
    /// `kernel.shmall`, in base pages.
    pub shmall: Option<u64>,
    /// `kernel.shmmax`, in bytes.
    pub shmmax: Option<u64>,
    /// `kernel.shmmni`.
    pub shmmni: Option<u64>,
    /// `vm.hugetlb_shm_group`.
    pub hugetlb_shm_group: Option<u64>,
    /// The segments of the IPC namespace of this process.
    pub segments: Option<Vec<SysvSegment>>,
}

impl KernelLimits {
    /// Reads all.
    pub fn read(root: &Root) -> Self {
        Self {
            release: KernelRelease::text(root),
            base_page_size: root.base_page_size().ok(),
            admin_reserve: running_number(root, "vm.admin_reserve_kbytes"),
            system_v: SystemV::read(root),
        }
    }

    /// Reads what decides with `vm.overcommit_memory` = `overcommit`, for a server without System V segments.
    pub fn of_overcommit(root: &Root, overcommit: Option<u8>) -> Self {
        let mut limits = Self::default();
        match overcommit {
            Some(0) => limits.release = KernelRelease::text(root),
            Some(2..) => limits.admin_reserve = running_number(root, "vm.admin_reserve_kbytes"),
            _ => {}
        }
        limits
    }
}

impl SystemV {
    fn read(root: &Root) -> Self {
        let number = |name: &str| running_number(root, name);
        Self {
            shmall: number("kernel.shmall"),
            shmmax: number("kernel.shmmax"),
            shmmni: number("kernel.shmmni"),
            hugetlb_shm_group: number("vm.hugetlb_shm_group"),
            segments: sysvipc::read(root),
        }
    }
}

/// Whether the process `pid` is in the IPC namespace of this one, whose segments /proc/sysvipc has.
pub fn shares_ipc(root: &Root, pid: &str) -> bool {
    let namespace = |pid: &str| root.read_link(&format!("/proc/{pid}/ns/ipc")).ok();
    namespace(pid) == namespace("self")
}
