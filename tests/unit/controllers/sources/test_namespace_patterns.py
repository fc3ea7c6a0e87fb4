from __future__ import annotations

from typing import Any

import pytest
from tests.stage.controllers import ControllerStage, staged
from tests.stage.kinds import Widget

from ostinato.api.meta import ObjectMeta
from ostinato.controllers import Context, ControllerOptions, controller, timer
from ostinato.controllers.sources.namespace_patterns import NamespacePatterns, is_pattern
from ostinato.kinds.core_v1 import ConfigMap, Namespace
from ostinato.manager.hosting import Choices, Host


@pytest.mark.parametrize(
    ("selection", "included", "excluded"),
    [
        ("*", ["a", "kube-system"], []),
        ("team-*", ["team-a", "team-"], ["team", "my-team-a"]),
        ("team-?", ["team-a"], ["team-", "team-ab"]),
        (["team-*", "shared"], ["team-a", "shared"], ["shared-2"]),
        ("team-*, shared", ["team-a", "shared"], ["other"]),
        ("!kube-*", ["default", "team-a"], ["kube-system"]),
        ("team-*,!*-test", ["team-a"], ["team-test", "default"]),
        (("!a", "!b"), ["c"], ["a", "b"]),
    ],
)
def test_patterns(selection: Any, included: list[str], excluded: list[str]) -> None:
    patterns = NamespacePatterns(selection)
    assert [each for each in included if not patterns.includes(each)] == []
    assert [each for each in excluded if patterns.includes(each)] == []
    assert patterns.includes(""), "cluster-scoped objects"


@pytest.mark.parametrize("wrong", ["", "Team", "a b", "team-[ab]", "!", "a,,b", "../etc", ["a", 5]])
def test_a_pattern_that_no_namespace_can_match_is_an_error(wrong: Any) -> None:
    with pytest.raises(ValueError, match="is not a pattern; use lower-case letters"):
        ControllerOptions(namespaces=wrong)


@staged
async def test_a_controller_reconciles_matching_namespaces_also_those_created_later(stage: ControllerStage) -> None:
    seen: list[str] = []
    ticks: list[str] = []

    @controller(Widget, owns=[ConfigMap], namespaces="team-*,!team-test")
    async def widgets(widget: Widget, ctx: Context) -> None:
        seen.append(widget.metadata.namespace)

    @timer(Widget, every=10, namespaces=["team-b"])
    async def ticking(widget: Widget, ctx: Context) -> None:
        ticks.append(widget.metadata.namespace)

    async def add(namespace: str) -> None:
        await stage.user.create(Namespace(metadata=ObjectMeta(name=namespace)))
        await stage.user.create(Widget(metadata=ObjectMeta(name="w", namespace=namespace)))
        await stage.settle()

    await add("team-a")
    await add("other")
    async with stage.running(widgets), stage.running(ticking):
        await stage.settle()
        assert seen == ["team-a"]
        await add("team-test")
        await add("team-b")
        assert seen == ["team-a", "team-b"]
        await stage.settle(10)
    assert ticks == ["team-b", "team-b"]


def test_a_host_passes_patterns_to_the_controllers_and_names_to_the_caches() -> None:
    assert [is_pattern(each) for each in ("", "team-a", "team-*", "!a", "a,b")] == [False, False, True, True, True]
    file = Choices(controllers=ControllerOptions(max_concurrent=4))
    found = Host(namespace="team-*").decide(file)
    assert found.controllers == ControllerOptions(max_concurrent=4, namespaces="team-*")
    assert found.caches is None
    found = Host(namespace="team-a").decide(file)
    assert found.controllers == ControllerOptions(max_concurrent=4)
    assert found.caches is not None
    assert found.caches.defaults.namespaces == ("team-a",)
