"""A private containerd for tests, with an image of busybox; removed afterwards."""

from __future__ import annotations

import asyncio
import hashlib
import io
import json
import os
import shutil
import signal
import subprocess
import tarfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from ostinato.plane.node.runtimes.containerd import connect
from ostinato.plane.node.runtimes.containerd.images import ImageManager
from ostinato.world import World

IMAGE = "docker.io/library/busybox:1"
_PLUGINS = Path("/usr/lib/cni")
_BUSYBOX = Path("/bin/busybox")
_TIMEOUT = 30.0


def binaries() -> Path:
    """The directory with containerd, its shim and ctr; skips the test where there is none, or it could not run."""
    if os.geteuid() != 0:
        pytest.skip("containerd needs root")
    built = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "ostinato-real"
    places = [os.environ.get("OSTINATO_CONTAINERD", ""), os.path.dirname(shutil.which("containerd") or "")]
    places += map(str, built.glob("*"))
    found = next((Path(each) for each in places if each and (Path(each) / "containerd").exists()), None)
    if found is None:
        pytest.skip("there is no containerd on this machine")
    shim = "containerd-shim-runc-v2"
    for what, there in (
        ("runc", shutil.which("runc")),
        (shim, shutil.which(shim, path=f"{found}{os.pathsep}{os.environ['PATH']}")),
        (f"CNI plugins in {_PLUGINS}", (_PLUGINS / "bridge").exists()),
        ("a static busybox", _BUSYBOX.exists()),
        ("ctr", (found / "ctr").exists()),
    ):
        if not there:
            pytest.skip(f"containerd needs {what} here")
    return found


@contextmanager
def containerd(directory: Path) -> Iterator[Path]:
    """The socket of one that runs."""
    own = binaries()
    bridge, subnet = f"ost{os.getpid()}", f"10.{100 + os.getpid() % 100}.0.0/24"
    socket, settings = directory / "containerd.sock", directory / "config.toml"
    (directory / "cni").mkdir()
    settings.write_text(_config(directory, socket))
    addresses = {"type": "host-local", "dataDir": f"{directory}/addresses", "ranges": [[{"subnet": subnet}]]}
    plugin = {"type": "bridge", "bridge": bridge, "isGateway": True, "ipam": addresses}
    network = {"cniVersion": "0.4.0", "name": bridge, "plugins": [plugin]}
    (directory / "cni" / "10-bridge.conflist").write_text(json.dumps(network))
    environment = {**os.environ, "PATH": f"{own}:{os.environ['PATH']}"}
    with (directory / "log").open("wb") as log:
        process = subprocess.Popen(
            [own / "containerd", "--config", settings], stdout=log, stderr=log, env=environment, start_new_session=True
        )
    ctr = [own / "ctr", "--address", socket, "--namespace", "k8s.io"]
    try:
        _wait_for([*ctr, "version"], directory / "log")
        subprocess.run([*ctr, "images", "import", _image(directory)], check=True, capture_output=True)
        asyncio.run(_image_is_known(socket))
        yield socket
    finally:
        _end(process, ctr, socket, bridge, directory)


def _config(directory: Path, socket: Path) -> str:
    return f"""version = 2
root = "{directory}/root"
state = "{directory}/state"
[grpc]
  address = "{socket}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{IMAGE}"
  restrict_oom_score_adj = true
[plugins."io.containerd.grpc.v1.cri".cni]
  bin_dir = "{_PLUGINS}"
  conf_dir = "{directory}/cni"
"""


def _wait_for(command: list[Path | str], log: Path) -> None:
    until = time.monotonic() + _TIMEOUT
    while subprocess.run(command, check=False, capture_output=True).returncode != 0:
        if time.monotonic() > until:
            pytest.skip(f"containerd does not run here: {log.read_text()[-500:]}")
        time.sleep(0.05)


async def _image_is_known(socket: Path) -> None:
    """The part of containerd that runs Pods hears of new images a bit later."""
    world = World.real()
    found = await connect(world, socket)
    async with asyncio.timeout(_TIMEOUT):
        while await ImageManager(found.cri, world.clock).find(IMAGE) is None:  # noqa: ASYNC110 - it tells nobody
            await asyncio.sleep(0.05)
    await found.close()


def _image(directory: Path) -> Path:
    """One layer with busybox and its commands. Without a command it sleeps, as what holds a sandbox does."""
    layer = io.BytesIO()
    commands = subprocess.run([_BUSYBOX, "--list"], check=True, capture_output=True, text=True).stdout.split()
    with tarfile.open(fileobj=layer, mode="w") as tar:
        for folder in ("bin", "tmp", "etc", "proc", "sys", "dev"):
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o1777 if folder == "tmp" else 0o755
            tar.addfile(entry)
        tar.add(_BUSYBOX, "bin/busybox")
        for command in set(commands) - {"busybox"}:
            entry = tarfile.TarInfo(f"bin/{command}")
            entry.type, entry.linkname = tarfile.SYMTYPE, "busybox"
            tar.addfile(entry)
    settings = json.dumps(
        {
            "architecture": "amd64",
            "os": "linux",
            "config": {"Env": ["PATH=/bin"], "Entrypoint": ["/bin/sleep"], "Cmd": ["1000000"]},
            "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(layer.getvalue()).hexdigest()]},
        }
    ).encode()
    named = hashlib.sha256(settings).hexdigest() + ".json"
    manifest = json.dumps([{"Config": named, "RepoTags": [IMAGE], "Layers": ["layer.tar"]}]).encode()
    archive = directory / "image.tar"
    with tarfile.open(archive, "w") as tar:
        for name, content in ((named, settings), ("layer.tar", layer.getvalue()), ("manifest.json", manifest)):
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return archive


def _end(process: subprocess.Popen[bytes], ctr: list[Path | str], socket: Path, bridge: str, directory: Path) -> None:
    """Shims outlive containerd: what they run goes first, then they, then it."""
    tasks = subprocess.run([*ctr, "tasks", "ls", "-q"], check=False, capture_output=True, text=True).stdout.split()
    for task in tasks:
        subprocess.run([*ctr, "tasks", "rm", "--force", task], check=False, capture_output=True)
    for each in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            words = (each / "cmdline").read_bytes().split(b"\0")
            if b"containerd-shim" in words[0] and str(socket).encode() in words:
                os.kill(int(each.name), signal.SIGKILL)
    process.terminate()
    process.wait(timeout=_TIMEOUT)
    for line in reversed(Path("/proc/mounts").read_text().splitlines()):
        place = line.split()[1]
        if Path(place).is_relative_to(directory):
            subprocess.run(["umount", place], check=False, capture_output=True)
    subprocess.run(["ip", "link", "delete", bridge], check=False, capture_output=True)
