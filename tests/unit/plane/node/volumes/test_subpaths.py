"""SubPaths: opened by descriptor inside their volume, while a container replaces them with links."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from ostinato.kinds.core_v1 import Container, VolumeMount
from ostinato.plane.node.environment.container_environment import _mount
from ostinato.plane.node.runtimes import StartError
from ostinato.plane.node.volumes import MountedVolume, subpaths
from ostinato.plane.node.volumes.subpath_mounts import SubPathMounts
from ostinato.plane.node.volumes.subpaths import SubPathError, open_subpath, path_of, read_subpath

TRIES = 3000
MOST_TRIES = 500_000  # on a machine so busy that nothing is exchanged meanwhile
AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="binding needs root")
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="renameat2 is of Linux")

# Exchanges two names as fast as it can, as a process of a container would in a volume it shares.
EXCHANGE = """
import ctypes, os, sys
libc = ctypes.CDLL(None)
print("on", flush=True)
while os.getppid() == int(sys.argv[3]):
    for _ in range(1000):
        libc.renameat2(-100, sys.argv[1].encode(), -100, sys.argv[2].encode(), 2)
"""


@pytest.fixture(params=["openat2", "steps"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways to resolve: by the kernel, and a step at a time where it cannot."""
    if request.param == "steps":
        monkeypatch.setattr(subpaths, "_kernel_resolves", lambda: False)
    elif not subpaths._kernel_resolves():
        pytest.skip("this kernel has no openat2")
    return str(request.param)


@pytest.fixture
def volume(tmp_path: Path) -> Path:
    volume = tmp_path / "volume"
    volume.mkdir()
    return volume


def opened(volume: Path, path: str, *, make: bool = False) -> str:
    found = open_subpath(volume, path, make=make)
    try:
        return os.path.relpath(path_of(found), volume)
    finally:
        os.close(found)


@contextmanager
def exchanging(one: Path, other: Path) -> Iterator[None]:
    command = [sys.executable, "-c", EXCHANGE, str(one), str(other), str(os.getpid())]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"on\n"
            yield
        finally:
            process.kill()


def test_missing_sub_path_directories_get_the_mode_of_the_volume(way: str, volume: Path) -> None:
    volume.chmod(0o2777)
    assert opened(volume, "a/./b/", make=True) == "a/b"
    assert stat.S_IMODE((volume / "a" / "b").stat().st_mode) == 0o2777  # whoever a container runs as may write
    with pytest.raises(FileNotFoundError):
        opened(volume, "a/c")


def test_links_inside_a_volume_are_followed_and_links_out_of_it_rejected(
    way: str, volume: Path, tmp_path: Path
) -> None:
    (volume / "real" / "deep").mkdir(parents=True)
    (volume / "inner").symlink_to("real")
    (volume / "up").symlink_to("real/deep/../../inner")
    (volume / "named").symlink_to(volume / "real")
    (volume / "file").write_text("x")
    (volume / "outer").symlink_to(tmp_path)
    (volume / "above").symlink_to("real/../..")
    (volume / "absolute").symlink_to("/etc")
    (volume / "beside").symlink_to(f"{volume}-other")
    (volume / "round").symlink_to("round")
    assert opened(volume, "inner/new", make=True) == "real/new"
    assert opened(volume, "up/deep") == "real/deep"
    assert opened(volume, "named/deep") == "real/deep"  # an absolute link, to the same volume
    assert opened(volume, "file") == "file"
    for path in ("outer", "outer/new", "above", "absolute/passwd", "beside", "../volume", "real/../..", "/etc"):
        with pytest.raises(SubPathError):
            opened(volume, path, make=True)
    for path in ("round", "file/below"):
        with pytest.raises(OSError, match=r"Too many levels|Not a directory"):
            opened(volume, path, make=True)
    assert not (tmp_path / "new").exists()
    assert not Path(f"{volume}-other").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="magic links are of Linux")
def test_magic_links_of_proc_are_not_followed(way: str) -> None:
    with pytest.raises((SubPathError, OSError)):
        opened(Path("/proc/self"), "root/etc")


