"""The Website serves its pages from Pods, and follows changes."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from tests.examples.example_plane import SECONDS, example, fetch, plane_with

from ostinato.api.meta import ObjectMeta
from ostinato.client import Client, MergePatch
from ostinato.kinds.apps_v1 import Deployment
from ostinato.kinds.core_v1 import ConfigMap
from ostinato.testing import Cluster, ClusterManager, Eventually

site = example("website")


@pytest.mark.skipif(os.geteuid() != 0, reason="addresses of Services need root")
def test_a_website_serves_its_pages_and_rolls_out_new_ones(tmp_path: Path) -> None:
    async def main() -> None:
        async with plane_with(tmp_path, site.websites) as user:
            pages = {"index.html": "<h1>Hello</h1>"}
            await user.create(site.Website(metadata=ObjectMeta(name="hello"), spec=site.WebsiteSpec(pages=pages)))
            ready = await user.wait_for(site.Website, "hello", "Ready", timeout=SECONDS)
            assert await fetch(ready.status.url) == "<h1>Hello</h1>"

            new = {"spec": {"pages": {"index.html": "<h1>Good day</h1>"}}}
            changed = await user.patch(site.Website, "hello", MergePatch(new))
            await user.wait_for(
                site.Website,
                "hello",
                lambda it: (
                    it.status.observed_generation == changed.metadata.generation
                    and it.status.conditions[0].status == "True"
                ),
                timeout=SECONDS,
            )
            assert await fetch(ready.status.url) == "<h1>Good day</h1>"

            before = await user.get(Deployment, "hello")
            await user.delete(before)
            restored = await user.wait_for(
                Deployment, "hello", lambda it: it is not None and it.metadata.uid != before.metadata.uid, timeout=30
            )
            assert restored.spec.replicas == 1

    asyncio.run(main())


async def test_a_website_is_ready_when_its_pods_are(
    plane: Cluster, manager: ClusterManager, client: Client, eventually: Eventually
) -> None:
    await manager.start(site.websites)
    spec = site.WebsiteSpec(pages={"index.html": "hello"}, replicas=3)
    await client.create(site.Website(metadata=ObjectMeta(name="hello"), spec=spec))
    website = await eventually(site.Website, "hello", lambda it: it.status and it.status.ready_replicas == 3)
    assert (await client.get(ConfigMap, "hello")).data == {"index.html": "hello"}
    assert website.status.conditions[0].status == "True"

    await client.patch(Deployment, "hello", MergePatch({"spec": {"replicas": 1}}))  # by somebody else
    await eventually(Deployment, "hello", lambda it: it.spec.replicas == 3)
