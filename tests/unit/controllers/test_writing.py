"""What controllers rely on when they write: what was given stays as it was, and the server is one, not a fake."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from tests.stage.controllers import ControllerStage, staged
from tests.stage.kinds import Widget, config_map, widget
from tests.unit.cache.lagging import Lagging, LaggingStage
from tests.unit.cache.lagging import staged as staged_lagging

from ostinato.api.errors import AlreadyExists, Conflict, Timeout
from ostinato.api.meta import ObjectMeta
from ostinato.api.owners import set_controller_reference
from ostinato.cache.store.indexes import OWNER
from ostinato.client import MergePatch
from ostinato.client.transport.protocol import ConnectionLost, DeadlinePassed, Request, RequestTimedOut, Unreachable
from ostinato.controllers import Context, controller
from ostinato.kinds.core_v1 import ConfigMap
from ostinato.server.in_process.transport import InProcessTransport


@staged_lagging
async def test_a_failed_write_leaves_the_object_unchanged(stage: LaggingStage) -> None:
    client = await stage.watching(ConfigMap)
    await client.create(config_map("a", key="value"))
    second = config_map("a", key="other")
    with pytest.raises(AlreadyExists):
        await client.create(second)
    assert second == config_map("a", key="other")
    mine = await client.get(ConfigMap, "a")
    await client.live.patch(ConfigMap, "a", MergePatch({"data": {"key": "theirs"}}))
    mine.data["key"] = "mine"
    before = copy.deepcopy(mine)
    with pytest.raises(Conflict):
        await client.update(mine)
    assert mine == before


@staged_lagging
async def test_a_new_object_with_a_deletion_timestamp_is_not_terminating(stage: LaggingStage) -> None:
    metadata: dict[str, Any] = {"name": "a", "deletionTimestamp": "2001-01-01T00:00:00Z", "finalizers": ["a.dev/b"]}
    made = await stage.live.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
    assert "deletionTimestamp" not in made["metadata"]


class Lossy:
    """A transport that loses the answers of the first creations of ConfigMaps, which are done all the same."""

    def __init__(self, inner: Any, *outcomes: BaseException) -> None:
        self.host = inner.host
        self._inner = inner
        self._outcomes = list(outcomes)

    async def request(self, request: Request) -> Any:
        answer = await self._inner.request(request)
        if request.method == "POST" and request.path.endswith("/configmaps") and self._outcomes:
            raise self._outcomes.pop()
        return answer


LOST = (
    ConnectionLost("the connection broke"),
    RequestTimedOut("timed out"),
    Timeout.of("the server gave up", 0),
)


@pytest.mark.parametrize("error", LOST, ids=lambda error: type(error).__name__)
def test_a_create_without_a_response_is_not_repeated(error: Exception) -> None:
    @staged
    async def play(stage: ControllerStage) -> None:
        late = Lagging(InProcessTransport(stage.server), stage.world)
        late.lag = 0.3  # seconds after which the cache sees anything, far more than a failed key waits at first
        stage.transport.inner = Lossy(late, error, error)

        @controller(Widget, owns=[ConfigMap])
        async def widgets(each: Widget, ctx: Context) -> None:
            if not await ctx.client.list(ConfigMap, index=(OWNER, each.metadata.uid)):
                made = ConfigMap(metadata=ObjectMeta(generate_name="a-", namespace="default"))
                set_controller_reference(each, made)
                await ctx.client.create(made)

        for name in "ab":
            await stage.user.create(widget(name))
        async with stage.running(widgets):
            await stage.settle(5)
        assert len(await stage.user.list(ConfigMap)) == 2

    play()


@staged
async def test_a_request_that_was_not_sent_is_retried_immediately(stage: ControllerStage) -> None:
    stage.transport.inner = Lossy(InProcessTransport(stage.server), Unreachable("down"), DeadlinePassed("too late"))
    made: list[float] = []

    @controller(Widget)
    async def widgets(each: Widget, ctx: Context) -> None:
        made.append(ctx.world.clock.monotonic())
        await ctx.client.create(ConfigMap(metadata=ObjectMeta(generate_name="a-", namespace="default")))

    await stage.user.create(widget("a"))
    async with stage.running(widgets):
        await stage.settle(5)
    assert len(made) == 3
    assert made[-1] - made[0] < 0.1
