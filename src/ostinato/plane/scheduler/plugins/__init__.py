"""The default plugins of kube-scheduler, in order, with their default weights."""

from __future__ import annotations

from ostinato.plane.scheduler.framework.local_results import WeightedPlugin
from ostinato.plane.scheduler.plugins.image_locality import ImageLocality
from ostinato.plane.scheduler.plugins.node_affinity import NodeAffinity
from ostinato.plane.scheduler.plugins.node_name import NodeName
from ostinato.plane.scheduler.plugins.node_ports import NodePorts
from ostinato.plane.scheduler.plugins.node_unschedulable import NodeUnschedulable
from ostinato.plane.scheduler.plugins.pod_affinity.plugin import InterPodAffinity
from ostinato.plane.scheduler.plugins.resources.balanced_allocation import BalancedAllocation
from ostinato.plane.scheduler.plugins.resources.fit import ResourcesFit
from ostinato.plane.scheduler.plugins.scheduling_gates import SchedulingGates
from ostinato.plane.scheduler.plugins.taint_toleration import TaintToleration
from ostinato.plane.scheduler.plugins.topology_spread.plugin import TopologySpread
from ostinato.plane.scheduler.plugins.volumes.binding import VolumeBinding
from ostinato.plane.scheduler.plugins.volumes.limits import VolumeLimits
from ostinato.plane.scheduler.plugins.volumes.restrictions import VolumeRestrictions
from ostinato.plane.scheduler.plugins.volumes.zone import VolumeZone


def default_plugins() -> tuple[WeightedPlugin, ...]:
    return (
        WeightedPlugin(SchedulingGates()),
        WeightedPlugin(NodeUnschedulable()),
        WeightedPlugin(NodeName()),
        WeightedPlugin(TaintToleration(), 3),
        WeightedPlugin(NodeAffinity(), 2),
        WeightedPlugin(NodePorts()),
        WeightedPlugin(ResourcesFit(), 1),
        WeightedPlugin(BalancedAllocation(), 1),
        WeightedPlugin(VolumeRestrictions()),
        WeightedPlugin(VolumeLimits()),
        WeightedPlugin(VolumeBinding()),
        WeightedPlugin(VolumeZone()),
        WeightedPlugin(TopologySpread(), 2),
        WeightedPlugin(InterPodAffinity(), 2),
        WeightedPlugin(ImageLocality(), 1),
    )
