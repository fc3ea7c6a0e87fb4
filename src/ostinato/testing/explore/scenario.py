"""Scenario: what users do, step by step. After each step the world settles, and every run must then agree.

    [create(site), edit(site, replicas=3), delete_children(site), delete(site), create(site)]

- Objects are instances of kinds, or dicts with apiVersion, kind and metadata.
- A step can be repeated: one that was done already has no effect. A server that was restored to an earlier state is
  brought forward again this way.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, Protocol

import msgspec

from ostinato.api.codec import to_dict
from ostinato.api.errors import AlreadyExists, NotFound
from ostinato.api.gvk import GroupVersionKind
from ostinato.api.object import Object
from ostinato.client.client import Client
from ostinato.client.patching import MergePatch
from ostinato.client.views import Unstructured
from ostinato.world import Clock

Json = dict[str, Any]


class Ground(Protocol):
    """What a step acts on."""

    @property
    def client(self) -> Client:
        """The client of a user."""

    @property
    def clock(self) -> Clock: ...

    def view(self, gvk: GroupVersionKind) -> Unstructured:
        """Return the view of a kind."""

    def children(self, namespace: str, name: str) -> list[tuple[GroupVersionKind, str, str]]:
        """Return kind, namespace and name of what is owned by objects of this name."""


class Step(ABC):
    """One action of a user."""

    @abstractmethod
    async def perform(self, ground: Ground) -> None: ...

    @abstractmethod
    def __str__(self) -> str:
        """One line for timelines."""

    @abstractmethod
    def source(self) -> str:
        """Return Python that makes the step again."""


class ObjectStep(Step):
    """A step that acts on one object."""

    verb = ""

    def __init__(self, instance: Object | Json) -> None:
        self.manifest = manifest_of(instance)
        metadata = self.manifest["metadata"]
        self.gvk = GroupVersionKind.of(self.manifest["apiVersion"], self.manifest["kind"])
        self.name: str = metadata["name"]
        self.namespace: str = metadata.get("namespace", "")

    def __str__(self) -> str:
        return f"{self.verb} {self.gvk.kind} {self.name}"

    def source(self) -> str:
        return f"{self.verb}({self.manifest!r})"

    def _client(self, ground: Ground) -> Client:
        return ground.client.in_namespace(self.namespace) if self.namespace else ground.client


class Create(ObjectStep):
    verb = "create"

    async def perform(self, ground: Ground) -> None:
        # An object of the same name that is still being deleted blocks the name; a person waits for it, too.
        for _ in range(60):
            try:
                await self._client(ground).create(_copy(self.manifest))
            except AlreadyExists:
                found = await self._client(ground).get(ground.view(self.gvk), self.name, missing=None)
                if found is not None and "deletionTimestamp" not in found["metadata"]:
                    return
                await ground.clock.sleep(1.0)
            else:
                return


class Edit(ObjectStep):
    """Changes fields of `spec`; `patch` is a JSON merge patch of the object."""

    verb = "edit"

    def __init__(self, instance: Object | Json, patch: Json) -> None:
        super().__init__(instance)
        self.patch = patch

    def __str__(self) -> str:
        return f"{super().__str__()} {msgspec.json.encode(self.patch).decode()}"

    def source(self) -> str:
        return f"patch({self._short()!r}, {self.patch!r})"

    def _short(self) -> Json:
        metadata = {key: value for key, value in self.manifest["metadata"].items() if key in ("name", "namespace")}
        return {"apiVersion": self.manifest["apiVersion"], "kind": self.manifest["kind"], "metadata": metadata}

    async def perform(self, ground: Ground) -> None:
        with suppress(NotFound):
            await self._client(ground).patch(ground.view(self.gvk), self.name, MergePatch(_copy(self.patch)))


class Delete(ObjectStep):
    verb = "delete"

    def source(self) -> str:
        return f"delete({self.manifest!r})"

    async def perform(self, ground: Ground) -> None:
        await self._client(ground).delete(ground.view(self.gvk), self.name, missing_ok=True)


class DeleteChildren(ObjectStep):
    """Deletes the objects that the object owns, as a clumsy user does."""

    verb = "delete_children"

    def __str__(self) -> str:
        return f"delete the children of {self.gvk.kind} {self.name}"

    async def perform(self, ground: Ground) -> None:
        for gvk, namespace, name in ground.children(self.namespace or "default", self.name):
            client = ground.client.in_namespace(namespace) if namespace else ground.client
            await client.delete(ground.view(gvk), name, missing_ok=True)


class Wait(Step):
    """Lets time pass."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    async def perform(self, ground: Ground) -> None:
        await ground.clock.sleep(self._seconds)

    def __str__(self) -> str:
        return f"wait {self._seconds:g} s"

    def source(self) -> str:
        return f"wait({self._seconds!r})"


class Call(Step):
    """Calls a function of the user's own with a client."""

    def __init__(self, function: Callable[[Client], Awaitable[object]]) -> None:
        self._function = function

    async def perform(self, ground: Ground) -> None:
        await self._function(ground.client)

    def __str__(self) -> str:
        return f"call {self._function.__name__}"

    def source(self) -> str:
        return f"call({self._function.__name__})"


def create(instance: Object | Json) -> Step:
    """Create an object."""
    return Create(instance)


def edit(instance: Object | Json, **fields: Any) -> Step:  # Any: values of the fields
    """Change fields of the object's `spec`: `edit(site, replicas=3)`. Names are those of the class, or of the dict."""
    if not fields:
        raise TypeError("edit() needs the fields of spec to change, e.g. edit(site, replicas=3)")
    if isinstance(instance, dict):
        return Edit(instance, {"spec": fields})
    spec = getattr(instance, "spec", None)
    if not isinstance(spec, msgspec.Struct):
        raise TypeError(f"edit(): {type(instance).__name__} has no spec; use patch({{...}})")
    before, after = to_dict(spec), to_dict(msgspec.structs.replace(spec, **fields))
    changed = {key: after.get(key) for key in {**before, **after} if before.get(key) != after.get(key)}
    return Edit(instance, {"spec": changed})


def patch(instance: Object | Json, changes: Mapping[str, Any]) -> Step:
    """Apply a JSON merge patch to an object."""
    return Edit(instance, dict(changes))


def delete(instance: Object | Json) -> Step:
    """Delete an object."""
    return Delete(instance)


def delete_children(instance: Object | Json) -> Step:
    """Delete everything that an object owns."""
    return DeleteChildren(instance)


def wait(seconds: float) -> Step:
    """Let time pass."""
    return Wait(seconds)


def call(function: Callable[[Client], Awaitable[object]]) -> Step:
    """Call `await function(client)`: any other action of users. It must be repeatable."""
    return Call(function)


def manifest_of(instance: Object | Json) -> Json:
    """Return an object as a dict, with apiVersion and kind."""
    return _copy(instance if isinstance(instance, dict) else to_dict(instance))


def _copy(value: Json) -> Json:
    copied: Json = msgspec.json.decode(msgspec.json.encode(value))
    return copied
