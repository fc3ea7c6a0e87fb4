"""The identity of a Pod: what an agent keeps of a simulated Pod while nothing happens to it.

A Pod has some thirty lists and structs, most of them empty. Ten thousand idle Pods must neither keep them in memory nor
have the garbage collector traverse them.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

import msgspec

from ostinato.api.meta import ObjectMeta
from ostinato.kinds.core_v1 import Pod, PodSpec, PodStatus

_STATUS: Final = PodStatus()
_LIST: Final[list[Any]] = []
_DICT: Final[dict[str, str]] = {}


def pod_identity(pod: Pod) -> Pod:
    """Return a Pod with name, namespace, uid, resourceVersion, node and readiness gates. It must not be changed."""
    known, spec = pod.metadata, _spec(pod.spec.node_name or "")
    if pod.spec.readiness_gates:
        spec = msgspec.structs.replace(spec, readiness_gates=pod.spec.readiness_gates)
    metadata = ObjectMeta(
        name=known.name,
        namespace=known.namespace,
        uid=known.uid,
        resource_version=known.resource_version,
        labels=_DICT,
        annotations=_DICT,
        finalizers=_LIST,
        owner_references=_LIST,
        managed_fields=_LIST,
    )
    return Pod(metadata=metadata, spec=spec, status=_STATUS)


@lru_cache(maxsize=16_384)
def _spec(node: str) -> PodSpec:
    return PodSpec(containers=[], node_name=node or None)
