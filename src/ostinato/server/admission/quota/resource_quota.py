"""ResourceQuota: limits the total usage of a namespace.

Usage is charged to the quota's status before an object is created or grows, by compare-and-swap: several servers never
exceed it together. The resource quota controller recalculates the usage after deletes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

import msgspec

from ostinato.api.errors import Unknown
from ostinato.api.gvk import GroupResource
from ostinato.api.quantity import Quantity
from ostinato.server.admission.chain import Plugin
from ostinato.server.admission.objects import forbidden
from ostinato.server.admission.quota.limited import LimitedResource, RequiredCoverage
from ostinato.server.admission.quota.scopes import in_scope, is_terminating, matching_terms, scope_terms
from ostinato.server.admission.quota.usage import Usage, limited_names, missing_constraints, usage
from ostinato.server.resources.lister import Lister
from ostinato.server.resources.strategy import Json
from ostinato.server.store import records
from ostinato.server.verbs import write

if TYPE_CHECKING:
    from ostinato.server.request.context import Context
    from ostinato.server.store.records import Entry

_ATTEMPTS = 100  # each conflict is a write of another server, or of the resource quota controller
_MANAGER = "kube-apiserver"
_PODS = GroupResource("", "pods")
_CLAIMS = GroupResource("", "persistentvolumeclaims")
_SERVICES = GroupResource("", "services")
_IGNORED = GroupResource("", "events")


class ResourceQuota(Plugin):
    validates = frozenset({"CREATE", "UPDATE"})

    def __init__(self, quotas: Lister, limited: Sequence[LimitedResource] = ()) -> None:
        """`limited`: resources that need a covering quota."""
        self._quotas = quotas
        self._limited = limited
        self._charging: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()  # by namespace
        self.skip_while_empty = None if limited else quotas.present

    async def validate(
        self, context: Context, operation: str, obj: Json | None, old: Json | None, options: Any
    ) -> None:
        if obj is None or not context.resource.namespaced or not _counts(context, operation, obj, old):
            return
        if self._limited:
            self._check_covered(context, obj, old)
        if self._quotas.entries(context.route.namespace):
            async with self._turn(context):
                await self._charge(context, obj, old, dry=bool(options.dry_run))

    def _turn(self, context: Context) -> AbstractAsyncContextManager[Any]:
        """On a shared store, requests of this server take turns: they would only conflict with each other.

        Elsewhere, concurrent charges share a commit.
        """
        if not context.index.is_shared:
            return nullcontext()
        return self._charging.setdefault(context.route.namespace, asyncio.Lock())

    def _check_covered(self, context: Context, obj: Json, old: Json | None) -> None:
        """Forbidden if no quota covers a limited resource of the object."""
        resource = context.resource.group_resource
        requested = usage(resource, obj)
        before = usage(resource, old) if old is not None else {}
        if not any(
            (amount - before[name] if name in before else amount).sign > 0 for name, amount in requested.items()
        ):
            return
        demand = RequiredCoverage(self._limited, resource, obj, requested)
        names: set[str] = set()
        scopes: list[Json] = []
        for entry in self._quotas.entries(context.route.namespace):
            quota = msgspec.json.decode(entry.data)
            scopes += matching_terms(resource, obj, scope_terms(quota["spec"]))
            if in_scope(resource, obj, quota["spec"]):
                names.update(limited_names(resource, quota.get("status", {}).get("hard", {}), requested))
        missing, unmatched = demand.uncovered(names, scopes)
        if missing:
            raise forbidden(context, obj, f"insufficient quota to consume: {','.join(missing)}")
        if unmatched:
            message = " ".join(
                f"{{{term.get('scopeName', '')} {term.get('operator', '')} [{' '.join(term.get('values') or ())}]}}"
                for term in unmatched
            )
            raise Unknown.of(f"insufficient quota to match these scopes: [{message}]")

    async def _charge(self, context: Context, obj: Json, old: Json | None, *, dry: bool) -> None:
        """Charge an object to every quota or to none; quotas that changed concurrently are retried."""
        charged: set[str] = set()
        for _ in range(_ATTEMPTS):
            changed: list[tuple[Entry, Json]] = []
            for entry in self._quotas.entries(context.route.namespace):
                quota = msgspec.json.decode(entry.data)
                used = None if entry.key in charged else _new_usage(context, quota, obj, old)
                if used is not None:
                    new = {**quota, "metadata": dict(quota["metadata"]), "status": {**quota["status"], "used": used}}
                    changed.append((entry, self._owned(context, quota, new)))
            if dry:
                return
            try:
                for entry, quota in changed:
                    await self._store(context, quota, entry)
                    charged.add(entry.key)
            except records.Conflict:
                continue
            return
        raise forbidden(context, obj, "quotas of the namespace changed concurrently; try again")

    def _owned(self, context: Context, quota: Json, new: Json) -> Json:
        """The quota with the new status, owned by the server's field manager."""
        resource = self._quotas.resource
        manager = resource.managers.get("status")
        if manager is None:
            return new
        message = {"apiVersion": resource.gvk.api_version, "kind": resource.gvk.kind}
        owned = manager.update({**message, **quota}, {**message, **new}, _MANAGER, write.now(context.world.clock))
        return {field: owned[field] for field in new}

    async def _store(self, context: Context, quota: Json, current: Entry) -> None:
        entry = records.Entry(current.key, 0, b"", current.labels, current.fields, current.uid)

        def encode(version: int) -> bytes:
            quota["metadata"]["resourceVersion"] = str(version)
            return msgspec.json.encode(quota)

        await context.index.put(self._quotas.collection, entry, current, encode)


