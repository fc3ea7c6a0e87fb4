"""NodeName: a Pod that names its node does not come to the scheduler; one that found no node waits for any to come."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from ostinato.plane.scheduler.cache.pod_info import Shape
from ostinato.plane.scheduler.framework.events import NODE, Action, QueueingHint
from ostinato.plane.scheduler.framework.interface import Plugin


class NodeName(Plugin):
    name = "NodeName"
    local = True

    def local_key(self, shape: Shape) -> Hashable:  # noqa: ARG002 - nodes are all the same to it
        return None

    def hints(self) -> Sequence[QueueingHint]:
        return (QueueingHint(NODE, Action.ADD),)
