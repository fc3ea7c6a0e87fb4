"""ClusterRole aggregation controller: combines the rules of the ClusterRoles that an aggregationRule selects.

Rules are in the order of the role names, without duplicates. Manual changes are overwritten.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from ostinato.api.codec import to_dict
from ostinato.api.gvk import NamespacedName
from ostinato.api.selectors.labels import SelectorError
from ostinato.cache import Event, Informer
from ostinato.client.patching import MergePatch
from ostinato.controllers import Context, ForEvent, Request
from ostinato.kinds.rbac_v1 import ClusterRole, PolicyRule
from ostinato.manager import Manager
from ostinato.plane.controllers import Options
from ostinato.plane.ownership.event_handler import selector_of

_NAME: Final = "clusterrole-aggregation-controller"


def add_to(manager: Manager, options: Options) -> None:  # noqa: ARG001
    roles: Informer = manager.informers.of(ClusterRole)

    def aggregated(event: Event) -> Iterable[NamespacedName]:  # noqa: ARG001 - any role may be selected by any other
        return [entry.key for entry in roles.store.entries() if b'"aggregationRule"' in entry.data]

    manager.build(_NAME).watches(ClusterRole, handler=ForEvent(aggregated)).complete(RoleAggregation())


class RoleAggregation:
    async def reconcile(self, request: Request, ctx: Context) -> None:
        role = await ctx.client.get(ClusterRole, request, missing=None)
        if role is None or role.aggregation_rule is None:
            return
        rules: list[PolicyRule] = []
        for selector in role.aggregation_rule.cluster_role_selectors:
            try:
                selected = selector_of(selector)
            except SelectorError:
                continue
            others = await ctx.client.list(ClusterRole, labels=selected)
            for other in sorted(others, key=lambda each: each.metadata.name):
                if other.metadata.name != role.metadata.name:
                    rules += [rule for rule in other.rules if rule not in rules]
        if rules == role.rules:
            return
        change: dict[str, Any] = {
            "metadata": {"resourceVersion": role.metadata.resource_version},
            "rules": [to_dict(rule) for rule in rules],
        }
        await ctx.client.patch(ClusterRole, request, MergePatch(change), field_manager=_NAME)
