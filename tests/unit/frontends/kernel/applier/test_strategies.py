"""Update strategies, and the gate of rolling updates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from tests.stage.controllers import ControllerStage, staged
from tests.unit.frontends.kernel.applier.sets import CONFIG_MAP, Json, Sets, actions, config_map, held, sets

from ostinato.api.gvk import GroupKind
from ostinato.client import MergePatch
from ostinato.client.transport.protocol import Request
from ostinato.controllers import Readiness
from ostinato.frontends.kernel.applier import Strategy, next_in_roll
from ostinato.kinds.core_v1 import ConfigMap

READY = Readiness("Current", "ready")
WAITING = Readiness("InProgress", "no")


def by_annotation(instance: Json) -> Readiness:
    """A ConfigMap is ready unless its annotation says otherwise."""
    return WAITING if "broken" in (instance["metadata"].get("annotations") or {}) else READY


async def values(stage: ControllerStage) -> dict[str, Any]:
    found = await stage.user.list(ConfigMap, namespace="default")
    return {each.metadata.name: each.data["key"] for each in found if "key" in each.data}


def three(key: str, **more: str) -> list[Json]:
    return [config_map(name, key=key, **more) for name in "abc"]


async def started(stage: ControllerStage, key: str = "1") -> Sets:
    made = await sets(stage, CONFIG_MAP)
    await made.apply(*three(key))
    return made


@staged
async def test_on_delete_changes_nothing_until_the_object_is_deleted(stage: ControllerStage) -> None:
    made = await started(stage)
    outcome = await made.apply(*three("2"), method="OnDelete")
    assert outcome.is_complete
    assert not outcome.has_changes
    assert await values(stage) == {"a": "1", "b": "1", "c": "1"}
    await stage.user.delete(ConfigMap, "b")
    await stage.settle()
    await made.apply(*three("2"), method="OnDelete")
    assert await values(stage) == {"a": "1", "b": "2", "c": "1"}


@staged
async def test_recreate_deletes_what_differs_and_creates_it_when_it_is_gone(stage: ControllerStage) -> None:
    made = await started(stage)
    before = await stage.user.get(ConfigMap, "a")
    outcome = await made.apply(config_map("a", key="2"), *three("1")[1:], method="Recreate")
    assert actions(outcome) == ["recreate ConfigMap default/a", "none ConfigMap default/b", "none ConfigMap default/c"]
    assert held(outcome) == ["ConfigMap default/a: deleted; created again when it is gone"]
    await stage.settle()
    outcome = await made.apply(config_map("a", key="2"), *three("1")[1:], method="Recreate")
    assert actions(outcome)[0] == "create ConfigMap default/a"
    assert outcome.is_complete
    assert (await stage.user.get(ConfigMap, "a")).metadata.uid != before.metadata.uid


@pytest.mark.parametrize("method", ["Recreate", "RollingRecreate", "RollingInPlace"])
def test_what_others_change_meanwhile_is_not_a_difference(method: str) -> None:
    @staged
    async def play(stage: ControllerStage) -> None:
        await started(stage)
        again = await sets(stage, CONFIG_MAP)  # remembers nothing
        numbers = iter(range(4))

        async def change(request: Request) -> None:
            """Change the object between the read and the dry run that it is compared with."""
            number = next(numbers, None) if "dryRun" in request.target else None
            if number is not None:
                change = {"metadata": {"annotations": {"theirs": str(number)}}}
                await stage.user.patch(ConfigMap, request.path.rpartition("/")[2], MergePatch(change))

        stage.transport.before = change
        outcome = await again.apply(*three("1"), method=method)
        assert outcome.is_complete
        assert len(outcome.applied) == 3

    play()


@staged
async def test_recreate_replaces_an_object_whose_field_is_immutable(stage: ControllerStage) -> None:
    made = await sets(stage)
    fixed = {**config_map("a", key="1"), "immutable": True}
    await made.apply(fixed)
    assert [each.error.status.reason for each in (await made.apply(config_map("a", key="2"))).errors] == ["Invalid"]  # type: ignore[attr-defined]
    await made.apply(config_map("a", key="2"), method="Recreate")
    await made.apply(config_map("a", key="2"), method="Recreate")
    assert await values(stage) == {"a": "2"}


@staged
async def test_a_field_that_is_no_longer_desired_makes_an_object_outdated(stage: ControllerStage) -> None:
    made = await sets(stage)
    await made.apply(*three("1", more="x"))
    again = await sets(stage)  # remembers nothing
    outcome = await again.apply(*three("1"), method="RollingInPlace")
    assert actions(outcome)[0] == "update ConfigMap default/a"
    assert len(held(outcome)) == 2


@pytest.mark.parametrize("method", ["RollingInPlace", "RollingRecreate"])
def test_a_rolling_update_changes_one_object_at_a_time(method: str) -> None:
    @staged
    async def play(stage: ControllerStage) -> None:
        made = await started(stage)
        seen = []
        for _ in range(8):
            outcome = await made.apply(*three("2"), method=method, gate=[by_annotation])
            await stage.settle()
            now = [{**dict.fromkeys("abc", "-"), **await values(stage)}[name] for name in "abc"]
            if not seen or seen[-1] != now:
                seen.append(now)
        assert outcome.is_complete
        if method == "RollingInPlace":
            assert seen == [["2", "1", "1"], ["2", "2", "1"], ["2", "2", "2"]]
        else:
            steps = [
                ["-", "1", "1"],
                ["2", "1", "1"],
                ["2", "-", "1"],
                ["2", "2", "1"],
                ["2", "2", "-"],
                ["2", "2", "2"],
            ]
            assert seen == steps

    play()


@staged
async def test_a_rolling_update_halts_while_an_updated_object_is_not_ready(stage: ControllerStage) -> None:
    made = await started(stage)
    await made.apply(*three("2"), method="RollingInPlace", gate=[by_annotation])
    await stage.user.patch(ConfigMap, "a", MergePatch({"metadata": {"annotations": {"broken": "yes"}}}))
    await stage.settle()
    for _ in range(3):
        outcome = await made.apply(*three("2"), method="RollingInPlace", gate=[by_annotation])
    assert held(outcome) == [
        "ConfigMap default/a: InProgress: no",
        "ConfigMap default/b: its update waits for ConfigMap default/a: InProgress: no",
        "ConfigMap default/c: its update waits for ConfigMap default/a: InProgress: no",
    ]
    assert await values(stage) == {"a": "2", "b": "1", "c": "1"}
    await stage.user.patch(ConfigMap, "a", MergePatch({"metadata": {"annotations": None}}))
    await stage.settle()
    await made.apply(*three("2"), method="RollingInPlace", gate=[by_annotation])
    assert await values(stage) == {"a": "2", "b": "2", "c": "1"}


@staged
async def test_a_halted_rolling_update_is_repaired_by_another_desired_state(stage: ControllerStage) -> None:
    made = await started(stage)

    def not_two(instance: Json) -> Readiness:
        return WAITING if instance["data"]["key"] == "2" else READY

    for _ in range(3):
        await made.apply(*three("2"), method="RollingInPlace", gate=[not_two])
        await stage.settle()
    assert await values(stage) == {"a": "2", "b": "1", "c": "1"}
    outcome = await made.apply(*three("1"), method="RollingInPlace", gate=[not_two])
    assert await values(stage) == {"a": "1", "b": "1", "c": "1"}
    assert outcome.is_complete


@staged
async def test_a_new_object_is_created_while_a_rolling_update_is_halted(stage: ControllerStage) -> None:
    made = await started(stage)
    await made.apply(*three("2"), method="RollingInPlace", gate=[lambda _: WAITING])
    await stage.settle()
    await made.apply(*three("2"), config_map("d", key="2"), method="RollingInPlace", gate=[lambda _: WAITING])
    assert await values(stage) == {"a": "2", "b": "1", "c": "1", "d": "2"}


@staged
async def test_a_restarted_process_continues_a_rolling_update(stage: ControllerStage) -> None:
    await started(stage)
    for _ in range(3):
        again = await sets(stage)
        await again.apply(*three("2"), method="RollingInPlace", gate=[by_annotation])
    assert await values(stage) == {"a": "2", "b": "2", "c": "2"}


@staged
async def test_a_rolling_update_that_is_done_asks_the_server_nothing(stage: ControllerStage) -> None:
    made = await started(stage)
    await made.apply(*three("1"), method="RollingInPlace")
    before = stage.transport.writes()
    await made.apply(*three("1"), method="RollingInPlace")
    assert stage.transport.writes() == before


@staged
async def test_strategies_are_by_kind(stage: ControllerStage) -> None:
    made = await started(stage)
    strategies = {GroupKind("", "ConfigMap"): Strategy("OnDelete"), GroupKind("x", "ConfigMap"): Strategy("Recreate")}
    outcome = await made.apply(*three("2"), strategies=strategies)
    assert not outcome.has_changes


ROLLS: list[tuple[str, str, str, tuple[str | None, str | None]]] = [
    ("abc", "", "abc", ("a", None)),
    ("abc", "a", "a", ("b", None)),
    ("abc", "a", "", (None, "a")),
    ("abc", "c", "", (None, "c")),
    ("abc", "b", "ab", ("a", None)),
    ("abc", "abc", "abc", (None, None)),
    ("abc", "abc", "ab", (None, "c")),
    ("", "", "", (None, None)),
]


@pytest.mark.parametrize(("items", "updated", "ready", "answer"), ROLLS)
def test_the_next_step_of_a_rolling_update(
    items: Sequence[str], updated: str, ready: str, answer: tuple[str | None, str | None]
) -> None:
    step = next_in_roll(items, updated.__contains__, lambda each: READY if each in ready else WAITING)
    assert (step.next, step.waiting) == answer
    assert step.message == ("InProgress: no" if step.waiting else "")
