"""Queues: order, failures, combination, rates, and queues of single objects."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.frontends.hooks.stage import CONFIG_MAP, NAMESPACE, HookDirectory, config_map, short

from ostinato.api.gvk import GroupVersionKind
from ostinato.client import Client, MergePatch
from ostinato.frontends.hooks import HookContext, Hooks, HooksOptions, cron, hook, startup, watch
from ostinato.testing import ClusterManager, VirtualClock

pytestmark = pytest.mark.ostinato(rbac=False)

KIND = GroupVersionKind("", "v1", "ConfigMap")


@pytest.fixture
def hooks(tmp_path: Path) -> HookDirectory:
    return HookDirectory(tmp_path)


async def test_startup_runs_by_order_then_by_name(
    hooks: HookDirectory, clock: VirtualClock, manager: ClusterManager, tmp_path: Path
) -> None:
    order = tmp_path / "order"
    for name, number in (("b.sh", 10), ("a/z.sh", 10), ("c.sh", 1)):
        hooks.add(name, f"{{configVersion: v1, onStartup: {number}}}", f"echo {name} >> {order}")
    await manager.start(Hooks(hooks.root))
    await clock.advance(1)
    assert order.read_text().split() == ["c.sh", "a/z.sh", "b.sh"]


async def test_a_failing_hook_blocks_only_its_queue(clock: VirtualClock, manager: ClusterManager) -> None:
    calls: list[str] = []

    @hook(cron("@every 1s"), queue="broken")
    def broken(ctx: HookContext) -> None:
        calls.append("broken")
        raise RuntimeError("no")

    @hook(cron("@every 1s"), queue="broken")
    def behind(ctx: HookContext) -> None:
        calls.append("behind")

    @hook(cron("@every 1s"))
    def beside(ctx: HookContext) -> None:
        calls.append("beside")

    await manager.start(Hooks(broken, behind, beside))
    await clock.advance(20.5)
    # `behind` came first once, at the first second; then `broken` is the head: after 0, 5, 10 and 20 seconds
    assert calls.count("broken") == 3
    assert calls.count("behind") <= 1
    assert calls.count("beside") == 20


async def test_a_failure_that_is_allowed_is_not_repeated(clock: VirtualClock, manager: ClusterManager) -> None:
    calls: list[float] = []

    @hook(cron("@every 10s", allow_failure=True))
    async def broken(ctx: HookContext) -> None:
        calls.append(clock.monotonic())
        raise RuntimeError("no")

    await manager.start(Hooks(broken))
    await clock.advance(31)
    assert len(calls) == 3


async def test_attempts_end_the_repetition(clock: VirtualClock, manager: ClusterManager) -> None:
    calls: list[float] = []

    @hook(startup(), attempts=3, backoff=2, longest_backoff=3)
    def broken(ctx: HookContext) -> None:
        calls.append(clock.monotonic())
        raise RuntimeError("no")

    await manager.start(Hooks(broken))
    await clock.advance(60)
    first, second, third = calls
    assert round(second - first, 1) == 2
    assert round(third - second, 1) == 3


async def test_events_that_wait_are_combined(
    hooks: HookDirectory, clock: VirtualClock, manager: ClusterManager, client: Client
) -> None:
    config = """
