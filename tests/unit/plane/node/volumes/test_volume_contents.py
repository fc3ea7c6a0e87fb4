"""Volume content written, owned, measured and removed by the agent, while containers plant links."""

from __future__ import annotations

import os
import stat
import subprocess
from pathlib import Path

import pytest
from tests.unit.plane.node.volumes.test_subpaths import AS_ROOT, LINUX, exchanging

from ostinato.api.meta import ObjectMeta
from ostinato.api.time import Time
from ostinato.kinds.core_v1 import (
    Container,
    HostPathVolumeSource,
    Pod,
    PodSecurityContext,
    PodSpec,
    SecurityContext,
)
from ostinato.plane.node.containers.termination_messages import termination_message
from ostinato.plane.node.runtimes import Exit
from ostinato.plane.node.volumes import payload
from ostinato.plane.node.volumes.contents import ContentError, _safe
from ostinato.plane.node.volumes.mounter import _host_path
from ostinato.plane.node.volumes.ownership import Owner, owner_of, set_directory_group, set_volume_group
from ostinato.plane.node.volumes.payload import File
from ostinato.plane.node.volumes.subpaths import bind, open_subpath
from ostinato.plane.node.volumes.trees import remove_tree, size_of

FILES = {"token": File(b"secret", 0o644), "deep/down": File(b"x", 0o400)}


