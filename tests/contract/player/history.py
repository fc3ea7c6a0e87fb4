"""Histories: queries on the events observed in a namespace since a mark.

Terminating and finished Pods are not counted.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from typing import Final

from tests.contract.player.observer import Observed
from tests.contract.player.paths import ABSENT, Json, Object, pick

_SUFFIX: Final = "[bcdfghjklmnpqrstvwxz2456789]{5}"
Range = list[int]  # minimum and maximum


def generated(meta: Object) -> bool:
    """Whether the name was generated; StatefulSet Pods have a generateName, too, but not a generated name."""
    prefix = meta.get("generateName") or "-"
    return re.fullmatch(re.escape(prefix) + _SUFFIX, meta["name"]) is not None


class History:
    def __init__(self, events: Sequence[Observed], mark: int) -> None:
        self._events = events
        self._mark = mark  # the number of events before the queried ones

    def answer(self, step: Object) -> Object:
        answer: Object = {}
        if "pods" in step:
            answer["pods"] = self._pods(step["pods"])
        if "extremes" in step:
            answer["extremes"] = self._extremes(step["extremes"])
        if "writes" in step:
            answer["writes"] = {kind: self._writes(kind) for kind in step["writes"]}
        if "events" in step:
            answer["events"] = self._reasons(set(step["events"]), messages=bool(step.get("messages")))
        if "last" in step:
            answer["last"] = _shown(self.versions(step["last"])[-1:], step["last"]["paths"])
        if "when" in step:
            path, wanted = step["when"]["path"], str(step["when"]["is"])
            such = [item for item in self.versions(step["when"]) if str(pick(item, path)) == wanted]
            answer["when"] = _shown(such[:1], step["when"]["paths"])
        if "course" in step:
            values = [pick(item, step["course"]["path"]) for item in self.versions(step["course"])]
            answer["course"] = [value for value, _ in itertools.groupby(values)]
        return answer

    def versions(self, step: Object) -> list[Object]:
        """The states of an object, write by write; a deleted object ends with its last state."""
        return [
            event.object
            for event in self._events[self._mark :]
            if event.kind == step["kind"] and event.object["metadata"]["name"] == step["name"]
        ]

    def _writes(self, kind: str) -> dict[str, int]:
        def count(event_type: str) -> int:
            since = self._events[self._mark :]
            return len({e.object["metadata"]["uid"] for e in since if e.kind == kind and e.type == event_type})

        return {"created": count("ADDED"), "deleted": count("DELETED")}

    def _pods(self, selector: str) -> dict[str, dict[str, Range]]:
        """The minimum and maximum number of Pods, and of ready Pods: in total and by owner."""
        wanted = dict(part.split("=", 1) for part in selector.split(",") if part)
        pods: dict[str, tuple[str, bool]] = {}  # uid: owner, and whether it is ready
        ranges: dict[str, dict[str, Range]] = {}  # by owner
        for index, event in enumerate(self._events):
            meta = event.object["metadata"]
            if event.kind == "Pod" and wanted.items() <= meta.get("labels", {}).items():
                phase = event.object.get("status", {}).get("phase")
                if event.type == "DELETED" or meta.get("deletionTimestamp") or phase in ("Succeeded", "Failed"):
                    pods.pop(meta["uid"], None)
                else:
                    ready = pick(event.object, "status.conditions[type=Ready].status") == "True"
                    pods[meta["uid"]] = _controller(meta).get("name", "none"), ready
            if index >= self._mark - 1:
                _widen(ranges, list(pods.values()))
        return ranges

    def _extremes(self, selector: str) -> dict[str, int]:
        """The minimum number of ready Pods, and the maximum number of Pods.

        Pods of ReplicaSets are counted by the desired replicas: a set that is scaled up may create its Pods before the
        one that is scaled down has deleted its own.
        """
        total = self._pods(selector)["all"]
        asked: dict[str, int] = {}
        most = 0
        for index, event in enumerate(self._events):
            if event.kind == "ReplicaSet":
                replicas = 0 if event.type == "DELETED" else event.object["spec"]["replicas"]
                asked[event.object["metadata"]["uid"]] = replicas
            if index >= self._mark - 1:
                most = max(most, sum(asked.values()))
        if asked:
            return {"least ready": total["ready"][0], "most asked for": most}
        return {"least ready": total["ready"][0], "most pods": total["pods"][1]}

    def _reasons(self, about: set[str], *, messages: bool) -> dict[str, list[str]]:
        """The reasons of the Events of each object; objects with generated names are merged."""
        metas = [event.object["metadata"] for event in self._events]
        ids = {meta["name"]: f"{meta['generateName']}<id>" for meta in metas if generated(meta)}
        found: dict[str, set[str]] = {}
        for event in self._events[self._mark :]:
            if event.kind != "Event":
                continue
            kind, name = (event.object.get("involvedObject", {}).get(key) for key in ("kind", "name"))
            if not about & {kind, f"{kind} {name}"}:
                continue
            text = event.object["reason"]
            if messages:
                text += ": " + event.object.get("message", "")
                for real, shown in ids.items():
                    text = text.replace(real, shown)
            found.setdefault(f"{kind} {ids.get(name, name)}", set()).add(text)
        return {key: sorted(texts) for key, texts in sorted(found.items())}


def _shown(items: Sequence[Object], paths: Sequence[str]) -> Json:
    return {path: pick(items[0], path) for path in paths} if items else ABSENT


def _controller(meta: Object) -> Object:
    return next((owner for owner in meta.get("ownerReferences", []) if owner.get("controller")), {})


def _widen(ranges: dict[str, dict[str, Range]], pods: Sequence[tuple[str, bool]]) -> None:
    """Extend the ranges, in total and of each current or former owner, by the current state."""
    for owner in {"all", *(owner for owner, _ in pods), *ranges}:
        mine = [ready for its_owner, ready in pods if owner in ("all", its_owner)]
        for what, count in (("pods", len(mine)), ("ready", sum(mine))):
            low, high = ranges.setdefault(owner, {}).get(what, (count, count))
            ranges[owner][what] = [min(low, count), max(high, count)]
