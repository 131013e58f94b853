//! Assesses servers beside each other: what they share of memlock and of the pool.

use hugepage_assess::stopped_databases::Wants;
use hugepage_kernel::{Bytes, PageSize, Pages};

use super::instance::{Instance, InstanceKind};
use super::stopped::StoppedOracle;

/// Kernels that count memlock count all System V segments in huge pages of one user (`user_shm_lock` in mm/mlock.c).
pub(super) fn share_memlock(instances: &mut [Instance]) {
    let held: Vec<_> = instances
        .iter()
        .filter(|instance| instance.kind != InstanceKind::PostgreSql)
        .filter_map(|instance| {
            Some((instance.pid, instance.uid?, instance.status.facts.segment.as_ref()?.in_huge_pages))
        })
        .collect();
    for instance in instances {
        let of_user = held.iter().filter(|(pid, uid, _)| *pid != instance.pid && Some(*uid) == instance.uid);
        let sum = of_user.fold(Bytes(0), |sum, (_, _, size)| sum.saturating_add(*size));
        if sum > Bytes(0) {
            instance.assess_with(|facts| {
                facts.ground = facts.ground.clone().beside(sum);
                facts.pending = facts.pending.clone().beside(sum);
            });
        }
    }
}

/// Assesses each server again with what the others lack, so that one size of the pool serves all that count, running or
/// stopped. `default`: the page size that the stopped ones ask for. Where the need of one is unknown, what the others lack
/// is unknown.
pub(super) fn beside_each_other(instances: &mut [Instance], stopped: &[StoppedOracle], default: Option<PageSize>) {
    let of_stopped = stopped.iter().try_fold(Pages(0), |sum, stopped| match stopped.wants {
        Wants::Pages(pages, _) => Some(sum.saturating_add(pages)),
        Wants::None(_) => Some(sum),
        Wants::Unknown(_) => None,
    });
    let lack = |instance: &Instance| if instance.counts() { instance.status.facts.lack() } else { Pages(0) };
    let lacks: Vec<_> =
        instances.iter().map(|instance| (instance.status.facts.ground.huge_page_size, lack(instance))).collect();
    for (index, instance) in instances.iter_mut().enumerate() {
        let size = instance.status.facts.ground.huge_page_size;
        let others = lacks.iter().enumerate().filter(|(other, (of, _))| *other != index && *of == size);
        let others_lack = others.fold(Pages(0), |sum, (_, (_, lack))| sum.saturating_add(*lack));
        let of_stopped = if size == default { of_stopped } else { Some(Pages(0)) };
        let others_lack = of_stopped.map(|of_stopped| of_stopped.saturating_add(others_lack));
        if others_lack != Some(Pages(0)) {
            instance.assess_with(|facts| facts.others_lack = others_lack);
        }
    }
}
