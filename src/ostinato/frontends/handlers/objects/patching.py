"""Patch: the changes of an object that a handler asks for; sent as a merge patch after the handler.

    patch.spec["size"] = 5
    patch.status["phase"] = "Ready"
    patch.meta.labels["tier"] = None      # removes it
    patch.fns.append(lambda body: body["spec"]["items"].append("new"))

- A handler that fails still has its patch sent, so that it can leave a message in the status.
- Functions in `fns` change the whole object, lists too; they run again if the object has changed meanwhile.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, MutableMapping
from typing import Any

from ostinato.api.patch import create_merge_patch

Json = dict[str, Any]


class PatchPart(dict[str, Any]):
    """A part of a patch. Reading a missing key as a part creates it when something is set in it."""

    @property
    def labels(self) -> MutableMapping[str, Any]:
        return self._part("labels")

    @property
    def annotations(self) -> MutableMapping[str, Any]:
        return self._part("annotations")

    def _part(self, name: str) -> PatchPart:
        found = self.get(name)
        if not isinstance(found, PatchPart):
            found = self[name] = PatchPart(found or {})
        return found


class Patch(PatchPart):
    """A merge patch of the object."""

    def __init__(self, content: Mapping[str, Any] | None = None) -> None:
        super().__init__(content or {})
        self.fns: list[Callable[[Json], object]] = []

    @property
    def metadata(self) -> PatchPart:
        return self._part("metadata")

    @property
    def meta(self) -> PatchPart:
        return self.metadata

    @property
    def spec(self) -> PatchPart:
        return self._part("spec")

    @property
    def status(self) -> PatchPart:
        return self._part("status")

    def __bool__(self) -> bool:
        return bool(self.fns) or bool(pruned(self))


def pruned(patch: Mapping[str, Any]) -> Json:
    """Return a patch as JSON without the parts in which nothing was set."""
    found = {}
    for name, value in patch.items():
        kept = pruned(value) if isinstance(value, PatchPart) else value
        if kept or not isinstance(value, PatchPart):
            found[name] = kept
    return found


def merged(first: Json, second: Json) -> Json:
    """Return one merge patch with the effect of both, in order."""
    result = dict(first)
    for name, value in second.items():
        known = result.get(name)
        result[name] = merged(known, value) if isinstance(known, dict) and isinstance(value, dict) else value
    return result


def transformed(body: Json, functions: list[Callable[[Json], object]]) -> Json:
    """Return the merge patch of what functions change in a body."""
    changed = copy.deepcopy(body)
    for function in functions:
        function(changed)
    change: Json = create_merge_patch(body, changed)
    return change