@pytest.fixture
def volume(tmp_path: Path) -> Path:
    volume = tmp_path / "volume"
    volume.mkdir()
    return volume


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """What no container may reach: a directory with a file, beside the volume."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "token").write_text("theirs")
    (outside / "token").chmod(0o600)
    return outside


def untouched(outside: Path) -> bool:
    known = (outside / "token").stat()
    return (
        os.listdir(outside) == ["token"]
        and (outside / "token").read_text() == "theirs"
        and stat.S_IMODE(known.st_mode) == 0o600
        and known.st_gid == os.getegid()
    )


@pytest.mark.parametrize("target", ["../outside", "..", "../..", "/", "."])
def test_a_planted_data_link_is_replaced_and_its_target_kept(volume: Path, outside: Path, target: str) -> None:
    assert payload.write(volume, FILES, "one")
    (volume / "..data").unlink()
    (volume / "..data").symlink_to(target)
    assert payload.write(volume, FILES, "two")
    assert (volume / "token").read_bytes() == b"secret"
    assert sorted(os.listdir(volume)) == ["..data", "..two", "deep", "token"]
    assert untouched(outside)


def test_planted_links_and_directories_are_replaced_by_files(volume: Path, outside: Path) -> None:
    (volume / "token").symlink_to("../outside/token")
    (volume / "deep").mkdir()
    (volume / "deep" / "theirs").touch()
    (volume / "..data").mkdir()
    (volume / "..data_tmp").mkdir()
    (volume / "gone").symlink_to(outside)
    assert payload.write(volume, FILES, "one")
    assert (volume / "deep" / "down").read_bytes() == b"x"
    assert sorted(os.listdir(volume)) == ["..data", "..one", "deep", "token"]
    assert untouched(outside)


def test_planted_links_in_the_current_version_are_not_read(volume: Path, outside: Path) -> None:
    assert payload.write(volume, {"token": File(b"theirs", 0o600)}, "one")
    (volume / "..one" / "token").unlink()
    (volume / "..one" / "token").symlink_to("../../outside/token")  # the same content and mode
    assert payload.write(volume, {"token": File(b"theirs", 0o600)}, "two")
    assert not (volume / "..two" / "token").is_symlink()
    assert untouched(outside)


def test_an_incomplete_version_is_removed_by_the_next_write(volume: Path) -> None:
    (volume / "..half" / "deep").mkdir(parents=True)
    assert payload.write(volume, FILES, "one")
    assert sorted(os.listdir(volume)) == ["..data", "..one", "deep", "token"]


def test_a_path_that_is_too_deep_is_rejected() -> None:
    with pytest.raises(ContentError, match="128 directories deep"):
        _safe("a/" * 5000 + "b")


@AS_ROOT
def test_files_of_objects_are_readable_by_the_fs_group_and_tokens_belong_to_the_user(volume: Path) -> None:
    files = {"deep/down": File(b"x", 0o400), "token": File(b"t", 0o600, 1000)}
    assert payload.write(volume, files, "one", 2000)
    found = {name: (volume / name).stat() for name in ("deep/down", "token", "..one/deep", "..one", ".")}
    assert {each.st_gid for each in found.values()} == {2000}
    assert stat.S_IMODE(found["deep/down"].st_mode) == 0o440
    assert (stat.S_IMODE(found["token"].st_mode), found["token"].st_uid) == (0o640, 1000)
    assert stat.S_IMODE(found["..one"].st_mode) == 0o2755
    assert not payload.write(volume, files, "two", 2000)
    assert payload.write(volume, files, "two", 2001)


@AS_ROOT
def test_the_owner_of_tokens_is_the_common_user_of_all_containers() -> None:
    def owner(*users: int | None, whole: int | None = None) -> Owner:
        containers = [Container(name="c", security_context=SecurityContext(run_as_user=user)) for user in users]
        context = PodSecurityContext(run_as_user=whole, fs_group=5)
        return owner_of(
            Pod(metadata=ObjectMeta(name="p"), spec=PodSpec(containers=containers, security_context=context))
        )

    assert owner(7, None, whole=7) == Owner(7, 5)
    assert owner(7, 8) == Owner(None, 5)
    assert owner(7, None) == Owner(None, 5)


@AS_ROOT
def test_the_group_of_a_volume_is_set_without_following_links(volume: Path, outside: Path) -> None:
    (volume / "directory").mkdir(mode=0o700)
    (volume / "directory" / "file").write_text("x")
    (volume / "directory" / "file").chmod(0o600)
    (volume / "link").symlink_to("../outside/token")
    (volume / "all").symlink_to("../outside")
    os.mkfifo(volume / "pipe")  # is not opened: it would wait
    set_volume_group(volume, Owner(group=2000))
    assert untouched(outside)
    for name, mode in (("directory", 0o2770), ("directory/file", 0o660), (".", 0o2775)):
        known = (volume / name).stat()
        assert (stat.S_IMODE(known.st_mode), known.st_gid) == (mode, 2000)
    assert (volume / "link").lstat().st_gid == 2000
    (volume / "directory" / "file").chmod(0o600)
    set_volume_group(volume, Owner(group=2000, only_on_mismatch=True))
    assert stat.S_IMODE((volume / "directory" / "file").stat().st_mode) == 0o600


@LINUX
@AS_ROOT
def test_cve_2021_25741_ownership_is_never_changed_through_a_link_that_comes_and_goes(
    volume: Path, outside: Path
) -> None:
    (volume / "part").mkdir()
    (volume / "part" / "token").touch()
    (volume / "file").touch()
    (volume / "link").symlink_to("../outside")
    (volume / "planted").symlink_to("../outside/token")
    with exchanging(volume / "part", volume / "link"), exchanging(volume / "file", volume / "planted"):
        for group in range(3000, 3400):
            set_volume_group(volume, Owner(group=group))
            assert size_of(volume, 1 << 20) < 1 << 20
    assert untouched(outside)
    assert outside.stat().st_gid == os.getegid()


def test_the_group_of_a_linked_directory_is_not_changed(volume: Path, outside: Path) -> None:
    (volume / "empty").symlink_to(outside)
    with pytest.raises(OSError, match=r"Not a directory|Too many levels"):
        set_directory_group(volume / "empty", 0o777, None)
    assert untouched(outside)


def test_trees_deeper_than_path_max_are_measured_and_removed(volume: Path, outside: Path) -> None:
    (volume / "top").mkdir()
    here = os.open(volume / "top", os.O_RDONLY)
    for _ in range(3000):  # deeper than recursion, descriptors and the longest path allow
        os.mkdir("directory", dir_fd=here)
        os.symlink(outside, "link", dir_fd=here)
        below = os.open("directory", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    file = os.open("file", os.O_WRONLY | os.O_CREAT, dir_fd=here)
    os.write(file, bytes(100_000))
    os.close(file)
    os.close(here)
    assert 100_000 < size_of(volume, 1 << 30) < 1 << 30
    remove_tree(volume)
    assert not volume.exists()
    assert untouched(outside)
    (outside.parent / "volume").symlink_to(outside)
    remove_tree(outside.parent / "volume")
    remove_tree(outside.parent / "volume")
    assert untouched(outside)


@LINUX
@AS_ROOT
def test_mounts_in_a_tree_are_not_removed(volume: Path, outside: Path) -> None:
    (volume / "deep" / "mounted").mkdir(parents=True)
    (volume / "deep" / "file").touch()
    found = open_subpath(outside, ".")
    bind(found, volume / "deep" / "mounted", recursive=False)
    os.close(found)
    try:
        remove_tree(volume)
        assert untouched(outside)
        assert not (volume / "deep").exists()  # all but what is mounted, which was taken to the top
    finally:
        lines = Path("/proc/self/mountinfo").read_text().splitlines()
        (mounted,) = (each for each in (line.split()[4] for line in lines) if each.startswith(f"{volume}/"))
        subprocess.run(["umount", mounted], check=True)
    remove_tree(volume)
    assert not volume.exists()
    assert untouched(outside)


def test_a_host_path_file_is_not_created_through_a_dangling_link(volume: Path, tmp_path: Path) -> None:
    (volume / "file").symlink_to(tmp_path / "planted")
    with pytest.raises(FileExistsError):
        _host_path(HostPathVolumeSource(path=str(volume / "file"), type="FileOrCreate"))
    assert not (tmp_path / "planted").exists()


def test_termination_messages_are_not_read_from_links_or_pipes(tmp_path: Path, outside: Path) -> None:
    container = Container(name="c", termination_message_policy="FallbackToLogsOnError")
    ended = Exit(code=1, at=Time.parse("2026-01-01T00:00:00Z"))
    (tmp_path / "message").symlink_to(outside / "token")
    os.mkfifo(tmp_path / "log")
    assert termination_message(container, ended, tmp_path / "message", tmp_path / "log") == ""