configVersion: v1
settings: {executionMinInterval: 30s, executionBurst: 1}
kubernetes:
- {name: cms, kind: ConfigMap, labelSelector: {matchLabels: {t: a}}}
"""
    hooks.add("a.sh", config)
    await manager.start(Hooks(hooks.root))
    for name in "abc":
        await client.create(config_map(name, labels={"t": "a"}))
    await clock.advance(29)
    assert len(hooks.runs("a.sh")) == 1
    await clock.advance(2)
    assert [list(map(short, run)) for run in hooks.runs("a.sh")] == [
        ["cms Synchronization"],
        ["cms Added a", "cms Added b", "cms Added c"],
    ]


async def test_an_object_that_fails_does_not_block_others_with_a_queue_for_each(
    clock: VirtualClock, manager: ClusterManager, client: Client
) -> None:
    seen: list[str] = []

    @hook(watch("cms", KIND, key="object", on_synchronization=False, labels="t=a"))
    def each(ctx: HookContext) -> None:
        for context in ctx.events:
            assert context.event is not None
            seen.append(f"{context.change} {context.event.name}")
            if context.event.name == "bad" and context.change == "Added" and seen.count("Added bad") < 3:
                raise RuntimeError("not yet")

    runnable = Hooks(each)
    await manager.start(runnable)
    await client.create(config_map("bad", labels={"t": "a"}))
    await client.create(config_map("good", labels={"t": "a"}))
    await clock.advance(1)
    await client.patch(CONFIG_MAP, "bad", MergePatch({"data": {"x": "1"}}))
    await clock.advance(1)
    assert seen == ["Added bad", "Added good"]
    await clock.advance(20)
    assert seen[2:] == ["Added bad", "Added bad", "Modified bad"]
    assert [name for name in runnable.engine.queues if "/" in name] == []  # removed when they are empty


async def test_a_hook_that_hangs_is_killed(
    hooks: HookDirectory, manager: ClusterManager, caplog: pytest.LogCaptureFixture
) -> None:
    hooks.add(
        "a.sh", "{configVersion: v1, onStartup: 1, x-ostinato: {timeout: 500ms, retry: {attempts: 1}}}", "sleep 60"
    )
    await manager.start(Hooks(hooks.root))
    assert "timed out after 0.5 s; killed" in caplog.text
    assert "given up" in caplog.text


async def test_a_changed_file_is_loaded_again(
    hooks: HookDirectory,
    clock: VirtualClock,
    manager: ClusterManager,
    client: Client,
    caplog: pytest.LogCaptureFixture,
) -> None:
    hooks.add("a.sh", "{configVersion: v1, kubernetes: [{name: old, kind: cm, labelSelector: {matchLabels: {t: a}}}]}")
    hooks.add("b.sh", "{configVersion: v1, onStartup: 1}")
    await manager.start(Hooks(hooks.root, options=HooksOptions(reload=True)))
    hooks.add("a.sh", "{configVersion: v1, kubernetes: [{name: new, kind: cm, labelSelector: {matchLabels: {t: a}}}]}")
    hooks.add("c.sh", "{configVersion: v1, onStartup: 1}")
    await clock.advance(3)
    await client.create(config_map("x", labels={"t": "a"}))
    await clock.advance(1)
    assert list(map(short, hooks.contexts("a.sh"))) == ["old Synchronization", "new Synchronization", "new Added x"]
    assert len(hooks.runs("b.sh")) == 1  # not touched
    hooks.add("c.sh", "{configVersion: v2}")
    await clock.advance(3)
    assert "c.sh: configVersion: 'v2' is not supported" in caplog.text
    await clock.advance(3)
    assert len(hooks.runs("b.sh")) == 1
    assert len(hooks.runs("c.sh")) == 1
    (hooks.root / "a.sh").unlink()
    await clock.advance(3)
    await client.create(config_map("y", labels={"t": "a"}))
    await clock.advance(1)
    assert len(hooks.contexts("a.sh")) == 3


async def test_the_others_run_if_a_hook_cannot_be_loaded(
    hooks: HookDirectory, clock: VirtualClock, manager: ClusterManager, caplog: pytest.LogCaptureFixture
) -> None:
    hooks.add("bad.sh", "{configVersion: v1, kubernets: []}")
    hooks.add("good.sh", "{configVersion: v1, onStartup: 1}")
    (hooks.root / "readme").write_text("not a hook")
    await manager.start(Hooks(hooks.root))
    await clock.advance(1)
    assert len(hooks.runs("good.sh")) == 1
    assert "bad.sh: kubernets: unknown field; did you mean 'kubernetes'?" in caplog.text
    assert "readme: not executable" in caplog.text


async def test_first_lists_come_before_what_follows_and_each_has_its_run(
    hooks: HookDirectory, clock: VirtualClock, manager: ClusterManager
) -> None:
    config = """
configVersion: v1
kubernetes:
- {name: one, kind: ConfigMap, nameSelector: {matchNames: [x]}}
- {name: two, kind: Node}
"""
    hooks.add("a.sh", config)
    hooks.add("b.sh", "{configVersion: v1, kubernetes: [{kind: Missing}]}")  # cannot start, and blocks the queue
    await manager.start(Hooks(hooks.root))
    await clock.advance(1)
    assert [list(map(short, run)) for run in hooks.runs("a.sh")] == [["one Synchronization"], ["two Synchronization"]]
    assert hooks.runs("b.sh") == []


async def test_a_marked_patch_of_the_status_is_executed_although_the_hook_fails(
    hooks: HookDirectory, manager: ClusterManager, client: Client
) -> None:
    operations = """
operation: MergePatch
kind: Namespace
name: default
subresource: status
ignoreHookError: true
mergePatch: {status: {conditions: [{type: Hooked, status: "True"}]}}
---
operation: MergePatch
kind: Namespace
name: default
mergePatch: {metadata: {labels: {a: b}}}
"""
    body = f"cat > $KUBERNETES_PATCH_PATH <<'EOF'{operations}EOF\nexit 1"
    hooks.add("a.sh", "{configVersion: v1, onStartup: 1}", body)
    await manager.start(Hooks(hooks.root))
    found = await client.get(NAMESPACE, "default")
    assert [each["type"] for each in found["status"]["conditions"]] == ["Hooked"]
    assert "a" not in found["metadata"]["labels"]