def _counts(context: Context, operation: str, obj: Json, old: Json | None) -> bool:
    """Whether a write can change the usage."""
    resource, subresource = context.resource.group_resource, context.route.subresource
    if operation == "CREATE":
        return not subresource and resource != _IGNORED
    if operation != "UPDATE" or old is None:
        return False
    if resource == _PODS:
        return subresource == "resize" or (not subresource and is_terminating(obj) != is_terminating(old))
    if resource == _CLAIMS:
        return subresource in ("", "status")
    return resource == _SERVICES and not subresource


def _new_usage(context: Context, quota: Json, obj: Json, old: Json | None) -> dict[str, str] | None:
    """The usage including the object, None if it is not counted; Forbidden if it exceeds the quota."""
    resource = context.resource.group_resource
    status, name = quota.get("status", {}), quota["metadata"]["name"]
    hard: dict[str, str] = status.get("hard", {})
    requested = usage(resource, obj)
    limited = limited_names(resource, hard, requested)
    if not limited or not in_scope(resource, obj, quota["spec"]):
        return None
    if resource == _PODS:
        why = missing_constraints(obj, limited)
        if why:
            raise forbidden(context, obj, f"failed quota: {name}: {why}")
    used: dict[str, str] = status.get("used", {})
    if any(each not in used for each in limited):
        raise forbidden(context, obj, f"status unknown for quota: {name}, resources: {','.join(sorted(limited))}")
    counted = old is not None and in_scope(resource, old, quota["spec"])
    more = _increase(requested, usage(resource, old) if old is not None and counted else {}, hard)
    if not more:
        return None
    total = {each: Quantity.parse(used[each]) + amount for each, amount in more.items()}
    exceeded = sorted(each for each, amount in total.items() if amount > Quantity.parse(hard[each]))
    if exceeded and context.route.subresource != "status":  # status updates are charged even beyond the limit
        shown, taken, most = (",".join(f"{each}={values[each]}" for each in exceeded) for values in (more, used, hard))
        why = f"exceeded quota: {name}, requested: {shown}, used: {taken}, limited: {most}"
        raise forbidden(context, obj, why)
    return {**used, **{each: str(amount) for each, amount in total.items()}}


def _increase(requested: Usage, before: Usage, hard: dict[str, str]) -> Usage:
    more: Usage = {}
    for name, amount in requested.items():
        if name in hard:
            added = amount - before[name] if name in before else amount
            if added.sign > 0:
                more[name] = added
    return more
