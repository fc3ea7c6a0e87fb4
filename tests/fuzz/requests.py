"""Malformed requests to a server in this process: each is answered, none with a fault of the server's own.

    PYTHONPATH=src python -m tests.fuzz.requests --requests 30000 --seed 1

A fault is an answer that the server logs as its own error, an exception, or an answer that takes too long.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import logging
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from ostinato.api.protobuf import EncodeError, encode
from ostinato.server.core import Server
from ostinato.server.request import Request, Response, Stream, User
from ostinato.server.resources.resource import Resource
from ostinato.server.store.log_memory import MemoryLog
from ostinato.world import Simulation
from tests.fuzz.corpus import Scenario, Step, scenarios
from tests.fuzz.mutate import SCALARS, Mutator

SAMPLES = Path(__file__).parents[1] / "data" / "kinds" / "go_objects.json"
SLOW = 5.0  # seconds that no request may take
_PATCHES = (
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
)
_MEDIA = (
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
    "application/cbor",
    "text/plain",
    "",
)
_PARAMETERS = (
    "dryRun",
    "fieldManager",
    "fieldValidation",
    "force",
    "limit",
    "continue",
    "labelSelector",
    "fieldSelector",
    "resourceVersion",
    "resourceVersionMatch",
    "sendInitialEvents",
    "allowWatchBookmarks",
    "timeoutSeconds",
    "timeout",
    "pretty",
    "gracePeriodSeconds",
    "propagationPolicy",
    "orphanDependents",
    "includeObject",
    "watch",
)
_ACCEPTED = (
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
    "application/json;as=Table;v=v1;g=meta.k8s.io",
    "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
    "application/json;as=\x00;q=1e999,,;;=",
    "*/*;q=nan",
)


_HEADERS = {"authorization": "Bearer admin", "user-agent": "fuzz/1"}


class Sent(NamedTuple):
    """What was sent, as a report can show it."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes


class Report:
    """What came of it."""

    def __init__(self) -> None:
        self.answers: Counter[int] = Counter()
        self.faults: list[str] = []
        self.failures: Counter[str] = Counter()  # messages of answers with a 500
        self.slowest = 0.0

    @property
    def requests(self) -> int:
        return sum(self.answers.values())