@LINUX
@pytest.mark.parametrize("outside", ["/etc", "../outside"])
def test_cve_2021_25741_a_directory_exchanged_for_a_link_never_leads_out_of_the_volume(
    way: str, volume: Path, tmp_path: Path, outside: str
) -> None:
    (tmp_path / "outside").mkdir()
    (volume / "part").mkdir()
    (volume / "link").symlink_to(outside)
    found, refused = 0, 0
    with exchanging(volume / "part", volume / "link"):
        while found + refused < TRIES or ((not found or not refused) and found + refused < MOST_TRIES):
            try:
                descriptor = open_subpath(volume, "part")
            except (SubPathError, OSError):
                refused += 1
                continue
            found += 1
            assert path_of(descriptor) in (str(volume / "part"), str(volume / "link"))
            os.close(descriptor)
    assert found > 0
    assert refused > 0, "nothing was exchanged: this was no attack"


@LINUX
def test_cve_2017_1002101_directories_are_never_made_outside_of_the_volume(
    way: str, volume: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (volume / "part").mkdir()
    (volume / "link").symlink_to(outside)
    made = 0
    with exchanging(volume / "part", volume / "link"):
        for number in range(MOST_TRIES):
            if made and number >= TRIES:
                break
            with suppress(SubPathError, OSError):
                os.close(open_subpath(volume, f"part/new-{number}/deep", make=True))
                made += 1
    assert made > 0
    assert [*outside.iterdir()] == []


@LINUX
@AS_ROOT
def test_cve_2021_25741_what_is_bound_for_a_container_is_in_the_volume(volume: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (volume / "part").mkdir()
    (volume / "part" / "mine").touch()
    (outside / "secret").touch()
    (volume / "link").symlink_to(outside)
    mounts = SubPathMounts(tmp_path / "volume-subpaths")
    bound = 0
    with exchanging(volume / "part", volume / "link"):
        try:
            for number in range(MOST_TRIES):
                if bound and number >= TRIES // 6:
                    break
                try:
                    path = mounts.bind("uid", "c", 0, volume, "part")
                except (SubPathError, OSError):
                    continue
                bound += 1
                assert os.listdir(path) == ["mine"]
        finally:
            mounts.release("uid")
    assert bound > 0
    assert (volume / "part" / "mine").exists() or (volume / "link" / "mine").exists()
    assert mounts.uids() == []


@AS_ROOT
def test_a_restarted_agent_releases_earlier_binds_and_deletes_nothing(volume: Path, tmp_path: Path) -> None:
    (volume / "part").mkdir()
    (volume / "part" / "kept").write_text("x")
    (volume / "file").write_text("y")
    before = SubPathMounts(tmp_path / "bound")
    assert (before.bind("uid", "c", 0, volume, "part") / "kept").read_text() == "x"
    assert before.bind("uid", "c", 1, volume, "file").read_text() == "y"
    before.bind("uid", "c", 0, volume, "part")  # again, when the container is started again
    after = SubPathMounts(tmp_path / "bound")
    assert after.uids() == ["uid"]
    after.release("uid")
    assert after.uids() == []
    assert str(tmp_path / "bound") not in Path("/proc/self/mountinfo").read_text()
    assert (volume / "part" / "kept").read_text() == "x"
    assert (volume / "file").read_text() == "y"


def test_only_regular_files_of_a_volume_are_read(volume: Path) -> None:
    (volume / "file").write_text("0123456789")
    os.mkfifo(volume / "pipe")  # would wait for a writer for ever
    assert read_subpath(volume, "file", 4) == b"0123"
    for path in ("pipe", "."):
        with pytest.raises(OSError, match="not a regular file"):
            read_subpath(volume, path, 4)


def test_a_sub_path_error_does_not_expose_host_paths(volume: Path) -> None:
    volumes, container = {"v": MountedVolume(volume)}, Container(name="c")
    asked = VolumeMount(name="v", mount_path="/x", sub_path_expr="$(WHO)/data")
    mount = _mount(asked, container, volumes, {"WHO": "me"})
    assert (mount.source, mount.sub_path) == (volume, "me/data")
    assert (volume / "me" / "data").is_dir()
    (volume / "file").touch()
    with pytest.raises(StartError) as refused:
        _mount(VolumeMount(name="v", mount_path="/x", sub_path="file/below"), container, volumes, {})
    assert str(refused.value) == 'failed to prepare subPath for volumeMount "v" of container "c"'
