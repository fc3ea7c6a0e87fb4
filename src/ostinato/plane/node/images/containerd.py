"""Put images into containerd, through its own command `ctr`, in the namespace of Kubernetes."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Final

from ostinato.plane.node.images.image import ImageError

_NAMESPACE: Final = "k8s.io"


class ContainerdImages:
    def __init__(self, socket: Path) -> None:
        self._socket = socket

    def load(self, archive: Path) -> None:
        self._call("images", "import", "--local", str(archive))

    def save(self, name: str, archive: Path) -> None:
        self._call("images", "export", "--local", str(archive), name)

    def names(self) -> list[str]:
        """Return the names of all images, without those by digest."""
        found = self._call("images", "list", "--quiet").split()
        return sorted(each for each in found if "@" not in each and not each.startswith("sha256:"))

    def remove(self, name: str) -> bool:
        if name not in self.names():
            return False
        self._call("images", "remove", "--sync", name)
        return True

    def _call(self, *arguments: str) -> str:
        program = shutil.which("ctr")
        if program is None:
            raise ImageError("`ctr` is not on PATH; install containerd's client programs")
        command = [program, "--address", str(self._socket), "--namespace", _NAMESPACE, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - no shell
        if done.returncode and "--local" in arguments and "flag provided but not defined" in done.stdout + done.stderr:
            return self._call(*(each for each in arguments if each != "--local"))  # containerd 1.6 has no other way
        if done.returncode:
            last = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
            raise ImageError(f"containerd at {self._socket}: {''.join(last)}")
        return done.stdout
