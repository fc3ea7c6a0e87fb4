"""The ported kopf operator: daemon, timer and index, in virtual time."""

from __future__ import annotations

from pathlib import Path

from ostinato import Client, ObjectMeta
from ostinato.client import MergePatch
from ostinato.kinds.core_v1 import Container, Pod, PodSpec
from ostinato.testing import Cluster, VirtualClock, load

kopf = load(Path(__file__).resolve().parents[2] / "examples" / "kopf_port.py")


async def test_daemon_timer_and_index_do_what_they_do_in_kopf(
    cluster: Cluster, client: Client, clock: VirtualClock
) -> None:
    await cluster.manager(caches=kopf.CACHES).start(kopf.ping, kopf.measure, kopf.count)
    await client.create(kopf.KopfExample(metadata=ObjectMeta(name="one"), spec=kopf.KopfExampleSpec(seconds=5)))
    for name in ("a", "b"):
        metadata = ObjectMeta(name=name, labels={kopf.LABEL: "one"})
        await client.create(Pod(metadata=metadata, spec=PodSpec(containers=[Container(name="main", image="main")])))
    await client.patch(Pod, "a", MergePatch({"status": {"phase": "Running"}}), subresource="status")

    await clock.advance(9)
    status = (await client.get(kopf.KopfExample, "one")).status
    assert status == kopf.KopfExampleStatus(pings=1, measured=0, running_pods=1), "not idle for ten seconds yet"

    await clock.advance(53)
    status = (await client.get(kopf.KopfExample, "one")).status
    assert (status.pings, status.measured) == (12, 1)
    await clock.advance(20)
    assert (await client.get(kopf.KopfExample, "one")).status.measured == 2, "every minute"

    await client.delete(kopf.KopfExample, "one")
    await clock.advance(60)
    assert await client.get(kopf.KopfExample, "one", missing=None) is None, "nothing holds it"
