"""OwnerReferencesPermissionEnforcement: setting owner references needs permissions on object and owner.

- Setting an owner reference needs the verb delete on the object: garbage collection can delete it.
- `blockOwnerDeletion` needs update on the owner's finalizers subresource.

Off by default, as in kube-apiserver.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ostinato.api.gvk import GroupResource, GroupVersion
from ostinato.api.text.go_format import quote
from ostinato.server.access.attributes import RequestAttributes
from ostinato.server.access.authorization.authorizer import MASTERS, Authorizer
from ostinato.server.admission.chain import Plugin
from ostinato.server.admission.objects import forbidden
from ostinato.server.resources.strategy import Json

if TYPE_CHECKING:
    from ostinato.server.request.context import Context
    from ostinato.server.resources.registry import Registry
    from ostinato.server.resources.resource import Resource

_PODS = GroupResource("", "pods")  # status updates do not change owner references
_ALL_FINALIZERS = RequestAttributes("update", "*", "*", "finalizers", name="*")


class OwnerReferencesPermissionEnforcement(Plugin):
    def __init__(self, registry: Registry, authorizer: Authorizer) -> None:
        self._registry = registry
        self._authorizer = authorizer

    async def validate(
        self, context: Context, operation: str, obj: Json | None, old: Json | None, options: Any
    ) -> None:
        user = context.request.user
        owners, before = _owners(obj), _owners(old)
        if obj is None or owners == before or user is None or MASTERS in user.groups:
            return
        route, resource = context.route, context.resource
        if route.subresource == "status" and resource.group_resource == _PODS:
            return
        if operation != "CREATE":
            gvr = resource.gvr
            attributes = RequestAttributes(
                "delete", gvr.group, gvr.resource, route.subresource, route.namespace, route.name
            )
            decision = await self._authorizer.decide(user, attributes)
            if not decision.allowed:
                why = "cannot set an ownerRef on a resource you can't delete"
                raise forbidden(context, obj, f"{why}: {decision.reason}, <nil>")
        blocking = list(_newly_blocking(owners, before))
        if not blocking or (await self._authorizer.decide(user, _ALL_FINALIZERS)).allowed:
            return
        for owner in blocking:
            for attributes in self._finalizers(context, obj, owner):
                decision = await self._authorizer.decide(user, attributes)
                if not decision.allowed:
                    why = "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set"
                    raise forbidden(context, obj, f"{why} finalizers on: {decision.reason}, <nil>")

    def _finalizers(self, context: Context, obj: Json, owner: Json) -> Iterator[RequestAttributes]:
        """The attributes that a user needs on an owner, for every resource of its kind."""
        found = self._resources(owner)
        if not found:
            version, kind = owner.get("apiVersion", ""), owner.get("kind", "")
            why = f"cannot find RESTMapping for APIVersion {version} Kind {kind}"
            absent = f"no matches for kind {quote(kind)} in version {quote(version)}"
            raise forbidden(context, obj, f"cannot set blockOwnerDeletion in this case because {why}: {absent}")
        for resource in found:
            gvr, namespace = resource.gvr, context.route.namespace if resource.namespaced else ""
            yield RequestAttributes("update", gvr.group, gvr.resource, "finalizers", namespace, owner.get("name", ""))

    def _resources(self, owner: Json) -> list[Resource]:
        version = GroupVersion.parse(owner.get("apiVersion", ""))
        return self._registry.of_kind(version.kind(owner.get("kind", "")))


def _owners(obj: Json | None) -> list[Json]:
    return ((obj or {}).get("metadata") or {}).get("ownerReferences") or []


def _newly_blocking(owners: list[Json], before: list[Json]) -> Iterator[Json]:
    blocked = {owner.get("uid") for owner in before if owner.get("blockOwnerDeletion")}
    return (owner for owner in owners if owner.get("blockOwnerDeletion") and owner.get("uid") not in blocked)
