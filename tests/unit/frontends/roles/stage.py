"""What tests of roles share: a kind, a role, and a runner that plays Python functions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from ostinato.client import Client
from ostinato.client.views import Unstructured
from ostinato.frontends.roles.events import AnsibleEvent, Outcome
from ostinato.frontends.roles.runner import EventListener, Job

Json = dict[str, Any]

MEMCACHED = Unstructured.of("cache.example.com/v1alpha1", "Memcached")
CONFIG_MAP = Unstructured.of("v1", "ConfigMap")

DEFINITION: Json = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "memcacheds.cache.example.com"},
    "spec": {
        "group": "cache.example.com",
        "names": {"kind": "Memcached", "listKind": "MemcachedList", "plural": "memcacheds", "singular": "memcached"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1alpha1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}


async def install(client: Client) -> None:
    await client.create(DEFINITION)
    await client.wait_for(
        Unstructured.of("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
        "memcacheds.cache.example.com",
        "Established",
        timeout=10,
    )


def memcached(name: str = "a", **spec: Any) -> Json:
    return {
        "apiVersion": "cache.example.com/v1alpha1",
        "kind": "Memcached",
        "metadata": {"name": name},
        "spec": spec,
    }


def make_role(directory: Path, tasks: str, name: str = "memcached") -> Path:
    """Write a role with these tasks, and return its directory."""
    role = directory / "roles" / name
    (role / "tasks").mkdir(parents=True)
    (role / "tasks" / "main.yml").write_text(tasks)
    return role


def conditions(instance: Json) -> dict[str, Json]:
    return {each["type"]: each for each in instance.get("status", {}).get("conditions", [])}


Play = Callable[[Job], Awaitable[None]]


class PythonRunner:
    """Plays a coroutine function in place of Ansible, which cannot run in virtual time. An error is a failed task."""

    def __init__(self, play: Play) -> None:
        self.jobs: list[Job] = []
        self.period = ""
        self._play = play

    async def play(self, job: Job, listener: EventListener) -> Outcome:
        self.jobs.append(job)
        outcome, failures = Outcome(), 0
        try:
            await self._play(job)
        except Exception as error:  # noqa: BLE001
            failures = 1
            failure = {"task": "play", "res": {"msg": str(error)}}
            _emit(AnsibleEvent(event="runner_on_failed", event_data=failure), outcome, listener)
        if self.period:
            data = {"task_action": "operator_sdk.util.requeue_after", "res": {"period": self.period}}
            _emit(AnsibleEvent(event="runner_on_ok", event_data=data), outcome, listener)
        stats = {"ok": {"localhost": 3}, "failures": {"localhost": failures}}
        end = AnsibleEvent(event="playbook_on_stats", event_data=stats, created="2026-01-01T00:00:00.5+00:00")
        _emit(end, outcome, listener)
        return outcome


def _emit(event: AnsibleEvent, outcome: Outcome, listener: EventListener) -> None:
    outcome.add(event)
    listener(event)
