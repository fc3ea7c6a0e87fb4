"""Runs test directories of kuttl, the test tool of KUDO: numbered steps of objects and commands, with assertions.

- `NN-NAME.yaml` has objects that are created or patched, or a TestStep with commands. `NN-assert.yaml` has objects of
  which every field must be found in the cluster, `NN-errors.yaml` those that must not be found.
- A state of an instance counts when it was there once since the step began: tests assert states that do not last.
"""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from ostinato.api import accessors as access
from ostinato.api.meta import ObjectMeta
from ostinato.client import Client, Config, MergePatch, NoSuchKind, Unstructured
from ostinato.kinds.core_v1 import Namespace

Json = dict[str, Any]
SECONDS = 60.0
POLL = 0.02
SETTLED = 15  # reads of the instances, a tenth of a second apart
_STEP = re.compile(r"(\d+)-(.+)\.yaml")
_KUTTL = "kuttl.dev/v1beta1"
INSTANCE = Unstructured.of("kudo.dev/v1beta1", "Instance")


class KuttlTest:
    def __init__(self, directory: Path, kubeconfig: Path, namespace: str, environment: Mapping[str, str]) -> None:
        self._directory = directory
        self._kubeconfig = kubeconfig
        self._namespace = namespace
        self._environment = environment

    def run(self, *, settle: bool = False) -> list[Json]:
        """Run all steps; AssertionError names the step. Returns the instances after each step.

        `settle`: wait after each step until the instances have not changed for a second. Defaults to False.
        """
        return asyncio.run(self._run(settle=settle))

    async def _run(self, *, settle: bool) -> list[Json]:
        seen: list[Json] = []
        async with Client.connect(Config.load(path=self._kubeconfig), field_manager="kuttl") as client:
            self._client = client.in_namespace(self._namespace)
            await self._client.create(Namespace(metadata=ObjectMeta(name=self._namespace)))
            for number, files in sorted(self._steps().items()):
                try:
                    await self._step(files)
                except AssertionError as error:
                    raise AssertionError(f"{self._directory.name}, step {number}: {error}") from None
                seen.append({"step": number, "instances": await (self._settled() if settle else self._instances())})
        return seen

    async def _settled(self) -> list[Json]:
        """Return the instances when their plans have not changed for a second."""
        states, unchanged = None, 0
        while unchanged < SETTLED:
            instances = await self._instances()
            found = [plan_states(each) for each in instances]
            unchanged = unchanged + 1 if found == states else 0
            states = found
            await asyncio.sleep(0.1)
        return instances

    def _steps(self) -> dict[int, dict[str, list[Json]]]:
        found: dict[int, dict[str, list[Json]]] = {}
        for path in sorted(self._directory.glob("*.yaml")):
            if match := _STEP.fullmatch(path.name):
                kind = match[2] if match[2] in ("assert", "errors") else "do"
                documents = [each for each in yaml.safe_load_all(path.read_text()) if each]
                found.setdefault(int(match[1]), {}).setdefault(kind, []).extend(documents)
        return found

    async def _step(self, files: Mapping[str, list[Json]]) -> None:
        self._seen: list[Json] = []
        before = {access.resource_version(each) for each in await self._instances()}
        watching = asyncio.ensure_future(self._watch(before))
        try:
            await self._play(files)
        finally:
            watching.cancel()

    async def _watch(self, before: set[str]) -> None:
        """Collect the states of instances that follow, also those that do not last."""
        async for event in self._client.watch(INSTANCE, namespace=self._namespace):
            if access.resource_version(event.object) not in before:
                self._seen.append(event.object)

    async def _play(self, files: Mapping[str, list[Json]]) -> None:
        for document in files.get("do", ()):
            if document["apiVersion"] == _KUTTL:
                for command in document.get("commands") or ():
                    await asyncio.to_thread(self._command, command)
            else:
                await self._apply(document)
        deadline = asyncio.get_running_loop().time() + SECONDS
        wanted = list(files.get("assert", ()))
        refused = files.get("errors", ())
        while True:
            wanted = [each for each in wanted if not await self._is_found(each)]
            present = [] if wanted else [each for each in refused if await self._is_found(each, now=True)]
            if not wanted and not present:
                return
            if asyncio.get_running_loop().time() > deadline:
                break
            await asyncio.sleep(POLL)
        instances = yaml.safe_dump(await self._instances())
        raise AssertionError(f"not found: {wanted}\nfound, but should not be: {present}\ninstances:\n{instances}")

    def _command(self, command: Json) -> None:
        environment = {**self._environment, "NAMESPACE": self._namespace, "KUBECONFIG": str(self._kubeconfig)}
        words: Any = command.get("script") or shlex.split(command["command"])
        if command.get("namespaced"):
            words += ["--namespace", self._namespace]
        done = subprocess.run(
            words, check=False, shell=isinstance(words, str), cwd=self._directory, env={**os.environ, **environment},
            capture_output=True, text=True, timeout=SECONDS,
        )  # fmt: skip
        if done.returncode and not command.get("ignoreFailure"):
            raise AssertionError(f"{words} exited with {done.returncode}: {done.stdout}{done.stderr}")

    async def _apply(self, document: Json) -> None:
        view = Unstructured.of(document["apiVersion"], document["kind"])
        namespace = document["metadata"].get("namespace") or self._namespace
        name = document["metadata"]["name"]
        if await self._client.get(view, name, namespace=namespace, missing=None) is None:
            await self._client.create({**document, "metadata": {**document["metadata"], "namespace": namespace}})
        else:
            await self._client.patch(view, name, MergePatch(document), namespace=namespace)

    async def _is_found(self, document: Json, *, now: bool = False) -> bool:
        name = (document.get("metadata") or {}).get("name", "")
        past = [] if now or document["kind"] != "Instance" else self._seen
        return any(contains(each, document) for each in past if name in ("", access.name(each))) or any(
            [contains(each, document) async for each in self._candidates(document, name)]
        )

    async def _candidates(self, document: Json, name: str) -> Any:
        view = Unstructured.of(document["apiVersion"], document["kind"])
        namespace = (document.get("metadata") or {}).get("namespace") or self._namespace
        try:
            info = await self._client.mapper.kind(view.gvk)
            async for each in self._client.list(view, namespace=namespace if info.namespaced else ""):
                if name in ("", access.name(each)):
                    yield each
        except NoSuchKind:
            newer = _served_as(document["apiVersion"])
            if newer:
                async for each in self._candidates({**document, "apiVersion": newer}, name):
                    yield {**each, "apiVersion": document["apiVersion"]}

    async def _instances(self) -> list[Json]:
        return [each async for each in self._client.list(INSTANCE, namespace=self._namespace)]


