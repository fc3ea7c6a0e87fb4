"""Volumes in memory: mounted with their size, unmounted with the Pod."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from ostinato.api.codec import from_dict
from ostinato.kinds.core_v1 import Pod
from ostinato.plane.node.volumes import mounts
from ostinato.plane.node.volumes.mounter import VolumeMounter, _memory_limit
from ostinato.world import World

NODE = 1 << 30  # bytes of memory

needs_mounts = pytest.mark.skipif(not mounts.can_mount(), reason="this process may not mount file systems")


def pod_of(volume: dict[str, object], *limits: str | None) -> Pod:
    containers = [
        {"name": f"c{number}", "resources": {} if each is None else {"limits": {"memory": each}}}
        for number, each in enumerate(limits or (None,))
    ]
    spec = {"volumes": [{"name": "cache", "emptyDir": volume}], "containers": containers}
    return from_dict(Pod, {"metadata": {"name": "a", "namespace": "default", "uid": "u1"}, "spec": spec})


@pytest.mark.parametrize(
    ("size_limit", "limits", "size"),
    [
        (None, [None], NODE),
        ("64Mi", [None], 64 << 20),
        ("64Mi", ["32Mi"], 32 << 20),
        (None, ["32Mi", "16Mi"], 48 << 20),
        (None, ["32Mi", None], NODE),
        ("8Gi", ["4Gi"], NODE),
        ("0", [None], NODE),
    ],
)
def test_a_volume_in_memory_is_as_large_as_the_smallest_limit(
    size_limit: str | None, limits: list[str | None], size: int
) -> None:
    pod = pod_of({"medium": "Memory"} | ({} if size_limit is None else {"sizeLimit": size_limit}), *limits)
    source = pod.spec.volumes[0].empty_dir
    assert source is not None
    assert _memory_limit(pod, source, NODE) == size


class Nothing:
    async def of(self, pod: Pod, volume: object) -> None: ...


@pytest.fixture
def mounter(tmp_path: Path) -> Iterator[VolumeMounter]:
    yield VolumeMounter(tmp_path, Nothing(), Nothing(), Nothing(), World.real(), NODE)  # type: ignore[arg-type]
    mounts.unmount_entries(tmp_path / "u1" / "volumes")


@needs_mounts
def test_a_volume_in_memory_is_a_tmpfs_until_the_pod_ends(mounter: VolumeMounter, tmp_path: Path) -> None:
    pod = pod_of({"medium": "Memory", "sizeLimit": "1Mi"})
    path = asyncio.run(mounter.mount(pod))["cache"].path
    assert path.is_mount()
    assert path.stat().st_mode & 0o777 == 0o777
    status = os.statvfs(path)
    assert status.f_blocks * status.f_frsize == 1 << 20
    (path / "kept").write_text("x")
    asyncio.run(mounter.mount(pod))  # a restarted agent
    assert (path / "kept").read_text() == "x"
    mounter.unmount(pod)
    assert list(tmp_path.iterdir()) == []


@needs_mounts
def test_a_volume_in_memory_cannot_grow_beyond_its_size(mounter: VolumeMounter) -> None:
    path = asyncio.run(mounter.mount(pod_of({"medium": "Memory", "sizeLimit": "64Ki"})))["cache"].path
    with pytest.raises(OSError, match="No space left on device"):
        (path / "large").write_bytes(bytes(128 << 10))


@needs_mounts
def test_unmounting_does_not_follow_links(tmp_path: Path) -> None:
    (tmp_path / "target").mkdir()
    (tmp_path / "volumes").mkdir()
    mounts.mount_tmpfs(tmp_path / "target", 4096)
    try:
        (tmp_path / "volumes" / "link").symlink_to(tmp_path / "target")
        mounts.unmount_entries(tmp_path / "volumes")
        assert (tmp_path / "target").is_mount()
    finally:
        mounts.unmount(tmp_path / "target")
