"""Executor of object operations: in their order, each as one or a few requests.

- A failed operation does not stop the later ones; all errors are raised together at the end. The caller runs its code
  again then, so operations must be safe to repeat.
- `CreateOrUpdate` replaces an existing object, with its resourceVersion; conflicts are retried.
- `Delete` deletes in the foreground and waits until the object is gone, up to 20 seconds.
- `JQPatch` reads the object, transforms it and updates it if it differs; conflicts are retried.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ostinato.api.errors import AlreadyExists, APIError, NotFound
from ostinato.api.gvk import NamespacedName
from ostinato.api.wire.json import encode_json
from ostinato.client.client import Client
from ostinato.client.discovery.mapping import AmbiguousResource, NoSuchResource
from ostinato.client.options import Propagation
from ostinato.client.patching import JsonPatch, MergePatch, Patch
from ostinato.client.transport.exchange import NoSuchKind
from ostinato.client.transport.protocol import TransportError
from ostinato.client.views import Unstructured
from ostinato.frontends.kernel.kind_names import find_kind
from ostinato.frontends.kernel.operations.specification import Json, Operation, OperationError, Verb
from ostinato.frontends.kernel.snapshots.filters import FilterError

_DELETION_SECONDS: Final = 20.0
_POLL_SECONDS: Final = 1.0
_POLICY: Final[dict[Verb, Propagation]] = {
    Verb.DELETE: "Foreground",
    Verb.DELETE_IN_BACKGROUND: "Background",
    Verb.DELETE_NON_CASCADING: "Orphan",
}
_FAILURES: Final = (
    APIError,
    AmbiguousResource,
    FilterError,
    NoSuchKind,
    NoSuchResource,
    OperationError,
    TransportError,
    TypeError,
    ValueError,
)


class OperationExecutor:
    def __init__(self, client: Client, field_manager: str = "ostinato-hooks") -> None:
        self._client = client.in_namespace("")
        self._clock = client.world.clock
        self._field_manager = field_manager

    async def execute(self, operations: Sequence[Operation]) -> None:
        """Execute all operations. Raises OperationError with the errors of those that failed."""
        failures: list[str] = []
        for each in operations:
            try:
                await self._execute(each)
            except _FAILURES as error:
                failures.append(f"{each}: {error}")
        if failures:
            raise OperationError("; ".join(failures))

    async def _execute(self, each: Operation) -> None:
        match each.verb:
            case Verb.CREATE | Verb.CREATE_IF_NOT_EXISTS | Verb.CREATE_OR_UPDATE:
                await self._create(each)
            case Verb.JQ_PATCH:
                await self._transform(each)
            case Verb.MERGE_PATCH:
                await self._patch(each, MergePatch(each.content))
            case Verb.JSON_PATCH:
                await self._patch(each, JsonPatch(each.content))
            case _:
                await self._delete(each)

    async def _create(self, each: Operation) -> None:
        instance: Json = each.content
        try:
            await self._client.create(instance, field_manager=self._field_manager)
        except AlreadyExists:
            if each.verb is Verb.CREATE:
                raise
            if each.verb is Verb.CREATE_OR_UPDATE:
                await self._client.retry_on_conflict(lambda: self._replace(each))

    async def _replace(self, each: Operation) -> None:
        view = Unstructured.of(each.api_version, each.kind)
        found = await self._client.get(view, NamespacedName(each.namespace, each.name))
        version = found["metadata"].get("resourceVersion", "")
        metadata = {**each.content["metadata"], "resourceVersion": version}
        await self._client.update({**each.content, "metadata": metadata}, field_manager=self._field_manager)

    async def _delete(self, each: Operation) -> None:
        view = await self._view(each)
        key = NamespacedName(each.namespace, each.name)
        try:
            await self._client.delete(view, key, propagation=_POLICY[each.verb])
        except NotFound:
            return
        if each.verb is not Verb.DELETE:
            return
        deadline = self._clock.monotonic() + _DELETION_SECONDS
        while await self._client.get(view, key, missing=None) is not None:
            if self._clock.monotonic() >= deadline:
                raise OperationError(f"still exists after {_DELETION_SECONDS:g} s; check its finalizers")
            await self._clock.sleep(_POLL_SECONDS)

    async def _transform(self, each: Operation) -> None:
        assert each.filter is not None, "parse_operations() compiles the filter"
        program = each.filter
        view = await self._view(each)
        key = NamespacedName(each.namespace, each.name)
        options: dict[str, Any] = {"field_manager": self._field_manager}
        if each.subresource:
            options["subresource"] = each.subresource

        async def attempt() -> None:
            found = await self._client.get(view, key)
            changed = program.evaluate(encode_json(found))
            if not isinstance(changed, dict):
                raise OperationError(f"jqFilter returned {type(changed).__name__}, expected the object")
            if changed != found:
                await self._client.update(changed, **options)

        try:
            await self._client.retry_on_conflict(attempt)
        except NotFound:
            if not each.ignore_missing:
                raise

    async def _patch(self, each: Operation, patch: Patch) -> None:
        view = await self._view(each)
        options: dict[str, Any] = {"field_manager": self._field_manager}
        if each.subresource:
            options["subresource"] = each.subresource
        try:
            await self._client.patch(view, NamespacedName(each.namespace, each.name), patch, **options)
        except NotFound:
            if not each.ignore_missing:
                raise

    async def _view(self, each: Operation) -> Unstructured:
        info = await find_kind(self._client.mapper, each.api_version, each.kind)
        return Unstructured(info.gvk, info)
