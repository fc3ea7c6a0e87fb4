"""`eventually`: conditions, and the message when one is not met."""

from __future__ import annotations

import pytest
from tests.unit.testing.ponds import Pond, broken, pond

from ostinato import Context, ObjectMeta, controller
from ostinato.client import Client
from ostinato.kinds.core_v1 import ConfigMap
from ostinato.testing import Cluster, ClusterManager, Events, Eventually, VirtualClock


def config_map(**data: str) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name="a"), data=data)


async def test_it_returns_the_object_or_the_value(client: Client, eventually: Eventually) -> None:
    await client.create(config_map(key="value"))
    assert (await eventually(ConfigMap, "a")).data == {"key": "value"}
    assert await eventually(lambda: 3) == 3
    assert len(await eventually(lambda: client.list(ConfigMap, namespace="default"))) >= 1


async def test_it_waits_until_an_object_is_gone(client: Client, eventually: Eventually, clock: VirtualClock) -> None:
    await client.create(config_map())
    with pytest.raises(AssertionError, match="ConfigMap a is gone"):
        await eventually(ConfigMap, "a", gone=True)
    await client.delete(ConfigMap, "a")
    await eventually(ConfigMap, "a", gone=True)


async def test_the_message_has_the_last_state(client: Client, eventually: Eventually, clock: VirtualClock) -> None:
    await client.create(config_map(ducks="3"))
    with pytest.raises(AssertionError) as caught:
        await eventually(ConfigMap, "a", lambda each: each.data["ducks"] == "4")
    text = str(caught.value)
    assert text.startswith("not after 10 s: ConfigMap a fulfils <lambda> (test_eventually.py:")
    assert '\n    ducks: "3"\n' in text
    assert "managedFields" not in text


async def test_the_message_has_the_last_error(eventually: Eventually, clock: VirtualClock) -> None:
    with pytest.raises(AssertionError, match='last error: NotFound: configmaps "b" not found'):
        await eventually(ConfigMap, "b")
    with pytest.raises(AssertionError, match="last error: ZeroDivisionError"):
        await eventually(lambda: 1 / 0, timeout=1)
    with pytest.raises(AssertionError, match=r"last value: \[\]"):
        await eventually(lambda: [*()], timeout=1)


async def test_the_message_has_errors_of_controllers(
    cluster: Cluster, manager: ClusterManager, clock: VirtualClock
) -> None:
    await manager.start(broken)
    await cluster.client.create(pond())
    with pytest.raises(AssertionError, match="controller broken failed on default/a: KeyError: 'a'"):
        await cluster.eventually(Pond, "a", lambda each: each.status.ducks)
    assert manager.errors


async def test_it_needs_a_name_or_a_function(eventually: Eventually) -> None:
    with pytest.raises(TypeError, match="needs the name of the object, or a function"):
        await eventually(ConfigMap)  # type: ignore[call-overload]


async def test_a_missing_event_lists_those_that_there_are(
    cluster: Cluster, manager: ClusterManager, events: Events, clock: VirtualClock
) -> None:
    @controller(Pond)
    async def chatty(pond: Pond, ctx: Context) -> None:
        ctx.event(pond, "Said", "hello", kind="Warning")

    await manager.start(chatty)
    await cluster.client.create(pond())
    assert (await events.expect("Said", note="hell", regarding="a")).kind == "Warning"
    with pytest.raises(AssertionError, match="no Event 'Sung'; recorded:\n  Warning Said Pond default/a: hello"):
        await events.expect("Sung")
