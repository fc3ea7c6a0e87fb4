"""Objects of tests, as a cache has them."""

from __future__ import annotations

from typing import Any

import msgspec

from ostinato.api.gvk import GroupVersionKind
from ostinato.api.object import KindInfo, plural_of
from ostinato.cache.store.entry import CollectionInfo, Entry
from ostinato.cache.store.entry_decoder import EntryDecoder
from ostinato.page.facts import Ref
from ostinato.page.reporting.reports import Wrote


def entry(instance: dict[str, Any]) -> Entry:
    gvk = GroupVersionKind.of(instance["apiVersion"], instance["kind"])
    info = KindInfo(gvk=gvk, plural=plural_of(gvk.kind), singular=gvk.kind.lower(), namespaced=True)
    return EntryDecoder(CollectionInfo(info), keep_managed_fields=True).decode(msgspec.json.encode(instance))


def instance(
    kind: str, name: str, version: int, *, manager: str = "", api_version: str = "v1", **others: Any
) -> dict[str, Any]:
    metadata: dict[str, Any] = {
        "name": name,
        "namespace": "default",
        "uid": f"uid-{kind}-{name}",
        "resourceVersion": str(version),
        **others.pop("metadata", {}),
    }
    if manager:
        metadata["managedFields"] = [
            {"manager": manager, "operation": "Update", "time": f"2026-01-01T00:00:{version:02}Z"}
        ]
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **others}


def wrote(at: float, run: str, controller: str, ref: Ref, version: str, *, is_removal: bool = False) -> Wrote:
    """The report of a write."""
    named = (ref.api_version, ref.kind, ref.namespace, ref.name, ref.uid)
    return Wrote(*named, version, at, run, controller, is_removal)
