"""`ostinato images`: load, build, list and remove the images of the process runtime or of containerd."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import msgspec

from ostinato.cli.error import CommandError
from ostinato.cli.options.server.storage import default_state
from ostinato.cli.progress import blocking_progress
from ostinato.plane.node.images.archive import open_archive
from ostinato.plane.node.images.build import Layer, directory_layer, write_archive
from ostinato.plane.node.images.containerd import ContainerdImages
from ostinato.plane.node.images.dockerfile import build
from ostinato.plane.node.images.image import ImageConfig, ImageError
from ostinato.plane.node.images.reference import full_name
from ostinato.plane.node.images.store import ImageStore
from ostinato.plane.node.runtimes import IMAGES
from ostinato.world import World


def run(options: argparse.Namespace) -> None:
    """Run the subcommand; CommandError if an image cannot be read, built or stored."""
    command, what = {
        "load": (_load, "loading images"),
        "list": (_list, "listing images"),
        "remove": (_remove, "removing the image"),
        "import-dir": (_import_directory, "making the image"),
        "build": (_build, "building the image"),
    }[options.action]
    try:
        with blocking_progress(what, World.real()):
            command(options)
    except (ImageError, OSError) as error:
        raise CommandError(str(error)) from error


def _load(options: argparse.Namespace) -> None:
    _store(options, Path(options.file), options.name)


def _store(options: argparse.Namespace, file: Path, name: str | None) -> None:
    """Put the images of an archive into the image store or containerd."""
    with open_archive(file) as images:
        if name is not None and len(images) != 1:
            raise CommandError(f"--name {name}: {file} has {len(images)} images")
        named = {image.id: [full_name(each) for each in ([name] if name else image.names)] for image in images}
        for image in images:
            if not named[image.id]:
                raise CommandError(f"{file}: the image {image.id} has no name; give it one with --name")
        if options.containerd is None:
            store = _image_store(options)
            for image in images:
                store.add(image, named[image.id])
        else:
            _load_into_containerd(options, file, name)
    for names in named.values():
        for each in names:
            _print(f"loaded {each}")


def _load_into_containerd(options: argparse.Namespace, file: Path, name: str | None) -> None:
    """containerd reads archives, not layouts, and uses the names that they have."""
    images = ContainerdImages(Path(options.containerd))
    if file.is_file() and name is None:
        images.load(file)
        return
    with tempfile.TemporaryDirectory() as work, open_archive(file) as archived:
        root = Path(work) / "root"
        for number, image in enumerate(archived):
            root.mkdir()
            image.unpack(root)
            layer = directory_layer(root, Path(work) / f"layer-{number}.tar")
            made = Path(work) / f"image-{number}.tar"
            write_archive(made, [name] if name else image.names, image.document.config or ImageConfig(), [layer])
            images.load(made)
            root.rename(Path(work) / f"root-{number}")


def _list(options: argparse.Namespace) -> None:
    if options.containerd is not None:
        for name in ContainerdImages(Path(options.containerd)).names():
            _print(name)
        return
    rows = [(name, image) for image in _image_store(options).images() for name in image.names or ["<none>"]]
    width = max([len("NAME"), *(len(name) for name, _ in rows)])
    _print(f"{'NAME':{width}}  {'ID':12}  SIZE")
    for name, image in sorted(rows, key=lambda row: row[0]):
        _print(f"{name:{width}}  {image.id.removeprefix('sha256:')[:12]}  {image.size / 1_000_000:.1f} MB")


def _remove(options: argparse.Namespace) -> None:
    if options.containerd is not None:
        removed = ContainerdImages(Path(options.containerd)).remove(full_name(options.name))
    else:
        removed = _image_store(options).remove(options.name, _roots_in_use(_state(options)))
    if not removed:
        raise CommandError(f"{options.name}: no such image; `ostinato images list` lists them")
    _print(f"removed {options.name}")


def _import_directory(options: argparse.Namespace) -> None:
    for each in options.env:
        if "=" not in each:
            raise CommandError(f"--env {each}: want NAME=VALUE")
    config = ImageConfig(
        entrypoint=_words(options.entrypoint),
        cmd=_words(options.cmd),
        env=options.env or None,
        user=options.user,
        working_dir=options.workdir,
    )
    with tempfile.TemporaryDirectory() as work:
        layer = directory_layer(Path(options.directory), Path(work) / "layer.tar")
        _finish(options, Path(work), config, [layer])


def _build(options: argparse.Namespace) -> None:
    context = Path(options.context)
    arguments = dict(each.partition("=")[::2] for each in options.build_arg)
    file = Path(options.file) if options.file else context / "Dockerfile"
    with tempfile.TemporaryDirectory() as work:
        built = build(file, context, Path(work), lambda name, to: _base(options, name, to), arguments)
        _finish(options, Path(work), built.config, built.layers)


def _base(options: argparse.Namespace, name: str, work: Path) -> tuple[ImageConfig, list[Layer]]:
    """The settings of an image on this machine, and its file system as one layer."""
    if options.containerd is not None:
        saved = work / "base-image.tar"
        ContainerdImages(Path(options.containerd)).save(full_name(name), saved)
        with open_archive(saved) as [image]:
            config = image.document.config or ImageConfig()
            root = work / "base-root"
            root.mkdir()
            image.unpack(root)
    else:
        found = _image_store(options).find(name)
        if found is None:
            raise ImageError(f"the image {name} is not on this machine; load it first with `ostinato images load`")
        config, root = found.config, found.root
    return config, [directory_layer(root, work / "base.tar")]


def _finish(options: argparse.Namespace, work: Path, config: ImageConfig, layers: list[Layer]) -> None:
    target = Path(options.output) if options.output else work / "image.tar"
    try:
        write_archive(target, [options.name], config, layers)
    except ValueError as error:
        raise CommandError(f"--name {options.name}: {error}") from None
    if options.output:
        _print(f"wrote {target}: {full_name(options.name)}")
    else:
        _store(options, target, None)


def _image_store(options: argparse.Namespace) -> ImageStore:
    if os.geteuid() != 0 and options.action != "list":
        raise CommandError("images of the process runtime need root; or name containerd's socket with --containerd")
    return ImageStore(_state(options) / IMAGES)


def _state(options: argparse.Namespace) -> Path:
    return Path(options.state) if options.state else default_state()


def _roots_in_use(state: Path) -> list[Path]:
    """The roots that containers of the nodes with this state directory have mounted."""
    found = []
    for each in state.glob("**/containers/*/*/launch.json"):
        with suppress(OSError, msgspec.DecodeError, KeyError, TypeError):
            launch = msgspec.json.decode(each.read_bytes())
            found += [Path(launch["isolation"]["template"]), *(Path(bind[0]) for bind in launch["binds"])]
    return found


def _words(text: str | None) -> list[str] | None:
    return None if text is None else shlex.split(text)


def _print(line: str) -> None:
    sys.stdout.write(f"{line}\n")
