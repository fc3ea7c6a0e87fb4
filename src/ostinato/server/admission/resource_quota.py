"""Quotas: what the objects of a namespace use together stays within bounds.

Use is counted when an object comes into being, and told in the quota's status before the object is stored; a controller
brings the count back to the truth when objects go.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from ostinato.api.gvk import GroupResource
from ostinato.api.quantity import Quantity
from ostinato.server.admission.chain import Plugin
from ostinato.server.admission.objects import Kind, forbidden
from ostinato.server.admission.quota_usage import Usage, count_name, in_scope, undemanded, usage
from ostinato.server.resources.strategy import Json
from ostinato.server.store import index

if TYPE_CHECKING:
    from ostinato.server.store.index import Entry
    from ostinato.server.verbs.context import Context

_ATTEMPTS = 10
_PODS = GroupResource("", "pods")
_CHANGING = frozenset({GroupResource("", "services"), GroupResource("", "persistentvolumeclaims")})
_IGNORED = GroupResource("", "events")


class ResourceQuota(Plugin):
    def __init__(self, quotas: Kind) -> None:
        self._quotas = quotas

    async def validate(
        self, context: Context, operation: str, obj: Json | None, old: Json | None, options: Any
    ) -> None:
        namespace, resource = context.route.namespace, context.resource.group_resource
        if not context.resource.namespaced or context.route.subresource or resource == _IGNORED or obj is None:
            return
        if operation != "CREATE" and not (operation == "UPDATE" and resource in _CHANGING):
            return
        for entry in self._quotas.entries(namespace):
            await self._charge(context, entry, obj, old, dry=bool(options.dry_run))

    async def _charge(self, context: Context, entry: Entry, obj: Json, old: Json | None, *, dry: bool) -> None:
        """Count an object in one quota; again on the newest state if somebody else was faster."""
        current: Entry | None = entry
        for _ in range(_ATTEMPTS):
            if current is None:
                return
            quota = msgspec.json.decode(current.data)
            used = _new_use(context, quota, obj, old)
            if used is None or dry:
                return
            quota["status"]["used"] = used
            try:
                await self._store(context, quota, current)
            except index.Conflict as conflict:
                current = conflict.current
            else:
                return
        raise forbidden(context, obj, f"status unknown for quota: {entry.key.rpartition('/')[2]}: it keeps changing")

    async def _store(self, context: Context, quota: Json, current: Entry) -> None:
        entry = index.Entry(current.key, 0, b"", current.labels, current.fields, current.uid)

        def encode(version: int) -> bytes:
            quota["metadata"]["resourceVersion"] = str(version)
            return msgspec.json.encode(quota)

        await context.index.put(self._quotas.collection, entry, current, encode)


def _new_use(context: Context, quota: Json, obj: Json, old: Json | None) -> dict[str, str] | None:
    """The use after the object has come, None if it does not count; Forbidden if it is too much."""
    resource = context.resource.group_resource
    status = quota.get("status", {})
    hard: dict[str, str] = status.get("hard", {})
    scoped = quota["spec"].get("scopes") or quota["spec"].get("scopeSelector")
    if scoped and (resource != _PODS or not in_scope(obj, quota["spec"])):
        return None
    asked = usage(resource, obj)
    limited = [name for name in hard if name in asked or (resource == _PODS and _is_of_pods(name))]
    if not limited and count_name(resource) not in hard:
        return None
    name = quota["metadata"]["name"]
    if resource == _PODS:
        why = undemanded(obj, limited)
        if why:
            raise forbidden(context, obj, f"failed quota: {name}: {why}")
    used: dict[str, str] = status.get("used", {})
    unknown = [each for each in limited if each not in used]
    if unknown:
        raise forbidden(context, obj, f"status unknown for quota: {name}, resources: {','.join(sorted(unknown))}")
    more = _increase(asked, usage(resource, old) if old is not None else {}, hard)
    if not more:
        return None
    total = {each: Quantity.parse(used[each]) + amount for each, amount in more.items()}
    exceeded = sorted(each for each, amount in total.items() if amount > Quantity.parse(hard[each]))
    if exceeded:
        requested, taken, most = (
            ",".join(f"{each}={values[each]}" for each in exceeded) for values in (more, used, hard)
        )
        why = f"exceeded quota: {name}, requested: {requested}, used: {taken}, limited: {most}"
        raise forbidden(context, obj, why)
    return {**used, **{each: str(amount) for each, amount in total.items()}}


def _is_of_pods(name: str) -> bool:
    if name == "requests.storage":
        return False
    return name in ("cpu", "memory", "ephemeral-storage") or name.startswith(("requests.", "limits."))


def _increase(asked: Usage, before: Usage, hard: dict[str, str]) -> Usage:
    more: Usage = {}
    for name, amount in asked.items():
        if name in hard:
            added = amount - before[name] if name in before else amount
            if added.sign > 0:
                more[name] = added
    return more
