"""Readiness of an object while no plan runs: the health of the workloads that its plans have applied."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ostinato.api import accessors as access
from ostinato.api.gvk import GroupKind
from ostinato.cache.client import CachedClient
from ostinato.client.views import Unstructured
from ostinato.controllers.objects.readiness import has_readiness_check
from ostinato.frontends.kernel.sync import parse_kind_key
from ostinato.frontends.plans.api import HERITAGE_LABEL, INSTANCE_LABEL
from ostinato.frontends.plans.tasks.health import WORKLOADS, health_of

Json = dict[str, Any]


async def readiness(instance: Json, kinds: Iterable[str], client: CachedClient) -> tuple[bool, str]:
    """Return whether all workloads of an object are healthy, and what is wrong with those that are not."""
    labels = {HERITAGE_LABEL: "kudo", INSTANCE_LABEL: access.name(instance)}
    problems = []
    for gvk in sorted(map(parse_kind_key, kinds)):
        if gvk.group_kind not in WORKLOADS and not has_readiness_check(gvk.group_kind):
            continue
        for each in await client.list(Unstructured(gvk), namespace=access.namespace(instance), labels=labels):
            if gvk.group_kind == GroupKind("", "Pod") and (each.get("status") or {}).get("phase") == "Succeeded":
                continue
            health = health_of(each)
            if not health:
                problems.append(f'{gvk.kind.lower()} "{access.name(each)}" is not healthy: {health.message}')
    return not problems, ", ".join(problems)
