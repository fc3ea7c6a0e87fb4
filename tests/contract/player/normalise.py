"""Normalisation: values that vary from run to run are replaced by names derived from the objects' histories.

plane/README.md describes the names; node/README.md those of nodes with agents.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from tests.contract.player.history import generated
from tests.contract.player.observer import Observed
from tests.contract.player.paths import ABSENT, Json, Object, by_json, pick

_TIME: Final = re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z\b")
_UID: Final = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
_TOKEN_VOLUME: Final = re.compile(r"\bkube-api-access-[b-z2-9]{5}\b")
_USE: Final = re.compile(r"\b(used|capacity): \d+")  # in an agent's reason for a rejection
_LONG_ID: Final = re.compile(r"\b[0-9a-f]{64}\b")
_MAKERS: Final = ("ReplicaSet", "Job", "DaemonSet", "ReplicationController")


class Normaliser:
    def __init__(self, run: str, namespace: str, events: Sequence[Observed], pool: Sequence[str], *, agents: bool):
        self._run = run
        self._namespace = namespace
        self._agents = agents
        self._uids: dict[str, str] = {}  # uid: kind and name
        exact = self._names(events) | _addresses(events) | dict.fromkeys(pool, "<node>")
        if agents:
            exact |= _marks_of_agents(event.object.get("status", {}) for event in events if event.kind == "Pod")
        # Names of rejected Pods appear only in messages.
        makers = {event.object["metadata"]["name"] for event in events if event.kind in _MAKERS}
        self._refused = [
            re.compile(rf"\b({re.escape(name)}(?:-\d+)?-)[bcdfghjklmnpqrstvwxz2456789]{{5}}(?![\w-])")
            for name in makers
        ]
        self._known = set(exact)
        # Longest first: a Pod's name before the hash in it.
        self._exact = sorted(exact.items(), key=lambda pair: len(pair[0]), reverse=True)

    def __call__(self, value: Json) -> Json:
        if isinstance(value, dict):
            return {self._text(key): self(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self(item) for item in value]
        return self._text(value) if isinstance(value, str) else value

    def _text(self, value: str) -> str:
        value = value.replace(self._namespace, "<ns>")
        value = _UID.sub(lambda m: f"<uid of {self._uids[m[0]]}>" if m[0] in self._uids else "<uid>", value)
        for name in self._refused:
            value = name.sub(lambda m: m[0] if m[0] in self._known else m[1] + "<id>", value)
        for real, shown in self._exact * 2:  # twice: an address is replaced by a Pod name, which is generated, too
            if real in value:
                value = re.sub(rf"(?<![\w.]){re.escape(real)}(?!\w|\.\d)", shown, value)
        value = _TIME.sub("<time>", value)
        value = _TOKEN_VOLUME.sub("kube-api-access-<suffix>", value)
        if self._agents:
            value = _LONG_ID.sub("<id>", _USE.sub(r"\1: <n>", value))
        return value.replace(f"-{self._run}", "").replace(self._run, "<run>")

    def _names(self, events: Iterable[Observed]) -> dict[str, str]:
        """Number generated names in the order of creation; record the uids, too."""
        exact: dict[str, str] = {}
        counts: Counter[str] = Counter()

        def numbered(what: str, of: str) -> str:
            counts[of] += 1
            return f"<{what}-{counts[of]}>"

        for _, kind, item in events:
            meta = item["metadata"]
            if kind == "Event" or meta["uid"] in self._uids:
                continue
            name = meta["name"]
            owner: Object = next((o for o in meta.get("ownerReferences", []) if o.get("controller")), {})
            self._uids[meta["uid"]] = f"{kind} {name}"
            if generated(meta):
                exact[name] = meta["generateName"] + numbered("id", meta["generateName"])
            elif kind == "ReplicaSet" and "pod-template-hash" in meta.get("labels", {}):
                exact.setdefault(meta["labels"]["pod-template-hash"], numbered("hash", "hash"))
            elif kind == "ControllerRevision" and owner:
                exact.setdefault(name.removeprefix(owner["name"] + "-"), numbered("revision", "revision"))
            elif kind == "Job" and owner.get("kind") == "CronJob":
                exact[name] = f"{owner['name']}-{numbered('minute', 'minute')}"
        return exact


def in_order(answer: Json) -> Json:
    """Sort objects without an order, and lists with |sort, by their normalised content."""
    if not (isinstance(answer, dict) and "shown" in answer):
        return answer

    def ordered(item: Object) -> Object:
        return {
            path: sorted(value, key=by_json) if path.endswith("|sort") and isinstance(value, list) else value
            for path, value in item.items()
        }

    return {
        kind: sorted(map(ordered, items), key=by_json) if isinstance(items, list) else items
        for kind, items in answer["shown"].items()
    }


def _addresses(events: Iterable[Observed]) -> dict[str, str]:
    exact = {}
    for _, kind, item in events:
        for field in ("podIP", "clusterIP"):
            address = item.get("status", {}).get(field) or item.get("spec", {}).get(field)
            if address and address != "None":
                exact[address] = "<ip>" if kind == "Service" else f"<ip of {item['metadata']['name']}>"
    return exact


def _marks_of_agents(statuses: Iterable[Object]) -> dict[str, str]:
    """The ids and addresses that agents set in Pods."""
    exact = {}
    for status in statuses:
        if "hostIP" in status:
            exact[status["hostIP"]] = "<host-ip>"
        for kind in ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses"):
            for container in status.get(kind) or []:
                exact[container.get("imageID")] = "<image-id>"
                for path in ("containerID", "state.terminated.containerID", "lastState.terminated.containerID"):
                    exact[pick(container, path)] = "<container-id>"
    return {real: shown for real, shown in exact.items() if real and real != ABSENT}
