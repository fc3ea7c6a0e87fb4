"""Images from archives: digests are checked, names found, and a store is shared by processes."""

from __future__ import annotations

import gzip
import hashlib
import importlib
import io
import json
import os
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from ostinato.plane.node.images.archive import open_archive
from ostinato.plane.node.images.build import directory_layer, write_archive
from ostinato.plane.node.images.image import ImageConfig, ImageError, machine_architecture
from ostinato.plane.node.images.store import ImageStore

ZSTD = importlib.import_module("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="owners of files are kept: needs root")


def archive(place: Path, *names: str, content: str = "1") -> Path:
    """An OCI archive of an image with one file."""
    root = place / f"root-{content}"
    root.mkdir(parents=True, exist_ok=True)
    (root / "file").write_text(content)
    target = place / f"image-{content}.tar"
    config = ImageConfig(entrypoint=["/run"], env=["A=b=c"], user="7")
    write_archive(target, names, config, [directory_layer(root, place / f"layer-{content}.tar")])
    return target


def docker_archive(place: Path, compress: Callable[[bytes], bytes] | None = None) -> Path:
    """As of `docker save`, with a layer that is named by a link."""
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as made:
        info = tarfile.TarInfo("etc/file")
        made.addfile(info, io.BytesIO(b""))
    data = layer.getvalue()
    config = json.dumps(
        {
            "architecture": machine_architecture(),
            "os": "linux",
            "config": {"Cmd": ["sh"], "Env": None},
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(data).hexdigest()}"] * 2},
        }
    ).encode()
    manifest = [{"Config": "c.json", "RepoTags": ["old:1", "old:2"], "Layers": ["1/layer.tar", "2/layer.tar"]}]
    target = place / "docker.tar"
    with tarfile.open(target, "w:gz" if compress else "w") as made:
        for name, content in {
            "c.json": config,
            "manifest.json": json.dumps(manifest).encode(),
            "1/layer.tar": compress(data) if compress else data,
        }.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            made.addfile(info, io.BytesIO(content))
        link = tarfile.TarInfo("2/layer.tar")
        link.type, link.linkname = tarfile.SYMTYPE, "../1/layer.tar"
        made.addfile(link)
    return target


def load(store: ImageStore, path: Path) -> None:
    with open_archive(path) as images:
        for image in images:
            store.add(image, image.names)


@pytest.fixture
def store(tmp_path: Path) -> ImageStore:
    return ImageStore(tmp_path / "images")


def test_a_loaded_image_is_found_by_each_of_its_names(store: ImageStore, tmp_path: Path) -> None:
    load(store, archive(tmp_path, "web:1", "registry.example/team/web:one"))
    found = store.find("web:1")
    assert found is not None
    same = (found.id, "docker.io/library/web:1", "registry.example/team/web:one", f"web@{found.manifest}")
    assert all(store.find(each) == found for each in same)
    assert found.config.entrypoint == ["/run"]
    assert found.config.environment == {"A": "b=c"}
    assert (found.root / "file").read_text() == "1"
    assert [store.find(each) for each in ("web", "web:2", f"other@{found.manifest}", "sha256:" + "0" * 64)] == [
        None
    ] * 4
    assert [image.names for image in store.images()] == [found.names]


@pytest.mark.parametrize("compress", [None, gzip.compress, ZSTD.compress])
def test_archives_of_docker_save_are_read(
    store: ImageStore, tmp_path: Path, compress: Callable[[bytes], bytes] | None
) -> None:
    load(store, docker_archive(tmp_path, compress))
    found = store.find("old:2")
    assert found is not None
    assert found.config.cmd == ["sh"]
    assert (found.root / "etc" / "file").exists()


def test_without_zstd_the_error_names_the_extra(
    store: ImageStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, ZSTD.__name__, None)
    with pytest.raises(ImageError, match=r"is compressed with zstd; install ostinato\[images\]"):
        load(store, docker_archive(tmp_path, ZSTD.compress))


def test_a_damaged_layer_of_zstd_is_detected(store: ImageStore, tmp_path: Path) -> None:
    def damaged(data: bytes) -> bytes:
        made = bytearray(ZSTD.compress(data))
        made[len(made) // 2] ^= 0xFF
        return bytes(made)

    with pytest.raises(ImageError, match=r"is damaged|not a tar archive"):
        load(store, docker_archive(tmp_path, damaged))


def test_layouts_are_read(store: ImageStore, tmp_path: Path) -> None:
    with tarfile.open(archive(tmp_path, "web:1")) as made:
        made.extractall(tmp_path / "layout", filter="data")
    load(store, tmp_path / "layout")
    assert store.find("web:1") is not None


def test_a_name_moves_to_the_image_that_was_loaded_last(store: ImageStore, tmp_path: Path) -> None:
    load(store, archive(tmp_path, "web:1"))
    load(store, archive(tmp_path, "web:1", content="2"))
    found = store.find("web:1")
    assert found is not None
    assert (found.root / "file").read_text() == "2"
    assert sorted(len(image.names) for image in store.images()) == [0, 1]


def test_a_removed_image_stays_while_a_container_uses_it(store: ImageStore, tmp_path: Path) -> None:
    load(store, archive(tmp_path, "web:1"))
    [image] = store.images()
    assert store.remove("web:1", in_use=[image.root])
    assert store.find("web:1") is None
    assert image.root.exists()
    assert not store.remove("web:1", in_use=[])
    assert not image.root.exists()


def test_a_damaged_layer_is_detected_and_leaves_nothing_behind(store: ImageStore, tmp_path: Path) -> None:
    whole = archive(tmp_path, "web:1")
    data = bytearray(whole.read_bytes())
    at = data.index(b"file\0")
    data[at : at + 4] = b"evil"
    whole.write_bytes(data)
    with pytest.raises(ImageError, match=r"layer sha256:.* is damaged: its digest is sha256:|not a tar archive"):
        load(store, whole)
    assert store.images() == []
    assert store.find("web:1") is None


def test_a_load_that_was_killed_is_repeated(store: ImageStore, tmp_path: Path) -> None:
    part = tmp_path / "images" / "part-sha256-0"
    part.mkdir(parents=True)
    (part / "rest").touch()
    load(store, archive(tmp_path, "web:1"))
    assert not part.exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is not an archive"),
        (b"no archive", "is not an archive"),
        (None, "neither index.json .* nor manifest.json"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, content: bytes | None, message: str) -> None:
    path = tmp_path / "file"
    if content is None:
        with tarfile.open(path, "w"):
            pass
    else:
        path.write_bytes(content)
    with pytest.raises(ImageError, match=message), open_archive(path):
        pass


def test_an_image_for_another_machine_is_refused(tmp_path: Path) -> None:
    layout = tmp_path / "layout"
    layout.mkdir()
    other = {"digest": f"sha256:{'0' * 64}", "platform": {"os": "linux", "architecture": "s390x"}}
    (layout / "index.json").write_text(json.dumps({"manifests": [other]}))
    with pytest.raises(ImageError, match=f"has no image for linux/{machine_architecture()}"), open_archive(layout):
        pass


def test_the_store_is_for_its_owner_alone(store: ImageStore, tmp_path: Path) -> None:
    load(store, archive(tmp_path, "web:1"))
    assert (tmp_path / "images").stat().st_mode & 0o077 == 0
