"""Audit events of recorded scenarios: the events that a server logs for each request, normalised."""

from __future__ import annotations

import difflib
import itertools
import json
import re
import time
from pathlib import Path

import yaml

from tests.contract.conversations import Normaliser, Server, drop, run_scenario

HERE = Path(__file__).resolve().parent / "audit"
POLICY = HERE / "policy.yaml"
IGNORED = ["requestReceivedTimestamp", "stageTimestamp"]
_NAMESPACE = re.compile(r"/namespaces/(c-\d+)")
_serial = itertools.count()


class Numbered(Server):
    """A server whose requests each have an Audit-ID."""

    def __init__(self, url: str, token: str | None, ca: str | None) -> None:
        super().__init__(url, token, ca)
        self.ids: list[str] = []
        self.paths: list[str] = []

    def request(self, method, path, headers, body, timeout=30.0):
        audit_id = f"step-{time.time_ns()}-{next(_serial)}"
        self.ids.append(audit_id)
        self.paths.append(path)
        headers = {"User-Agent": "test/1", **headers, "Audit-ID": audit_id}
        return super().request(method, path, headers, body, timeout)


class Recorder(Normaliser):
    """Replaces ids, resourceVersions and generated names with placeholders."""

    def __call__(self, value, key=""):
        if key == "auditID":
            return "<id>"
        return super().__call__(value, key)


def scenarios(group: str = "audit") -> list[dict]:
    return yaml.safe_load((HERE / "scenarios" / f"{group}.yaml").read_text())


def recorded(group: str = "audit") -> dict[str, list]:
    return json.loads((HERE / "recorded" / f"{group}.json").read_text())


def events_of(server: Numbered, log: Path, scenario: dict) -> list[list[dict]]:
    """The events of each request, in order; those of the setup, which creates the namespace, come first."""
    server.ids.clear()
    server.paths.clear()
    run_scenario(server, scenario, [])
    _wait_for_silence(log)
    found: dict[str, list] = {audit_id: [] for audit_id in server.ids}
    for line in log.read_text().splitlines():
        event = json.loads(line)
        if event["auditID"] in found:
            found[event["auditID"]].append(event)
    namespaces = (match[1] for path in server.paths if (match := _NAMESPACE.search(path)))
    normalise = Recorder(next(namespaces, "c-none"))
    return [normalise([_trimmed(event) for event in events]) for events in found.values()]


def _trimmed(event: dict) -> dict:
    """An event without times and managedFields."""
    for path in IGNORED:
        drop(event, path.split("."))
    return event


def check(server: Numbered, log: Path, scenario: dict, expected: list[list[dict]]) -> tuple[int, str]:
    """The number of requests whose events are as recorded, and the differences."""
    got = json.loads(json.dumps(events_of(server, log, scenario)))
    good, differences = 0, []
    for i, want in enumerate(expected):
        have = got[i] if i < len(got) else None
        if have == want:
            good += 1
            continue
        a, b = (json.dumps(each, indent=1, sort_keys=True).splitlines() for each in (want, have))
        differences.append(f"--- {scenario['name']} request {i + 1}: {server.paths[i] if i < len(got) else ''}")
        differences += difflib.unified_diff(a, b, "kube-apiserver", "this server", n=3, lineterm="")
    return good, "\n".join(differences)


def _wait_for_silence(log: Path) -> None:
    """Wait until the log has stopped growing: requests that are not audited cannot be awaited."""
    size, since = -1, time.monotonic()
    while time.monotonic() - since < 0.3:
        now = log.stat().st_size if log.exists() else 0
        if now != size:
            size, since = now, time.monotonic()
        time.sleep(0.03)
