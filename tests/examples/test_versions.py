"""Both versions of the Monitor are served, by the conversion webhook of the running example."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from tests.cluster.running import running
from tests.examples.example_plane import EXAMPLES, SECONDS, example

from ostinato.api.errors import InternalError
from ostinato.api.meta import ObjectMeta
from ostinato.client import Client, Config, MergePatch

versions = example("versions")


async def created(user: Client, monitor: Any) -> bool:
    try:
        await user.create(monitor)
    except InternalError:
        await asyncio.sleep(0.05)
        return False
    return True


def test_a_monitor_is_converted_between_its_versions(tmp_path: Path) -> None:
    async def main(kubeconfig: str) -> None:
        config = Config.load(path=kubeconfig, namespace="default")
        async with Client.connect(config, field_manager="user") as user:
            old = versions.MonitorV1beta1(
                metadata=ObjectMeta(name="shop"), spec=versions.MonitorV1beta1Spec(address="shop.example.org:8443")
            )
            async with asyncio.timeout(SECONDS):
                while not await created(user, old):  # the webhooks serve soon after the line "running"
                    pass
            new = await user.wait_for(
                versions.Monitor, "shop", lambda it: it is not None and it.status is not None, timeout=SECONDS
            )
            assert new.spec == versions.MonitorSpec(host="shop.example.org", port=8443, path="/")
            assert new.status.url == "https://shop.example.org:8443/"

            await user.patch(versions.Monitor, "shop", MergePatch({"spec": {"path": "/health"}}))
            found = await user.get(versions.MonitorV1beta1, "shop")
            assert found.spec.address == "shop.example.org:8443"
            found.spec.address = "shop.example.org:9443"  # by a client that does not know paths
            await user.patch(found)
            assert (await user.get(versions.Monitor, "shop")).spec == versions.MonitorSpec(
                host="shop.example.org", port=9443, path="/health"
            )

    command = ("-m", "ostinato.cli", "run", "--embedded", str(EXAMPLES / "versions.py"))
    with running(tmp_path / "log", *command) as program:
        kubeconfig = program.wait_for_output("embedded cluster ready at").split()[-1]
        program.wait_for_output("running")
        asyncio.run(main(kubeconfig))
        assert program.stop() == 0, program.log()
