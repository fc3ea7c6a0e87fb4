"""Steps of a scenario, by their names; the README of the format describes them.

A compared step returns an answer, other steps None. A rejected write returns the error, a wait that timed out reports
it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from tests.contract.player.nodes import BEHAVIOUR
from tests.contract.player.paths import ABSENT, Json, Object, by_json, pick
from tests.contract.player.scene import Scene
from tests.contract.player.server import PATCH_TYPES
from tests.contract.player.templates import manifest

_AFTER_A_TIMEOUT: Final = 2.0  # timeout in seconds of a wait after another has timed out


class Steps:
    def __init__(self, scene: Scene, manifests: Mapping[str, Json]) -> None:
        self._scene = scene
        self._server = scene.stage.server
        self._manifests = manifests
        self._late = False  # a wait has timed out: later ones are short
        self._verbs: dict[str, Callable[[Json], Awaitable[Json]]] = {
            "create": self._create,
            "apply": self._apply,
            "patch": self._patch,
            "delete": self._delete,
            "nodes": scene.add_nodes,
            "script": self._script,
            "wait": self._wait,
            "kubectl": self._kubectl,
            "settle": self._settle,
            "sleep": asyncio.sleep,
            "mark": self._mark,
            "save": self._save,
            "show": self._show,
            "history": self._history,
            "call": self._call,
        }

    async def take(self, verb: str, step: Json) -> Json:
        """Run a step; return the answer, not normalised yet."""
        return await self._verbs[verb](step)

    # Writes

    async def _create(self, entries: Json) -> Json:
        for entry in _several(entries):
            item = manifest(entry, self._manifests, self._scene.variables)
            path = await self._server.path(item["kind"], self._scene.namespace, version=item["apiVersion"])
            if f"/{self._scene.namespace}/" not in path:
                self._scene.cluster_scoped.append(f"{path}/{item['metadata']['name']}")
            code, body = await self._server.call("POST", path, item)
            for _ in range(20):
                if code != 404:  # the resource of a new CRD may be served late
                    break
                await asyncio.sleep(0.1)
                code, body = await self._server.call("POST", path, item)
            if code >= 400:
                return _refusal(code, body)
        return None

    async def _apply(self, entries: Json) -> Json:
        for entry in _several(entries):
            item = manifest(entry, self._manifests, self._scene.variables)
            kind, name = item["kind"], item["metadata"]["name"]
            path = await self._server.path(kind, self._scene.namespace, name, version=item["apiVersion"])
            path += "?fieldManager=plane&force=true"
            code, body = await self._server.call("PATCH", path, item, PATCH_TYPES["apply"])
            if code >= 400:
                return _refusal(code, body)
        return None

    async def _patch(self, step: Object) -> Json:
        sub = step.get("subresource", "")
        path = await self._server.path(step["kind"], self._scene.namespace, step["name"], sub)
        code, body = await self._server.call("PATCH", path, step["body"], PATCH_TYPES[step.get("type", "merge")])
        return _refusal(code, body) if code >= 400 else None

    async def _delete(self, step: Object) -> Json:
        names = {"propagation": "propagationPolicy", "grace": "gracePeriodSeconds"}
        options = {name: step[short] for short, name in names.items() if short in step}
        if "name" in step:
            found = [step["name"]]
        else:
            found = [item["metadata"]["name"] for item in await self._scene.found(step)]
        for name in found:
            if step["kind"] == "Node":
                self._scene.stage.nodes.forget(name)
            path = await self._server.path(step["kind"], self._scene.namespace, name)
            code, body = await self._server.call("DELETE", path, options)
            if code >= 400:
                return _refusal(code, body)
        return None

    async def _script(self, step: Object) -> None:
        """Change the behaviour of Pods; the oldest first if not all are selected."""
        events = self._scene.events()
        seen = [e.object["metadata"]["name"] for e in events if e.kind == "Pod" and e.type == "ADDED"]
        pods = [item["metadata"] for item in await self._scene.found({"kind": "Pod", **step})]
        names = [meta["name"] for meta in pods if not meta.get("deletionTimestamp")]
        names.sort(key=lambda name: seen.index(name) if name in seen else len(seen))
        for name in names[: step.get("count", len(names))]:
            body = {"metadata": {"annotations": {BEHAVIOUR: step["behaviour"]}}}
            path = await self._server.path("Pod", self._scene.namespace, name)
            await self._server.call("PATCH", path, body, PATCH_TYPES["merge"])

    # Waits

    async def _wait(self, step: Object) -> Json:
        async def arrived() -> bool:
            ever = step.get("ever")
            found = self._scene.history().versions(step) if ever else await self._scene.found(step)
            if step.get("gone"):
                return not found
            values = [str(pick(item, step["path"])) if "path" in step else "" for item in found]
            good = sum(value == str(step["is"]) if "is" in step else value != ABSENT for value in values)
            return bool(good == step["count"] if "count" in step else good > 0)

        if await self._scene.until(step["kind"], arrived, self._limit(step)):
            return None
        self._late = True
        return {"timed out": by_json(step)}

    async def _settle(self, seconds: float | None) -> None:
        await self._scene.settle(self._scene.stage.quiet, seconds or 15)

    async def _mark(self, _: None) -> None:
        await self._scene.catch_up()
        self._scene.mark = len(self._scene.events())

    async def _kubectl(self, step: Json) -> Json:
        """Run a command, or repeat it until its output has a text."""
        step = step if isinstance(step, dict) else {"args": step}
        arguments = [str(argument) for argument in step["args"]]
        seconds = step.get("seconds", self._scene.stage.patience)
        end = time.monotonic() + self._limit(step)
        while True:
            kubectl = self._scene.stage.kubectl
            answer = await kubectl.run(arguments, self._scene.namespace, step.get("stdin", ""), seconds)
            if step.get("sort"):  # kubectl requests the logs of several containers in any order
                answer.get("stdout", []).sort()
            if step.get("until", "") in "\n".join(answer.get("stdout", [])):
                return answer
            if time.monotonic() > end:
                self._late = True
                return {"timed out": by_json(step), **answer}
            await asyncio.sleep(0.3)

    def _limit(self, step: Object) -> float:
        seconds: float = step.get("seconds", self._scene.stage.patience)
        return min(seconds, _AFTER_A_TIMEOUT) if self._late else seconds

    # Reads

    async def _save(self, step: Object) -> None:
        found = await self._scene.found(step)
        for name, path in step["as"].items():
            self._scene.variables[name] = pick(found[0], path) if found else ABSENT

    async def _show(self, step: Object) -> Json:
        shown: Object = {}
        for kind, what in step.items():
            wanted = what if isinstance(what, dict) else {"paths": what}
            found = []
            if "name" in wanted:
                for name in _several(wanted["name"]):
                    found += await self._scene.found({"kind": kind, "name": name})
            else:
                found = await self._scene.found({"kind": kind, **wanted})
            if wanted.get("count"):
                shown[kind] = len(found)
            else:
                shown[kind] = [{path: pick(item, path) for path in wanted["paths"]} for item in found]
        return {"shown": shown}

    async def _history(self, step: Object) -> Json:
        await self._scene.catch_up()
        return self._scene.history().answer(step)

    async def _call(self, step: Object) -> Json:
        code, body = await self._server.call(step.get("method", "POST"), step["path"], step.get("body"))
        return {"code": code, "body": {path: pick(body, path) for path in step.get("only", [])}}


def _several(value: Json) -> list[Json]:
    return value if isinstance(value, list) else [value]


def _refusal(code: int, body: Json) -> Object:
    """The answer of a rejected write."""
    return {"refused": code, "reason": body.get("reason"), "message": body.get("message")}
