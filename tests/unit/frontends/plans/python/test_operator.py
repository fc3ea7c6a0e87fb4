"""Plans in Python: generators that are run again in each pass, with recorded results."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from tests.unit.frontends.plans.conftest import Reach

from ostinato import Ge, ObjectMeta, Struct
from ostinato.client import MergePatch
from ostinato.client.views import Unstructured
from ostinato.frontends.plans import (
    PlanGenerator,
    PlanOperator,
    Triggers,
    apply,
    call,
    delete,
    parallel,
    phase,
    serial,
    step,
    wait_for,
)
from ostinato.frontends.plans.decisions.requests import Request, annotation_of
from ostinato.kinds.core_v1 import ConfigMap

CALLS: list[str] = []
OPEN = {"gate": False}


def config(name: str, **data: str) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=name), data=data)


async def token(seed: str) -> dict[str, str]:
    CALLS.append(seed)
    return {"token": f"{seed}-{len(CALLS)}"}


def gate() -> bool | str:
    return OPEN["gate"] or "the gate is closed"


class Store(PlanOperator, group="example.dev", release="1.0.0"):
    class Params(Struct):
        size: Annotated[int, Ge(1), Triggers("scale")] = 2
        text: str = "hello"

    def deploy(self, p: Store.Params) -> PlanGenerator:
        made = yield phase("secrets", step("token", call(token, self.name)))
        yield phase("files", parallel(*(apply(config(f"{self.name}-{n}", text=p.text)) for n in range(p.size))))
        waiting = step("gate", call(token, "again"), wait_for(gate))
        yield phase("gate", serial(waiting, apply(config(f"{self.name}-token", **made["token"]))))

    def scale(self, p: Store.Params) -> PlanGenerator:
        yield phase("files", parallel(*(apply(config(f"{self.name}-{n}", text=p.text)) for n in range(p.size))))

    def backup(self, p: Store.Params) -> PlanGenerator:
        yield phase("backup", apply(config(f"{self.name}-backup", target=self.arguments["target"])))

    def broken(self, p: Store.Params) -> PlanGenerator:
        yield phase("first", delete(config("none")))
        raise RuntimeError("no more")


KIND = Unstructured.of("example.dev/v1", "Store")


async def test_a_plan_in_python_runs_in_passes_and_calls_once(
    cluster: Any, manager: Any, client: Any, clock: Any, reach: Reach, eventually: Any
) -> None:
    CALLS.clear()
    OPEN["gate"] = False
    await manager.start(Store().controller())
    await client.create(
        {"apiVersion": "example.dev/v1", "kind": "Store", "metadata": {"name": "s", "namespace": "default"}, "spec": {}}
    )

    async def closed() -> Any:
        found = await client.get(KIND, "s")
        phases = (found.get("status") or {}).get("planStatus", {}).get("deploy", {}).get("phases", [])
        return len(phases) == 3 and phases

    phases = await eventually(closed)
    assert [each["status"] for each in phases] == ["COMPLETE", "COMPLETE", "IN_PROGRESS"]
    assert phases[2]["steps"][0] == {"name": "gate", "status": "IN_PROGRESS", "message": "the gate is closed"}
    await clock.advance(30)  # passes that wait
    OPEN["gate"] = True
    await reach("s", "deploy", "COMPLETE", KIND)
    assert CALLS == ["s", "again"]
    assert (await client.get(ConfigMap, "s-token")).data == {"token": "s-1"}
    await client.patch(KIND, "s", MergePatch({"spec": {"size": 3}}))
    await reach("s", "scale", "COMPLETE", KIND)
    await client.get(ConfigMap, "s-2")
    await client.delete(ConfigMap, "s-token")
    assert await eventually(lambda: client.get(ConfigMap, "s-token", missing=None))
    run = Request(id="1", verb="run", plan="backup", arguments={"target": "disk"})
    await client.patch(KIND, "s", MergePatch({"metadata": {"annotations": annotation_of(run)}}))
    await reach("s", "backup", "COMPLETE", KIND)
    assert (await client.get(ConfigMap, "s-backup")).data == {"target": "disk"}
    run = Request(id="2", verb="run", plan="broken")
    await client.patch(KIND, "s", MergePatch({"metadata": {"annotations": annotation_of(run)}}))
    found = await reach("s", "broken", "FATAL_ERROR", KIND)
    assert found["status"]["planStatus"]["broken"]["message"] == "plan broken: RuntimeError: no more"


def test_mistakes_are_reported_at_the_definition() -> None:
    with pytest.raises(TypeError, match="needs a group"):
        type("Bad", (PlanOperator,), {})
    with pytest.raises(TypeError, match="needs the plan deploy"):
        type("Bad", (PlanOperator,), {}, group="example.dev")  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="give either steps, or one serial"):
        phase("x", serial(), parallel())
    with pytest.raises(TypeError, match="is not a step"):
        serial("apply")  # type: ignore[arg-type]
    names = [each.name for each in parallel(apply(config("a")), apply(config("a"))).steps]
    assert names == ["apply-configmap-a", "apply-configmap-a-2"]
