"""Published vulnerabilities of volumes, tried as attacks by one container while the node starts another.

A process exchanges a directory of the volume for a link to the machine's files as fast as it can (renameat2 with
RENAME_EXCHANGE), as a container may that shares the volume.
"""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from ostinato.plane.node.runtimes import Mount, StartError
from tests.unit.plane.node.runtimes.process.test_process import ISOLATED, Bench, a_pod, with_bench
from tests.unit.plane.node.volumes.test_subpaths import LINUX, exchanging

STARTS = 60
MOST_STARTS = 2000  # on a machine so busy that nothing is exchanged meanwhile


@LINUX
@pytest.mark.skipif(not ISOLATED, reason="only root has mounts of its own")
def test_cve_2021_25741_containers_never_see_more_than_their_volume(tmp_path: Path) -> None:
    """Each container mounts a subPath that is a link to the machine's files half of the time."""
    volume, outside = tmp_path / "volume", tmp_path / "outside"
    (volume / "part").mkdir(parents=True)
    (volume / "part" / "file").write_text("mine")
    outside.mkdir()
    (outside / "file").write_text("secret of the machine")
    (volume / "link").symlink_to(outside)
    seen: set[str] = set()

    async def play(bench: Bench) -> None:
        script = f"cat /seen/file; echo planted > {shlex.quote('/seen/planted')}"
        mounts = [Mount(volume, "/seen", sub_path="part")]
        for attempt in range(MOST_STARTS):
            if attempt >= STARTS and {"mine", "refused"} <= seen:
                break
            try:
                container = await bench.start("sh", "-c", script, mounts=mounts, attempt=attempt, pod=a_pod())
            except StartError:
                seen.add("refused")
                continue
            await bench.read_exit(container)
            assert container.exit is not None
            if container.exit.reason == "StartError":
                seen.add("refused")
            else:
                seen.add(bench.log(attempt)[0].rpartition(" ")[2])

    with exchanging(volume / "part", volume / "link"):
        with_bench(tmp_path, play)
    assert seen == {"mine", "refused"}
    assert [each.name for each in outside.iterdir()] == ["file"]
