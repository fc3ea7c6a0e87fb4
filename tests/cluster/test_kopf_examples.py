"""kopf's own examples, unchanged, on `ostinato.kopf`; the calls of their handlers are those that kopf makes.

OSTINATO_KOPF_EXAMPLES names the directory `examples` of a checkout of kopf. `tests/data/handlers/kopf_calls.json` has
the calls that kopf 1.45 made in the same steps on the same server, recorded with `programs/kopf_recorder.py`.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml

from ostinato.api.errors import AlreadyExists
from ostinato.client import Client, Config, MergePatch, Unstructured
from tests.cluster.running import SECONDS

RECORDER = Path(__file__).parent / "programs" / "kopf_recorder.py"
KOPF = json.loads((Path(__file__).parents[1] / "data" / "handlers" / "kopf_calls.json").read_text())
EXAMPLE = Unstructured.of("kopf.dev/v1", "KopfExample")
NAME = "kopf-example-1"

# Calls that kopf makes and Ostinato does not, each with its reason.
MISSING = {
    ("07", "create_fn", 1): "kopf calls the handler again after its sub-handlers; here it ends with them",
}


class Operator:
    """An example in a process of its own, which can be killed and started again."""

    def __init__(self, example: Path, kubeconfig: Path, namespace: str, directory: Path) -> None:
        self._calls = directory / "calls"
        self._calls.touch()
        self._log = directory / "log"
        self._command = [
            *(sys.executable, "-m", "ostinato.cli", "run", str(RECORDER), str(example)),
            *("-n", namespace, "--kubeconfig", str(kubeconfig)),
        ]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        environment = {**os.environ, "KOPF_AS": "ostinato", "KOPF_CALLS": str(self._calls)}
        with self._log.open("a") as log:
            self._process = subprocess.Popen(self._command, env=environment, stdout=log, stderr=log)

    def stop(self, how: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(SECONDS)
            self._process = None

    @property
    def calls(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self._calls.read_text().splitlines()]

    async def made(self, count: int) -> list[dict[str, Any]]:
        """Wait until so many calls were made in all, and return them."""
        await until(lambda: len(self.calls) >= count, lambda: f"{self.calls}\n{self._log.read_text()}")
        return self.calls


async def until(condition: Callable[[], bool], details: Callable[[], str]) -> None:
    for _ in range(SECONDS * 20):
        if condition():
            return
        await asyncio.sleep(0.05)
    raise AssertionError(details())


def expected(number: str, step: str) -> list[dict[str, Any]]:
    calls = KOPF[number].get(step, [])
    return [each for each in calls if (number, each["handler"], each.get("retry")) not in MISSING]


def in_order(calls: list[dict[str, Any]]) -> list[str]:
    return sorted(json.dumps(each, sort_keys=True) for each in calls)


@pytest.mark.skipif("OSTINATO_KOPF_EXAMPLES" not in os.environ, reason="OSTINATO_KOPF_EXAMPLES is not set")
@pytest.mark.parametrize("number", sorted(KOPF))
def test_an_example_of_kopf_makes_the_calls_that_kopf_makes(
    kubeconfig: Path, namespace: str, tmp_path: Path, number: str
) -> None:
    examples = Path(os.environ["OSTINATO_KOPF_EXAMPLES"])
    operator = Operator(next(examples.glob(f"{number}-*")) / "example.py", kubeconfig, namespace, tmp_path)

    async def play(client: Client) -> None:
        with suppress(AlreadyExists):
            await client.create(yaml.safe_load((examples / "crd.yaml").read_text()))
        operator.start()
        total = 0
        for step, act in steps(client, operator, examples).items():
            await act()
            total += len(expected(number, step))
            calls = await operator.made(total)
            assert in_order(calls[total - len(expected(number, step)) :]) == in_order(expected(number, step)), step
            if step == "restarted":
                status = (await client.get(EXAMPLE, NAME)).get("status", {})
                assert {name: each for name, each in status.items() if name != "handlers"} == KOPF[number]["status"]
        for _ in range(SECONDS * 20):
            if await client.get(EXAMPLE, NAME, missing=None) is None:
                break
            await asyncio.sleep(0.05)
        else:
            raise AssertionError("the object was not deleted")
        operator.stop(signal.SIGINT)
        assert len(operator.calls) == total, "no further calls"

    async def main() -> None:
        async with Client.connect(Config.load(path=kubeconfig, namespace=namespace)) as client:
            await play(client)

    try:
        asyncio.run(main())
    finally:
        operator.stop(signal.SIGKILL)


def steps(client: Client, operator: Operator, examples: Path) -> dict[str, Callable[[], Any]]:
    async def created() -> None:
        for _ in range(SECONDS * 20):
            try:
                await client.create(yaml.safe_load((examples / "obj.yaml").read_text()))
            except Exception:  # noqa: BLE001 - the definition is not served yet
                await asyncio.sleep(0.05)
            else:
                return

    async def changed() -> None:
        await client.patch(EXAMPLE, NAME, MergePatch({"spec": {"field": "changed", "items": ["item1", "item3"]}}))

    async def killed() -> None:
        await settled()
        operator.stop(signal.SIGKILL)
        await client.patch(EXAMPLE, NAME, MergePatch({"spec": {"duration": "5m"}}))
        operator.start()

    async def restarted() -> None:
        await settled()
        operator.stop(signal.SIGINT)
        operator.start()
        await settled()

    async def deleted() -> None:
        await client.delete(EXAMPLE, NAME)

    async def settled() -> None:
        """Wait until the last change is handled, so that the next step does not interrupt it."""
        for _ in range(SECONDS * 20):
            found = await client.get(EXAMPLE, NAME)
            records = [*(found.get("status") or {}).get("handlers", {}).values()]
            if not records or all(
                set(each) == {"uid", "lastHandled"} and json.loads(each["lastHandled"])["spec"] == found["spec"]
                for each in records
            ):
                return
            await asyncio.sleep(0.05)
        raise AssertionError("the change was not handled")

    return {"created": created, "changed": changed, "killed": killed, "restarted": restarted, "deleted": deleted}
