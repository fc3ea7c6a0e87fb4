"""NamespaceLifecycle: rejects creates in missing or terminating namespaces, and deletion of system namespaces."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from ostinato.api.errors import Forbidden, NotFound
from ostinato.api.gvk import GroupResource
from ostinato.api.status import StatusCause
from ostinato.server.admission.chain import Plugin
from ostinato.server.admission.objects import forbidden
from ostinato.server.resources.strategy import Json

if TYPE_CHECKING:
    from ostinato.server.request.context import Context
    from ostinato.server.store.collection import Collection

_NAMESPACES = GroupResource("", "namespaces")
_REVIEWS = "authorization.k8s.io"  # access reviews must not reveal whether a namespace exists
_IMMORTAL = frozenset({"default", "kube-system", "kube-public"})


class NamespaceLifecycle(Plugin):
    mutates = frozenset({"CREATE"})
    validates = frozenset({"DELETE"})

    def __init__(self, namespaces: Collection) -> None:
        self._namespaces = namespaces

    async def mutate(self, context: Context, operation: str, obj: Json | None, old: Json | None, options: Any) -> None:
        if not context.resource.namespaced or context.resource.gvr.group == _REVIEWS:
            return
        namespace = context.route.namespace
        entry = self._namespaces.newest(namespace)
        if entry is None:
            raise NotFound.of(_NAMESPACES, namespace)
        if entry.fields.get("status.phase") == "Terminating":
            why = f"unable to create new content in namespace {namespace} because it is being terminated"
            error = forbidden(context, obj, why)
            cause = StatusCause(
                "NamespaceTerminating", f"namespace {namespace} is being terminated", "metadata.namespace"
            )
            details = msgspec.structs.replace(error.details, causes=(cause,))
            raise Forbidden(msgspec.structs.replace(error.status, details=details))

    async def validate(
        self, context: Context, operation: str, obj: Json | None, old: Json | None, options: Any
    ) -> None:
        name = context.route.name
        if context.resource.group_resource == _NAMESPACES and name in _IMMORTAL:
            raise Forbidden.of(_NAMESPACES, name, "this namespace may not be deleted")