def plan_states(instance: Json) -> Json:
    """Return the states of the plans, phases and steps of an instance, without times, uids and messages."""
    plans = (instance.get("status") or {}).get("planStatus") or {}
    return {
        name: {
            "status": plan.get("status"),
            "phases": [
                (phase["name"], phase["status"], [(step["name"], step["status"]) for step in phase.get("steps") or ()])
                for phase in plan.get("phases") or ()
            ],
        }
        for name, plan in plans.items()
    }


def _served_as(api_version: str) -> str:
    """Return the version in which a server serves what a test names in one that is gone."""
    return {"apiextensions.k8s.io/v1beta1": "apiextensions.k8s.io/v1"}.get(api_version, "")


def contains(actual: Any, wanted: Any) -> bool:
    """Return whether all wanted fields are found; lists are compared element by element."""
    if isinstance(wanted, dict):
        return isinstance(actual, dict) and all(
            name in actual and contains(actual[name], each) for name, each in wanted.items()
        )
    if isinstance(wanted, list):
        return (
            isinstance(actual, list)
            and len(actual) == len(wanted)
            and all(contains(have, each) for have, each in zip(actual, wanted, strict=True))
        )
    return bool(actual == wanted)


def directories(root: Path) -> Iterator[Path]:
    """Return the test directories below a directory."""
    return (path for path in sorted(root.iterdir()) if path.is_dir() and any(path.glob("*-*.yaml")))
