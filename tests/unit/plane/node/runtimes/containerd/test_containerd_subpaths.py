"""SubPaths with containerd, which gets a path that containers cannot change."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.unit.plane.node.volumes.test_subpaths import AS_ROOT, LINUX

from ostinato.api.meta import ObjectMeta
from ostinato.kinds.core_v1 import Container, Pod, PodSpec
from ostinato.plane.node.runtimes import Launch, Mount, StartError
from ostinato.plane.node.runtimes.containerd import ContainerdRuntime
from ostinato.plane.node.runtimes.containerd.connecting import Containerd
from ostinato.world import World

POD = Pod(metadata=ObjectMeta(name="p", namespace="ns", uid="u1"), spec=PodSpec(containers=[]))


class Cri:
    """As much of containerd as it takes to start a container."""

    def __init__(self) -> None:
        self.created: list[dict[str, Any]] = []

    async def call(self, method: str, request: Mapping[str, Any], within: float = 0.0) -> dict[str, Any]:
        if method == "ImageStatus":
            return {"image": {"id": "sha256:1", "uid": {"value": 0}}}
        if method == "RunPodSandbox":
            return {"pod_sandbox_id": "s"}
        if method == "CreateContainer":
            self.created.append(request["config"])
            return {"container_id": "c"}
        if method == "ContainerStatus":
            return {"status": {"id": "c", "metadata": {"name": "c"}, "state": 1, "started_at": 1}}
        return {}


def agent(directory: Path, cri: Cri) -> ContainerdRuntime:
    watch = SimpleNamespace(add=lambda *_: None, remove=lambda _: None)
    return ContainerdRuntime(
        World.real(), cast("Containerd", SimpleNamespace(cri=cri, watch=watch, version="2")), directory
    )


def launch(volume: Path) -> Launch:
    mounts = [Mount(volume, "/whole"), Mount(volume, "/part", sub_path="part")]
    return Launch(pod=POD, container=Container(name="c", image="i"), attempt=0, mounts=mounts)


def bound(cri: Cri) -> dict[str, str]:
    return {each["container_path"]: each["host_path"] for each in cri.created[-1]["mounts"]}


@LINUX
@AS_ROOT
def test_a_sub_path_is_bound_and_released_by_a_restarted_agent(tmp_path: Path) -> None:
    volume, cri = tmp_path / "volume", Cri()
    (volume / "part").mkdir(parents=True)
    (volume / "part" / "file").write_text("mine")
    (tmp_path / "outside").mkdir()
    node = tmp_path / "node"
    node.mkdir()

    async def play() -> None:
        await agent(node, cri).start(launch(volume))
        assert bound(cri)["/whole"] == str(volume)
        path = Path(bound(cri)["/part"])
        assert path == node / "volume-subpaths" / "u1" / "c" / "1"
        (volume / "part").rename(volume / "other")  # after it was looked at, before containerd binds it
        (volume / "part").symlink_to("../outside")
        assert (path / "file").read_text() == "mine"
        with pytest.raises(StartError, match="leads out of its volume"):
            await agent(node, cri).start(launch(volume))
        after = agent(node, cri)
        assert await after.pod_uids() == ["u1"]
        await after.remove("u1")
        assert await after.pod_uids() == []

    asyncio.run(play())
    assert not (node / "volume-subpaths" / "u1").exists()
    assert (volume / "other" / "file").read_text() == "mine"
    assert str(tmp_path) not in Path("/proc/self/mountinfo").read_text()
