"""NamespaceExists and NamespaceAutoProvision: reject writes into a missing namespace, or create it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ostinato.api.errors import Invalid, NotFound
from ostinato.api.gvk import GroupResource
from ostinato.api.validation import names
from ostinato.api.validation.field_errors import FieldError, Path
from ostinato.server.admission.chain import Plugin
from ostinato.server.admission.objects import forbidden
from ostinato.server.request import body
from ostinato.server.resources.lister import Lister
from ostinato.server.resources.strategy import Json
from ostinato.server.store import records
from ostinato.server.verbs import write

if TYPE_CHECKING:
    from ostinato.server.request.context import Context

_NAMESPACES = GroupResource("", "namespaces")
_MANAGER = "kube-apiserver"


class NamespaceExists(Plugin):
    def __init__(self, namespaces: Lister) -> None:
        self._namespaces = namespaces

    async def validate(
        self, context: Context, operation: str, obj: Json | None, old: Json | None, options: Any
    ) -> None:
        if operation == "CONNECT" or not context.resource.namespaced:
            return
        namespace = context.route.namespace
        if self._namespaces.collection.newest(namespace) is None:
            raise NotFound.of(_NAMESPACES, namespace)


class NamespaceAutoProvision(Plugin):
    def __init__(self, namespaces: Lister) -> None:
        self._namespaces = namespaces

    async def mutate(self, context: Context, operation: str, obj: Json | None, old: Json | None, options: Any) -> None:
        if operation != "CREATE" or not context.resource.namespaced or options.dry_run:
            return
        name, resource = context.route.namespace, self._namespaces.resource
        if self._namespaces.collection.newest(name) is not None:
            return
        wrong = names.name_is_dns_label(name)
        if wrong:
            fault = FieldError.invalid(Path("metadata", "name"), name, "; ".join(wrong))
            raise forbidden(context, obj, Invalid.of(resource.gvk.group_kind, name, [fault]))
        now = write.now(context.world.clock)
        sent = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        namespace = resource.managers[""].update(None, body.shaped(resource, sent), _MANAGER, now)
        namespace["metadata"] |= {"uid": context.world.ids.uid(), "creationTimestamp": now}
        resource.strategy.prepare_create(namespace)
        try:
            await write.put_object(context.index, resource, namespace, None)
        except records.Conflict:
            return  # created concurrently
