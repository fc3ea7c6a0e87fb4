"""ImageLocality: prefers nodes that have the Pod's images, weighted by size and by how many nodes have them."""

from __future__ import annotations

from typing import Final

from ostinato.plane.scheduler.cache.node_info import NodeInfo
from ostinato.plane.scheduler.cache.pod_info import PodSpec
from ostinato.plane.scheduler.cache.snapshot import Snapshot
from ostinato.plane.scheduler.framework.interface import MAX_NODE_SCORE, Cycle, Plugin, Scorer

_SMALL: Final = 23 * 1024 * 1024  # bytes: minimum threshold
_LARGE: Final = 1000 * 1024 * 1024  # bytes per container: maximum threshold


class ImageLocality(Plugin):
    name = "ImageLocality"

    def score(self, cycle: Cycle) -> Scorer | None:
        there = cycle.snapshot.images
        spec = cycle.pod.spec
        images = [image for image in images_of(spec) if image in there] if there else []
        return _Scorer(images, len(spec.containers) + len(spec.init_containers), cycle.snapshot) if images else None


class _Scorer(Scorer):
    def __init__(self, images: list[str], containers: int, snapshot: Snapshot) -> None:
        self._most = _LARGE * containers
        count = len(snapshot.nodes)
        self._images = [(image, snapshot.images[image] / count) for image in images]

    def score(self, node: NodeInfo) -> int:
        sizes = node.facts.images
        total = sum([int(sizes.get(image, 0) * spread) for image, spread in self._images]) if sizes else 0
        total = min(max(total, _SMALL), self._most)
        return MAX_NODE_SCORE * (total - _SMALL) // (self._most - _SMALL)


def images_of(spec: PodSpec) -> list[str]:
    """Return the Pod's images with tags, as nodes report them."""
    images = [container.image for container in (*spec.init_containers, *spec.containers)]
    images += [volume.image.reference for volume in spec.volumes if volume.image is not None]
    return [image if image.rfind(":") > image.rfind("/") else f"{image}:latest" for image in images]
