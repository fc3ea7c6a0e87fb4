"""Volume directories: atomic updates, paths, host paths, and links in place of mounts."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ostinato.kinds.core_v1 import HostPathVolumeSource
from ostinato.plane.node.runtimes import Mount, StartError
from ostinato.plane.node.runtimes.process.mount_links import OPTIONAL_TARGETS, MountLinks
from ostinato.plane.node.volumes import payload
from ostinato.plane.node.volumes.contents import ContentError, _safe
from ostinato.plane.node.volumes.mounter import _host_path
from ostinato.plane.node.volumes.payload import File


def test_projected_files_change_atomically(tmp_path: Path) -> None:
    assert payload.write(tmp_path, {"colour": File(b"red", 0o644), "deep/down": File(b"x", 0o400)}, "one")
    assert os.readlink(tmp_path / "colour") == "..data/colour"
    assert (tmp_path / "deep" / "down").stat().st_mode & 0o777 == 0o400
    inside = os.open(tmp_path / "..data", os.O_RDONLY)  # somebody reads
    assert payload.write(tmp_path, {"colour": File(b"blue", 0o644), "shape": File(b"round", 0o644)}, "two")
    os.close(inside)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["..data", "..two", "colour", "shape"]
    assert (tmp_path / "colour").read_bytes() == b"blue"


def test_unchanged_projected_files_are_not_rewritten(tmp_path: Path) -> None:
    files = {"colour": File(b"red", 0o644)}
    assert payload.write(tmp_path, files, "one")
    assert not payload.write(tmp_path, files, "two")
    assert payload.write(tmp_path, {"colour": File(b"red", 0o600)}, "three")


@pytest.mark.parametrize("path", ["../x", "a/../../x", "/x", "", "..data"])
def test_projected_paths_must_stay_inside_the_volume(path: str) -> None:
    with pytest.raises(ContentError):
        _safe(path)


@pytest.mark.parametrize(
    ("kind", "name", "message"),
    [
        ("Directory", "file", "is not a directory"),
        ("File", "directory", "is not a file"),
        ("File", "absent", "is not a file"),
        ("Socket", "file", "is not a socket file"),
        ("CharDevice", "file", "is not a character device"),
        ("BlockDevice", "file", "is not a block device"),
    ],
)
def test_a_host_path_must_have_its_type(tmp_path: Path, kind: str, name: str, message: str) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "directory").mkdir()
    with pytest.raises(ContentError, match=f"hostPath type check failed: {tmp_path}/{name} {message}"):
        _host_path(HostPathVolumeSource(path=str(tmp_path / name), type=kind))


@pytest.mark.parametrize(("kind", "is_directory"), [("DirectoryOrCreate", True), ("FileOrCreate", False), ("", True)])
def test_a_host_path_is_created_if_its_type_says_so(tmp_path: Path, kind: str, is_directory: bool) -> None:
    path = _host_path(HostPathVolumeSource(path=str(tmp_path / "new"), type=kind))
    assert path.is_dir() == is_directory
    assert path.exists()


def container(directory: Path, name: str) -> Path:
    home = directory / "pods" / name / "containers" / "c" / "0"
    home.mkdir(parents=True)
    return home


def test_mount_links_are_shared_and_removed_with_their_last_container(tmp_path: Path) -> None:
    links = MountLinks(tmp_path / "state")
    (tmp_path / "state").mkdir()
    (tmp_path / "source").mkdir()
    one, two = (container(tmp_path / "state", name) for name in ("one", "two"))
    mount = Mount(tmp_path / "source", f"{tmp_path}/deep/./down")
    links.add(one, [mount])
    assert os.readlink(f"{tmp_path}/deep/down") == f"{tmp_path}/source"
    links.add(two, [mount])
    links.remove(one)
    assert (tmp_path / "deep" / "down").is_dir()
    again = MountLinks(tmp_path / "state")  # another agent
    again.remove(two)
    assert not (tmp_path / "deep").exists()


def test_an_existing_mount_path_is_not_replaced_by_a_link(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "there").mkdir()
    links = MountLinks(tmp_path / "state")
    one = container(tmp_path / "state", "one")
    with pytest.raises(StartError, match="is in use by this machine"):
        links.add(one, [Mount(tmp_path, f"{tmp_path}/there")])
    links.remove(one)
    assert (tmp_path / "there").is_dir()
    assert not (tmp_path / "there").is_symlink()


def test_without_root_one_mount_path_cannot_have_two_volumes(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "taken").mkdir()
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
    links = MountLinks(tmp_path / "state")
    one, two = (container(tmp_path / "state", name) for name in ("one", "two"))
    target = f"{tmp_path}/at"
    links.add(one, [Mount(tmp_path / "first", target)])
    assert os.readlink(target) == f"{tmp_path}/first"
    with pytest.raises(StartError, match="is in use by another container"):
        links.add(two, [Mount(tmp_path / "second", target)])
    links.remove(two)
    assert os.readlink(target) == f"{tmp_path}/first"
    with pytest.raises(StartError, match="is in use by this machine"):
        links.add(two, [Mount(tmp_path / "second", f"{tmp_path}/taken")])
    links.remove(two)
    links.remove(one)
    assert not os.path.lexists(target)
    assert (tmp_path / "taken").is_dir()


def test_without_root_default_mounts_are_skipped_on_conflict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the log of a termination, for which every container asks."""
    assert "/dev/termination-log" in OPTIONAL_TARGETS
    target = f"{tmp_path}/log"
    monkeypatch.setattr("ostinato.plane.node.runtimes.process.mount_links.OPTIONAL_TARGETS", {target})
    (tmp_path / "state").mkdir()
    links = MountLinks(tmp_path / "state")
    for name in ("one", "two"):
        (tmp_path / name).touch()
        links.add(container(tmp_path / "state", name), [Mount(tmp_path / name, target)])
    assert os.readlink(target) == f"{tmp_path}/one"


@pytest.mark.parametrize("target", ["/", "relative", "/a/.."])
def test_a_mount_path_is_absolute_and_not_the_root(tmp_path: Path, target: str) -> None:
    links = MountLinks(tmp_path)
    with pytest.raises(StartError, match="want an absolute path below the root"):
        links.add(container(tmp_path, "one"), [Mount(tmp_path, target)])
