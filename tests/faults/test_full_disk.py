"""A disk that is full, or cannot be written: at the start, and while the server runs. Needs root, to mount one."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.unit.cli.commands.control_plane.test_serve import THING, THINGS, Running
from tests.unit.cli.commands.control_plane.test_snapshot import command

Mount = Callable[..., Path]


@pytest.fixture
def mount(tmp_path: Path) -> Iterator[Mount]:
    """Mounts a file system of some size, or mounts it again with another."""
    place = tmp_path / "disk"
    place.mkdir()

    def mount(size: str, *options: str) -> Path:
        how = ",".join([f"size={size}", "mode=700", *options])
        program = shutil.which("mount")
        if program is None:
            pytest.skip("no mount")
        again = ["-o", f"remount,{how}"] if place.is_mount() else ["-o", how]
        done = subprocess.run([program, "-t", "tmpfs", *again, "tmpfs", str(place)], capture_output=True, check=False)
        if done.returncode:
            pytest.skip("cannot mount a file system here")
        return place

    yield mount
    if place.is_mount():
        subprocess.run(["umount", "-l", str(place)], check=True)


def start(state: Path) -> tuple[int, str]:
    """The exit code of a start that is to fail at once, and what it says."""
    done = command("apiserver", "--state", str(state), "--listen", "127.0.0.1:0")
    assert done.stdout == ""
    return done.returncode, done.stderr


@pytest.mark.parametrize("size", ["4k", "12k", "20k", "36k", "60k", "120k"])
def test_a_start_on_a_full_disk_names_the_disk_and_the_remedy(mount: Mount, size: str) -> None:
    disk = mount(size)
    code, said = start(disk / "state")
    assert (code, "Traceback" in said) == (1, False), said
    remedy = f"no space left on the file system at {disk}; free some, or choose another directory with --state"
    assert said.splitlines()[-1].endswith(remedy), said
    mount("50m")
    server = Running(disk / "state")
    assert server.call("POST", THINGS, THING)[0] == 201
    server.stop()


def test_a_disk_that_fills_up_stops_writes_alone_and_loses_nothing(mount: Mount) -> None:
    disk = mount("20m")
    server = Running(disk / "state")
    assert server.call("POST", THINGS, THING)[0] == 201
    with suppress(OSError), (disk / "filler").open("wb", buffering=0) as filler:
        while True:
            filler.write(bytes(4096))
    large = {"metadata": {"name": "large"}, "data": {"k": "x" * 500_000}}
    status, answer = server.call("POST", THINGS, large)
    assert (status, answer["message"]) == (503, "the store cannot write: database or disk is full")
    assert server.call("GET", f"{THINGS}/a")[0] == 200
    for path in ("/livez", "/readyz", "/healthz"):
        assert server.call("GET", path) == (200, b"ok")
    (disk / "filler").unlink()
    assert server.call("POST", THINGS, large)[0] == 201
    server.process.kill()
    server.process.wait()
    assert server.process.stdout is not None
    server.process.stdout.close()
    again = Running(disk / "state")
    assert again.call("GET", f"{THINGS}/large")[0] == 200
    assert again.call("GET", f"{THINGS}/a")[0] == 200
    again.stop()


def test_an_unwritable_directory_is_reported(mount: Mount) -> None:
    disk = mount("20m")
    server = Running(disk / "state")
    assert server.call("POST", THINGS, THING)[0] == 201
    server.stop()
    mount("20m", "ro")
    code, said = start(disk / "state")
    assert (code, said) == (
        1,
        f"ostinato apiserver: cannot use the state directory {disk / 'state'}: Read-only file system\n",
    )
    mount("20m", "rw")
    again = Running(disk / "state")
    assert again.call("GET", f"{THINGS}/a")[0] == 200
    again.stop()


def test_a_snapshot_that_has_no_room_leaves_nothing(mount: Mount, tmp_path: Path) -> None:
    server = Running(tmp_path / "state")
    server.stop()
    disk = mount("100k")
    done = command("snapshot", "save", str(disk / "file"), "--state", str(tmp_path / "state"))
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert f"no space left on the file system at {disk}" in done.stderr
    assert list(disk.iterdir()) == []
