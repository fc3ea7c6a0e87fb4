"""/dev/shm of Pods: shared by their containers, also by those that the next agent starts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.unit.plane.node.runtimes.process.test_isolation import RuntimeFixture, with_runtime

from ostinato.plane.node.runtimes import ProcessOptions
from ostinato.plane.node.runtimes.process import isolation
from ostinato.plane.node.volumes.mounts import is_mount_point

pytestmark = pytest.mark.skipif(
    bool(isolation.unsupported_reason()), reason=f"no isolation here: {isolation.unsupported_reason()}"
)


@pytest.mark.parametrize("spec", [{}, {"hostUsers": False}])
def test_a_stopped_agent_leaves_no_mount_and_the_next_shares_the_memory(tmp_path: Path, spec: dict[str, Any]) -> None:
    async def play(node: RuntimeFixture) -> None:
        pod = node.pod(containers=2, **spec)
        place = node.directory / "node" / "pods" / "u1" / "shm"
        await node.start(pod, "sh", "-c", "echo before > /dev/shm/file; sleep infinity")
        assert is_mount_point(place)
        assert (await node.exec(pod, "cat", "/dev/shm/file"))[1] == "before\n"
        node.runtime.release()
        assert not is_mount_point(place)

        after = RuntimeFixture(node.directory, ProcessOptions())
        assert set(await after.runtime.recover(pod)) == {"c"}
        assert await after.shell(pod, "cat /dev/shm/file; echo after >> /dev/shm/file", name="d") == "before"
        assert (await after.exec(pod, "cat", "/dev/shm/file"))[1] == "before\nafter\n"
        assert not is_mount_point(place)
        await after.runtime.remove("u1")
        after.world.executor.close()

    with_runtime(tmp_path, play)


def test_the_memory_of_an_orphaned_pod_is_unmounted(tmp_path: Path) -> None:
    async def play(node: RuntimeFixture) -> None:
        await node.shell(node.pod(), "true")
        place = node.directory / "node" / "pods" / "u1" / "shm"
        assert is_mount_point(place)  # as left behind by a killed agent
        after = RuntimeFixture(node.directory, ProcessOptions())
        for uid in await after.runtime.pod_uids():
            await after.runtime.remove(uid)
        assert not is_mount_point(place)
        after.world.executor.close()

    with_runtime(tmp_path, play)
