"""Objects of tests, as a cache has them."""

from __future__ import annotations

from typing import Any

import msgspec

from ostinato.api.gvk import GroupVersionKind, NamespacedName
from ostinato.api.object import KindInfo, plural_of
from ostinato.cache.store.entry import CollectionInfo, Entry
from ostinato.cache.store.entry_decoder import EntryDecoder
from ostinato.controllers.current import Reconcile
from ostinato.controllers.reports.observing import RunOutcome, RunResult
from ostinato.page.facts import Ref
from ostinato.page.history.runs import ReceivedRuns
from ostinato.page.reporting.reporter import Reporter
from ostinato.page.reporting.reports import FAILED, Details, Ended, Received, Wrote, decode, encode


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


def details(run: Reconcile) -> Details:
    key = run.request if isinstance(run.request, NamespacedName) else str(run.request)
    return Details(run.id, run.controller, key, run.why, run.explanations)


def ran(*runs: tuple[float, Reconcile], result: RunResult = "success") -> ReceivedRuns:
    """Runs, as the page has received them. With the time when each ended."""
    outcome = RunOutcome(result=result, seconds=0.1, waited=0.0)
    body = encode([Ended((), at, outcome, (), details(run)) for at, run in runs])
    failed = len(runs) if result in FAILED else 0
    return ReceivedRuns(msgspec.Raw(body), len(runs), failed, max(at for at, _ in runs), len(body))


def taken(reporter: Reporter) -> Received | None:
    """The reports that a reporter sends next, as the page receives them."""
    batch = reporter.take()
    return None if batch is None else decode(batch.body)