class _Errors(logging.Handler):
    """What the server logs as its own fault."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.seen: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.seen.append(logging.Formatter().format(record))


class RequestFuzzer:
    """Sends requests that are nearly right, about every resource that the server has."""

    def __init__(self, server: Server, seed: object) -> None:
        self.server = server
        self.report = Report()
        self._mutator = Mutator(seed)
        self._rng = self._mutator.rng
        samples = json.loads(SAMPLES.read_text())
        self._samples: dict[tuple[str, str, str], list[Any]] = {}
        for each in samples:
            key = each["group"], each["version"], each["kind"]
            self._samples.setdefault(key, []).extend([each["empty"], each["filled"]])
        self._resources = sorted(server.registry, key=lambda resource: str(resource.gvr))
        self._errors = _Errors()

    async def run(self, count: int) -> Report:
        """A quarter of the requests is about any resource; the others follow recorded conversations."""
        logger = logging.getLogger("ostinato")
        logger.addHandler(self._errors)
        try:
            while self.report.requests < count:
                scenario = self._rng.choice(scenarios())
                await self._prepare(scenario)
                for step in scenario.steps:
                    for sent in self._around(step):
                        await self._send(sent)
                    await self._send(self._request())
        finally:
            logger.removeHandler(self._errors)
        return self.report

    async def _prepare(self, scenario: Scenario) -> None:
        found = re.search(r"fuzz-[0-9]+", str(scenario.steps))
        if found is None:
            return
        for path, name in (
            ("/api/v1/namespaces", found[0]),
            (f"/api/v1/namespaces/{found[0]}/serviceaccounts", "default"),
        ):
            body = json.dumps({"metadata": {"name": name}}).encode()
            await self._send(Sent("POST", path, {**_HEADERS, "content-type": "application/json"}, body))

    def _around(self, step: Step) -> Iterator[Sent]:
        """A step with something wrong, then as it is."""
        rng, mutator = self._rng, self._mutator
        headers = {**_HEADERS, **({"content-type": step.media} if step.media else {})}
        for _ in range(2):
            target, body, value = step.target, step.body, step.body
            if value is None or rng.random() < 0.1:
                target = "/" + mutator.data(target.encode(), 2).decode("latin-1").lstrip("/")
            if isinstance(value, str):
                text = mutator.data(value.encode("utf-8", "surrogatepass"), 3)
            elif value is None:
                text = b""
            else:
                value = mutator.metadata(value) if rng.random() < 0.15 else mutator.value(value, 2)
                text = self._spoilt(mutator.text(value))
            yield Sent(step.method, target, headers, text)
        text = (
            body.encode("utf-8", "surrogatepass")
            if isinstance(body, str)
            else b""
            if body is None
            else json.dumps(body).encode()
        )
        yield Sent(step.method, step.target, headers, text)

    async def _send(self, sent: Sent) -> None:
        path, _, query = sent.target.partition("?")
        request = Request(sent.method, path, query, sent.headers, body=sent.body)
        began = time.perf_counter()
        try:
            early = self.server.handle_now(request)
            answer = await self.server.handle(Request(sent.method, path, query, sent.headers, body=sent.body))
        except Exception as error:  # noqa: BLE001 - what is raised is reported
            self._fault(sent, f"{type(error).__name__}: {error}")
            return
        if isinstance(answer, Stream):
            await answer.chunks.aclose()  # type: ignore[attr-defined]
        elif isinstance(answer, Response) and answer.status == 500 and "json" in answer.content_type:
            self.report.failures[json.loads(answer.body)["message"][:200]] += 1
        if early is not None and isinstance(answer, Response):
            assert early.status == answer.status
        took = time.perf_counter() - began
        self.report.answers[answer.status] += 1
        self.report.slowest = max(self.report.slowest, took)
        if took > SLOW:
            self._fault(sent, f"took {took:.1f} seconds")
        for text in self._errors.seen:
            self._fault(sent, text)
        self._errors.seen.clear()

    def _fault(self, sent: Sent, what: str) -> None:
        shown = f"{sent.method} {sent.target[:300]} {sent.headers} {sent.body[:2000]!r}"
        self.report.faults.append(f"{shown}\n{what}")

    # Requests

    def _request(self) -> Sent:
        rng, resource = self._rng, self._rng.choice(self._resources)
        method = rng.choice(("POST", "POST", "POST", "PUT", "PATCH", "PATCH", "DELETE", "GET", "HEAD", "FOO"))
        path = self._path(resource, method)
        if rng.random() < 0.05:
            path = "/" + self._mutator.data(path.encode(), 3).decode("latin-1").lstrip("/")
        headers = dict(_HEADERS)
        if rng.random() < 0.3:
            headers["accept"] = rng.choice(_ACCEPTED)
        body = b""
        if method != "GET" and rng.random() < 0.95:
            media, body = self._body(resource, method)
            if media:
                headers["content-type"] = media
        return Sent(method, path + self._query(), headers, body)

    def _path(self, resource: Resource, method: str) -> str:
        rng, gvr = self._rng, resource.gvr
        path = f"/apis/{gvr.group}/{gvr.version}" if gvr.group else f"/api/{gvr.version}"
        if resource.namespaced and rng.random() < 0.95:
            path += f"/namespaces/{rng.choice(('default', 'default', 'absent', '..'))}"
        path += f"/{gvr.resource}"
        if method != "POST" or rng.random() < 0.1:
            path += f"/{quote(str(rng.choice(('a', 'b', 'a', 'é', *SCALARS))), errors='surrogatepass')[:200]}"
        if resource.subresources and rng.random() < 0.25:
            path += f"/{rng.choice(list(resource.subresources))}"
        return path

    def _query(self) -> str:
        rng = self._rng
        if rng.random() < 0.5:
            return ""
        values = (
            str(value) for value in rng.choices((*SCALARS, "All", "true", "Strict", "a=b", "metadata.name=a"), k=3)
        )
        pairs = [f"{rng.choice(_PARAMETERS)}={quote(value, errors='surrogatepass')[:400]}" for value in values]
        return "?" + "&".join(pair for pair in pairs[: rng.randint(1, 3)] if not pair.startswith("timeout"))

    def _body(self, resource: Resource, method: str) -> tuple[str, bytes]:
        rng, gvk = self._rng, resource.gvk
        samples = self._samples.get((gvk.group, gvk.version, gvk.kind), [{}])
        value = rng.choice(samples)
        value = {**value, "apiVersion": gvk.api_version, "kind": gvk.kind}
        if rng.random() < 0.8:
            value = {**value, "metadata": {"name": rng.choice(("a", "b"))}}
        value = self._mutator.metadata(value) if rng.random() < 0.4 else self._mutator.value(value)
        if method == "PATCH" and rng.random() < 0.9:
            media = rng.choice(_PATCHES)
            if media == _PATCHES[0]:
                value = self._mutator.value(
                    _operations(rng.choice(("/metadata/labels", "/spec", "", "/a~1b/~", "-")), value)
                )
            return media, self._spoilt(self._mutator.text(value))
        media = rng.choice(_MEDIA) if rng.random() < 0.4 else _MEDIA[0]
        if "protobuf" in media:
            try:
                return media, self._spoilt(encode(value))
            except (EncodeError, ValueError, TypeError, KeyError, AttributeError, OverflowError):
                return media, self._mutator.data(b"k8s\x00\n\x00")
        return media, self._spoilt(self._mutator.text(value))

    def _spoilt(self, data: bytes) -> bytes:
        return self._mutator.data(data) if self._rng.random() < 0.15 else data


def _operations(path: str, value: Any) -> Any:
    return [
        {"op": "add", "path": path, "value": value},
        {"op": "test", "path": f"{path}/0", "value": None},
        {"op": "move", "from": path, "path": "/metadata/annotations"},
        {"op": "copy", "from": "/metadata", "path": "/metadata/labels"},
        {"op": "remove", "path": "/metadata/name"},
        {"op": "replace", "path": "/metadata", "value": {}},
    ]


DEFINITION = {
    "metadata": {"name": "fuzzes.fuzz.example"},
    "spec": {
        "group": "fuzz.example",
        "scope": "Namespaced",
        "names": {"plural": "fuzzes", "kind": "Fuzz"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {
                    "status": {},
                    "scale": {"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n"},
                },
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {
                                    "n": {"type": "integer", "minimum": 0, "default": 1},
                                    "text": {"type": "string", "pattern": "^(a+)+$", "maxLength": 100},
                                    "when": {"type": "string", "format": "date-time"},
                                    "either": {"x-kubernetes-int-or-string": True},
                                    "items": {
                                        "type": "array",
                                        "items": {
                                            "type": "object",
                                            "properties": {"k": {"type": "string"}},
                                            "required": ["k"],
                                        },
                                        "x-kubernetes-list-type": "map",
                                        "x-kubernetes-list-map-keys": ["k"],
                                        "maxItems": 5,
                                    },
                                    "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                                    "embedded": {
                                        "type": "object",
                                        "x-kubernetes-embedded-resource": True,
                                        "x-kubernetes-preserve-unknown-fields": True,
                                    },
                                },
                                "x-kubernetes-validations": [{"rule": "!has(self.text) || self.text.size() < 50"}],
                            },
                            "status": {"type": "object", "properties": {"n": {"type": "integer"}}},
                        },
                    }
                },
            }
        ],
    },
}


async def started(world: Simulation) -> Server:
    """A server with a custom resource, and a few objects to update."""
    server = Server(world, MemoryLog())
    server.authenticator.add("admin", User("admin", "u-1", ("system:masters",)))
    await server.start()
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    objects: list[tuple[str, Any]] = [
        (definitions, DEFINITION),
        ("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}}),
        ("/api/v1/nodes", {"metadata": {"name": "a"}}),
        ("/api/v1/namespaces/default/configmaps", {"metadata": {"name": "a"}}),
        (
            "/api/v1/namespaces/default/pods",
            {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
        ),
        (
            "/apis/fuzz.example/v1/namespaces/default/fuzzes",
            {"apiVersion": "fuzz.example/v1", "kind": "Fuzz", "metadata": {"name": "a"}, "spec": {"n": 1}},
        ),
    ]
    for path, value in objects:
        headers = {"authorization": "Bearer admin", "content-type": "application/json"}
        answer = await server.handle(Request("POST", path, headers=headers, body=json.dumps(value).encode()))
        assert answer.status in (201, 409), (path, answer.status)
    return server


def fuzz(count: int, seed: object) -> Report:
    """So many requests to a server of their own. Its memory may grow by what it stores, not by what it refuses."""
    world = Simulation(seed=1)
    reports: list[Report] = []

    async def main() -> None:
        server = await started(world)
        tasks = len(asyncio.all_tasks())
        report = await RequestFuzzer(server, seed).run(count)
        reports.append(report)
        gc.collect()
        await asyncio.sleep(0)
        left = len(asyncio.all_tasks()) - tasks
        if left > 0:
            report.faults.append(f"{left} tasks were left behind: {[task.get_name() for task in asyncio.all_tasks()]}")
        await server.close()

    world.run(main())
    return reports[0]


def main() -> None:
    parser = argparse.ArgumentParser(description="send malformed requests to a server in this process")
    parser.add_argument("--requests", type=int, default=30_000)
    parser.add_argument("--seed", default="1")
    options = parser.parse_args()
    report = fuzz(options.requests, options.seed)
    answers = ", ".join(f"{status}: {count}" for status, count in sorted(report.answers.items()))
    print(f"{report.requests} requests ({answers}); slowest {report.slowest:.2f} s; {len(report.faults)} faults")
    for message, times in report.failures.most_common(40):
        print(f"500 {times} times: {message}")
    for fault in report.faults[:20]:
        print(fault, "\n")
    sys.exit(1 if report.faults else 0)


if __name__ == "__main__":
    main()
