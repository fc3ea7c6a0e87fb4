"""NodeName: filters nothing, as Pods with a node name are not scheduled; its hint retries Pods when a node is added."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from ostinato.plane.scheduler.cache.pod_info import Shape
from ostinato.plane.scheduler.framework.events import NODE, Action, QueueingHint
from ostinato.plane.scheduler.framework.interface import Plugin


class NodeName(Plugin):
    name = "NodeName"
    local = True

    def local_key(self, shape: Shape) -> Hashable:  # noqa: ARG002 - the same for all shapes
        return None

    def hints(self) -> Sequence[QueueingHint]:
        return (QueueingHint(NODE, Action.ADD),)
