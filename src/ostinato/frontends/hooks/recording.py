"""Recording of runs: a run as a `SyncRequest` and its outcome as a `SyncResult`, and back, to replay it.

- `trigger.data`: the name of the hook, its binding contexts as the hook reads them, and what made each of them.
- The answer to a review is the status of the result.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ostinato.api.gvk import NamespacedName
from ostinato.frontends.hooks.contexts import Context, Rendering
from ostinato.frontends.hooks.hook import Hook
from ostinato.frontends.hooks.running.outcome import Outcome
from ostinato.frontends.kernel.operations.specification import document
from ostinato.frontends.kernel.snapshots.snapshot import Item
from ostinato.frontends.kernel.sync import SyncRequest, SyncResult, Trigger

Json = dict[str, Any]


def request_of(controller: str, hook: Hook, rendering: Rendering) -> SyncRequest:
    contexts = msgspec.json.decode(rendering.json(hook.config.version))
    made_by = [{"source": each.source, "group": each.group, "change": each.change} for each in rendering.contexts]
    data = {"hook": hook.name, "contexts": contexts, "madeBy": made_by}
    return SyncRequest(controller=controller, trigger=Trigger(type=rendering.contexts[0].source, data=data))


def result_of(outcome: Outcome) -> SyncResult:
    answers = {"admission": outcome.admission, "conversion": outcome.conversion}
    given = {name: msgspec.to_builtins(each) for name, each in answers.items() if each is not None}
    return SyncResult(
        operations=[document(each) for each in outcome.operations],
        metrics=[msgspec.to_builtins(each) for each in outcome.metrics],
        status=given or None,
    )


class RecordedRendering(Rendering):
    """The contexts of a recorded run."""

    def __init__(self, request: SyncRequest) -> None:
        self._documents: list[Json] = request.trigger.data["contexts"]
        made_by: list[Json] = request.trigger.data["madeBy"]
        self._objects: dict[str, list[Item]] = {}
        for each in self._documents:
            for name, found in each.get("snapshots", {}).items():
                self._objects[name] = [_item(entry) for entry in found]
            if "objects" in each:
                self._objects[each["binding"]] = [_item(entry) for entry in each["objects"]]
        contexts = [_context(each, by) for each, by in zip(self._documents, made_by, strict=True)]
        super().__init__(contexts, lambda binding: self._objects.get(binding, []))

    def json(self, version: str) -> bytes:  # noqa: ARG002 - as it was recorded
        return msgspec.json.encode(self._documents)


def _context(each: Json, made_by: Json) -> Context:
    is_event = "object" in each or "filterResult" in each
    return Context(
        source=made_by["source"],
        binding=each["binding"],
        group=made_by["group"],
        include_snapshots=tuple(each.get("snapshots", ())),
        change=made_by["change"],
        item=_item(each) if is_event else None,
    )


def _item(entry: Json) -> Item:
    instance = entry.get("object")
    metadata: Json = (instance or {}).get("metadata", {})
    return Item(
        NamespacedName(metadata.get("namespace", ""), metadata.get("name", "")),
        None,
        msgspec.json.encode(entry["filterResult"]) if "filterResult" in entry else None,
        metadata.get("resourceVersion", ""),
        metadata.get("labels") or {},
        None if instance is None else msgspec.json.encode(instance),
    )
