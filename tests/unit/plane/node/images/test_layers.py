"""Layers are unpacked one over the other, and nothing leaves the directory."""

from __future__ import annotations

import io
import os
import stat
import tarfile
from pathlib import Path

import pytest

from ostinato.plane.node.images.image import ImageError
from ostinato.plane.node.images.layers import apply_layer

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="owners of files are kept: needs root")

Entry = tuple[str, bytes] | tarfile.TarInfo


def layer(*entries: Entry) -> io.BytesIO:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for entry in entries:
            if isinstance(entry, tarfile.TarInfo):
                archive.addfile(entry)
            else:
                info = tarfile.TarInfo(entry[0])
                info.size = len(entry[1])
                archive.addfile(info, io.BytesIO(entry[1]))
    stream.seek(0)
    return stream


def special(name: str, kind: bytes, target: str = "", **more: int) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    info.mode = more.get("mode", 0o755)
    info.uid, info.gid = more.get("uid", 0), more.get("gid", 0)
    return info


def tree(root: Path) -> dict[str, bytes]:
    return {str(each.relative_to(root)): each.read_bytes() for each in sorted(root.rglob("*")) if each.is_file()}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_bytes(b"secret")
    made = tmp_path / "root"
    made.mkdir()
    return made


def test_a_later_layer_replaces_and_removes_what_earlier_ones_have(root: Path) -> None:
    apply_layer(layer(("a", b"1"), ("dir/b", b"1"), ("dir/c", b"1"), ("gone/d", b"1"), ("file", b"1")), root)
    second = (("a", b"2"), ("dir/.wh.b", b""), (".wh.gone", b""), special("file", tarfile.DIRTYPE), ("file/x", b"2"))
    apply_layer(layer(*second), root)
    assert tree(root) == {"a": b"2", "dir/c": b"1", "file/x": b"2"}


def test_an_opaque_directory_hides_the_entries_of_lower_layers_only(root: Path) -> None:
    apply_layer(layer(("dir/old", b"1"), ("dir/sub/old", b"1"), ("other", b"1")), root)
    apply_layer(layer(("dir/new", b"2"), ("dir/.wh..wh..opq", b""), ("dir/newer", b"2")), root)
    assert tree(root) == {"dir/new": b"2", "dir/newer": b"2", "other": b"1"}


def test_owners_modes_and_links_are_kept(root: Path) -> None:
    owned = special("bin/su", tarfile.REGTYPE, mode=0o4755, uid=7, gid=8)
    links = (special("hard", tarfile.LNKTYPE, "bin/su"), special("soft", tarfile.SYMTYPE, "/etc/passwd"))
    apply_layer(layer(owned, *links, special("pipe", tarfile.FIFOTYPE, mode=0o622)), root)
    found = (root / "bin" / "su").stat()
    assert (stat.S_IMODE(found.st_mode), found.st_uid, found.st_gid, found.st_nlink) == (0o4755, 7, 8, 2)
    assert os.readlink(root / "soft") == "/etc/passwd"
    assert stat.S_ISFIFO((root / "pipe").lstat().st_mode)


def test_devices_are_left_out(root: Path) -> None:
    apply_layer(layer(special("dev/sda", tarfile.BLKTYPE), special("dev/mem", tarfile.CHRTYPE)), root)
    assert not list((root / "dev").iterdir())


@pytest.mark.parametrize("name", ["../outside/secret", "dir/../../outside/secret", ".wh...", "dir/.wh.."])
def test_a_name_that_leads_out_of_the_image_is_rejected(root: Path, name: str) -> None:
    with pytest.raises(ImageError):
        apply_layer(layer(("dir/a", b""), (name, b"changed")), root)
    assert (root.parent / "outside" / "secret").read_bytes() == b"secret"


@pytest.mark.parametrize("target", ["/", "../../..", "../outside", "/../../outside"])
def test_links_of_the_image_lead_to_places_inside_of_it(root: Path, target: str) -> None:
    """A layer writes, removes and links through a symbolic link that would lead to the machine's files."""
    absolute = str(root.parent / "outside")
    for link in (target, absolute):
        apply_layer(layer(special("door", tarfile.SYMTYPE, link)), root)
        apply_layer(layer(("door/secret", b"changed"), ("door/outside/secret", b"changed")), root)
        apply_layer(layer(("door/.wh.secret", b""), ("door/.wh..wh..opq", b"")), root)
    assert (root.parent / "outside" / "secret").read_bytes() == b"secret"


def test_a_hard_link_cannot_name_a_file_of_the_machine(root: Path) -> None:
    door = special("door", tarfile.SYMTYPE, str(root.parent / "outside"))
    with pytest.raises(ImageError, match="hard link's target door/secret is not in the image"):
        apply_layer(layer(door, special("mine", tarfile.LNKTYPE, "door/secret")), root)
    with pytest.raises(ImageError, match="leads out of the image"):
        apply_layer(layer(special("mine", tarfile.LNKTYPE, "../outside/secret")), root)


def test_a_file_is_not_written_through_a_link_of_its_own_name(root: Path) -> None:
    link = special("secret", tarfile.SYMTYPE, str(root.parent / "outside" / "secret"))
    apply_layer(layer(link, ("secret", b"changed")), root)
    assert (root.parent / "outside" / "secret").read_bytes() == b"secret"
    assert tree(root) == {"secret": b"changed"}


def test_links_in_a_circle_are_an_error(root: Path) -> None:
    circle = (special("a", tarfile.SYMTYPE, "b"), special("b", tarfile.SYMTYPE, "a"))
    with pytest.raises(ImageError, match="too many symbolic links"):
        apply_layer(layer(*circle, ("a/file", b"")), root)


def test_bytes_that_are_no_archive_are_an_error(root: Path) -> None:
    with pytest.raises(ImageError, match="not a tar archive"):
        apply_layer(io.BytesIO(b"\xff" * 2000), root)
