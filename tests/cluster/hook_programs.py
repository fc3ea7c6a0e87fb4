"""Programs that run hook directories: ours and the original, each in the file system that hooks of images expect.

Hooks of shell-operator's images name `/hooks`, `/shell_lib.sh` and `/frameworks`. A program runs in a mount namespace
with a root directory of its own, which has these and, bound, all directories of this machine.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

SECONDS = 60

_ROOT = r"""
set -e
root=$1 hooks=$2 original=$3; shift 3
mount --make-rprivate /
mount -t tmpfs tmpfs "$root"
for each in /*; do
  [[ $each == /hooks || $each == /frameworks || $each == /shell_lib.sh ]] && continue
  if [[ -L $each ]]; then cp -P "$each" "$root$each"
  elif [[ -d $each ]]; then mkdir "$root$each"; mount --rbind "$each" "$root$each"; fi
done
mkdir "$root/hooks" "$root/frameworks"
mount --bind "$hooks" "$root/hooks"
if [[ -n $original ]]; then
  mount --bind "$original/frameworks" "$root/frameworks"
  cp "$original/shell_lib.sh" "$root/shell_lib.sh"
fi
exec chroot "$root" "$@"
"""


def originals() -> Path:
    """Return the directory of the original tools; skip the test if there is none."""
    given = os.environ.get("OSTINATO_ORIGINALS")
    if not given:
        pytest.skip("OSTINATO_ORIGINALS does not name a directory with the original tools")
    return Path(given)


def require(*programs: str) -> None:
    for program in programs:
        if shutil.which(program) is None:
            pytest.skip(f"hooks need the program {program}")
    if os.geteuid() != 0:
        pytest.skip("the root directory of hooks needs root")


class Program:
    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self.process = process
        self._log = log

    def log(self) -> str:
        return self._log.read_text(errors="replace")

    def wait_for(self, text: str, count: int = 1) -> None:
        """Wait until the log has a text."""
        wait_until(lambda: self.log().count(text) >= count, lambda: f"no {text!r} in:\n{self.log()}")


def wait_until(done: Callable[[], bool], problem: Callable[[], str], seconds: float = SECONDS) -> None:
    end = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < end, problem()
        time.sleep(0.05)


@contextmanager
def ours(
    directory: Path, log: Path, kubeconfig: Path, *arguments: str, original: Path | None = None, **environment: str
) -> Iterator[Program]:
    """Run `ostinato hooks /hooks` with this directory as `/hooks`."""
    command = [sys.executable, "-m", "ostinato.cli", "hooks", "/hooks", "--kubeconfig", str(kubeconfig), *arguments]
    with _running(command, directory, log, original, {**environment, "KUBECONFIG": str(kubeconfig)}) as program:
        yield program


@contextmanager
def theirs(
    directory: Path, log: Path, kubeconfig: Path, *arguments: str, original: Path, **environment: str
) -> Iterator[Program]:
    """Run shell-operator with this directory as `/hooks`."""
    binary = original / "bin" / "shell-operator"
    temporary = log.with_suffix(".tmp")
    command = [str(binary), "start", "--hooks-dir", "/hooks", "--kube-config", str(kubeconfig)]
    command += ["--tmp-dir", str(temporary), *arguments]
    with _running(command, directory, log, original, {**environment, "KUBECONFIG": str(kubeconfig)}) as program:
        yield program


@contextmanager
def _running(
    command: list[str], directory: Path, log: Path, original: Path | None, environment: Mapping[str, str]
) -> Iterator[Program]:
    root = log.with_suffix(".root")
    root.mkdir()
    source = "" if original is None else str(original / "src" / "shell-operator")
    wrapped = ["unshare", "--mount", "bash", "-c", _ROOT, "bash", str(root), str(directory), source, *command]
    with log.open("wb") as stream:
        process = subprocess.Popen(wrapped, stdout=stream, stderr=stream, env={**os.environ, **environment})
        try:
            yield Program(process, log)
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(SECONDS)


class Kubectl:
    def __init__(self, kubeconfig: Path) -> None:
        self._kubeconfig = kubeconfig

    def __call__(self, *arguments: str, stdin: str = "", ok: bool = True) -> str:
        """Run kubectl and return its output; with `ok=False` that of a command that has to fail."""
        result = subprocess.run(
            ["kubectl", "--kubeconfig", str(self._kubeconfig), *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
        )
        assert (result.returncode == 0) == ok, result.stdout + result.stderr
        return result.stdout if ok else result.stderr
