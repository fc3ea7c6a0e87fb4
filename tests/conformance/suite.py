"""The programs of the suite: built once from the modules that `go/go.mod` pins, and kept in a cache directory.

- `OSTINATO_CONFORMANCE` names the directory. Defaults to `ostinato/conformance` in the user's cache directory.
- `bin/` has the programs, `images/` the archives of `images.py`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

VERSION: Final = "v1.36.4"
_MODULE: Final = Path(__file__).parent / "go"
_STAMPED: Final = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
_PACKAGES: Final = {
    "agnhost": "k8s.io/kubernetes/test/images/agnhost",
    "e2e.test": "k8s.io/kubernetes/test/e2e",
    "kubectl": "k8s.io/kubernetes/cmd/kubectl",
    "nnp": "k8s.io/kubernetes/test/images/nonewprivs",
    "pause": "./pause",
    "sample-apiserver": "k8s.io/sample-apiserver",
    "sh": "./sh",
}


class MissingError(Exception):
    """Something that the suite needs is not on this machine; the message says what."""


class Suite:
    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.images = directory / "images"

    @property
    def is_built(self) -> bool:
        return self.program("e2e.test").exists() and self.program("kubectl").exists()

    def program(self, name: str) -> Path:
        return self.directory / "bin" / name

    def build(self) -> None:
        """Build the programs that are missing; about 15 minutes on two cores for all."""
        missing = [name for name in _PACKAGES if not self.program(name).exists()]
        if missing and shutil.which("go") is None:
            raise MissingError(f"no Go to build {', '.join(missing)} with; install Go 1.26")
        for name in missing:
            print(f"building {name}", flush=True)
            self._build(name)

    def sources(self, package: str) -> Path:
        """Return the directory of a package of the modules."""
        return Path(_go("list", "-f", "{{.Dir}}", package).strip())

    def _build(self, name: str) -> None:
        version = VERSION.removeprefix("v").split(".")
        values = {"gitVersion": VERSION, "gitMajor": version[0], "gitMinor": version[1]}
        stamp = " ".join(f"-X {package}.{key}={value}" for package in _STAMPED for key, value in values.items())
        verb = ["test", "-c", "-vet=off"] if name == "e2e.test" else ["build"]
        output = self.program(name)
        output.parent.mkdir(parents=True, exist_ok=True)
        unfinished = output.with_name(f"{name}.new")
        _go(*verb, "-trimpath", "-ldflags", f"-s -w {stamp}", "-o", str(unfinished), _PACKAGES[name])
        unfinished.replace(output)


def default_directory() -> Path:
    named = os.environ.get("OSTINATO_CONFORMANCE")
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(named) if named else Path(cache) / "ostinato" / "conformance"


def _go(*arguments: str) -> str:
    environment = {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "-buildvcs=false -mod=readonly"}
    done = subprocess.run(["go", *arguments], cwd=_MODULE, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise MissingError(f"go {arguments[0]} failed: {done.stderr[-1000:]}")
    return done.stdout
