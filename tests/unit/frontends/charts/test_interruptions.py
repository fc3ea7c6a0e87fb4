"""A process that dies at any write of an action: the next one completes it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.unit.frontends.charts.stage import CONFIG_MAP, SHOP, conditions, history, make_chart, shop

from ostinato.client import Client, MergePatch
from ostinato.client.transport.protocol import Request, Response
from ostinato.frontends.charts import Chart
from ostinato.testing import Cluster, VirtualClock
from ostinato.testing.transport import ClusterTransport


class Death:
    """Lets the controllers make so many writes; the answer to the last one never arrives, and nothing is sent after."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.left = 0
        self.armed = False
        self.happened = False
        original = ClusterTransport.request

        async def request(transport: ClusterTransport, request: Request) -> Response:
            if not self.armed or transport._denied is None or request.method == "GET" or "/events" in request.path:
                return await original(transport, request)
            if self.happened:
                await asyncio.get_running_loop().create_future()
            self.left -= 1
            answer = await original(transport, request)
            if self.left <= 0:
                self.happened = True
                await asyncio.get_running_loop().create_future()
            return answer

        monkeypatch.setattr(ClusterTransport, "request", request)

    def after(self, writes: int) -> None:
        self.left, self.armed, self.happened = writes, True, False

    def over(self) -> None:
        self.armed = False


@pytest.mark.parametrize("action", ["install", "upgrade", "failed upgrade", "reverted upgrade", "uninstall"])
async def test_an_action_is_completed_whenever_the_process_dies(
    action: str, tmp_path: Path, cluster: Cluster, client: Client, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = "{{ if .Values.broken }}\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: Not_A_Name}\n{{ end }}"
    chart = make_chart(tmp_path, {"z.yaml": broken})
    death = Death(monkeypatch)
    for writes in range(1, 40):
        name = f"s{writes}"
        manager = cluster.manager()
        await manager.start(Chart(chart).for_kind("Shop", group="example.com"))
        if action != "install":
            await client.create(shop(name, extra=action != "reverted upgrade"))
            await clock.advance(1)
        death.after(writes)
        if action == "install":
            await client.create(shop(name, extra=True))
        elif action == "upgrade":
            await client.patch(SHOP, name, MergePatch({"spec": {"extra": False, "motto": "new"}}))
        elif action == "failed upgrade":
            await client.patch(SHOP, name, MergePatch({"spec": {"extra": False, "motto": "new", "broken": True}}))
        elif action == "reverted upgrade":
            await client.patch(SHOP, name, MergePatch({"spec": {"extra": True, "motto": "new"}}))
        else:
            await client.delete(SHOP, name)
        await clock.advance(0.5)
        died = death.happened
        ending = asyncio.get_running_loop().create_task(manager.end())
        await clock.advance(5)
        await ending
        death.over()
        assert manager.errors is not None
        if action == "failed upgrade":
            await client.patch(SHOP, name, MergePatch({"spec": {"broken": False}}))
        if action == "reverted upgrade":
            await client.patch(SHOP, name, MergePatch({"spec": {"extra": False, "motto": None}}))
        successor = cluster.manager()
        await successor.start(Chart(chart).for_kind("Shop", group="example.com"))
        await clock.advance(5)
        await _check(action, name, client)
        await successor.end()
        assert not successor.errors
        if not died:
            assert writes > 4
            return
    raise AssertionError("the action never ended")


async def _check(action: str, name: str, client: Client) -> None:
    extra = await client.get(CONFIG_MAP, f"{name}-extra", missing=None)
    config = await client.get(CONFIG_MAP, f"{name}-config", missing=None)
    statuses = [status for _, status in await history(client, name)]
    if action == "uninstall":
        assert (config, extra, statuses) == (None, None, [])
        assert await client.get(SHOP, name, missing=None) is None
        return
    assert config is not None
    assert conditions(await client.get(SHOP, name))["Deployed"]["status"] == "True"
    assert statuses[-1] == "deployed"
    assert statuses.count("deployed") == 1
    assert not [each for each in statuses if each.startswith("pending")]
    if action == "install":
        assert extra is not None
    elif action == "reverted upgrade":
        assert (config["data"]["motto"], extra) == ("hello", None)
    else:
        assert (config["data"]["motto"], extra) == ("new", None)
