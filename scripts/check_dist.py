"""Check the distributions in a directory: metadata, contents, sizes, and an installation in an empty environment.

    python scripts/check_dist.py dist

- The wheel has the package, its types marker and its data; no tests, no documentation, no bytecode.
- The sdist builds the same wheel: `python -m build` makes the wheel from it.
- In an empty environment the wheel installs with its dependencies; the command and the imports work.
"""

from __future__ import annotations

import subprocess
import sys
import tarfile
import tempfile
import tomllib
import venv
import zipfile
from email import message_from_string
from email.message import Message
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
LARGEST_WHEEL = 4_000_000  # bytes; docs/dev/release.md states the size
IMPORTS = "from ostinato import Client, Context, CustomResource, Manager, Struct, controller; import ostinato.crd"


class DistributionError(Exception):
    """A distribution that must not be published; the message names the file and what is wrong."""


def check_wheel(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (metadata,) = [name for name in names if name.endswith(".dist-info/METADATA")]
        check_metadata(wheel, message_from_string(archive.read(metadata).decode()))
        unpacked = sum(info.file_size for info in archive.infolist())
    tops = {name.split("/")[0] for name in names}
    information = f"ostinato-{PROJECT['version']}.dist-info"
    if tops != {"ostinato", information}:
        raise DistributionError(f"{wheel.name}: contains {sorted(tops - {'ostinato', information})} beside the package")
    for wanted in ("ostinato/py.typed", f"{information}/licenses/LICENSE", f"{information}/entry_points.txt"):
        if wanted not in names:
            raise DistributionError(f"{wheel.name}: {wanted} is missing")
    unwanted = [name for name in names if name.endswith(".pyc") or "/tests/" in name or "__pycache__" in name]
    if unwanted:
        raise DistributionError(
            f"{wheel.name}: contains {unwanted[0]} and {len(unwanted) - 1} more that do not belong there"
        )
    size = wheel.stat().st_size
    print(f"{wheel.name}: {size / 1e6:.1f} MB, {unpacked / 1e6:.1f} MB unpacked, {len(names)} files")
    if size > LARGEST_WHEEL:
        raise DistributionError(f"{wheel.name}: {size} bytes are more than {LARGEST_WHEEL}; what has been added?")


def check_metadata(wheel: Path, metadata: Message) -> None:
    wanted = {
        "Name": PROJECT["name"],
        "Version": PROJECT["version"],
        "Requires-Python": PROJECT["requires-python"],
        "License-Expression": PROJECT["license"],
        "Description-Content-Type": "text/markdown",
    }
    for field, value in wanted.items():
        if metadata[field] != value:
            raise DistributionError(f"{wheel.name}: {field} is {metadata[field]!r}, not {value!r}")
    if not str(metadata.get_payload()).startswith("# Ostinato"):
        raise DistributionError(f"{wheel.name}: the description is not the README")
    if "Typing :: Typed" not in (metadata.get_all("Classifier") or []):
        raise DistributionError(f"{wheel.name}: the classifier Typing :: Typed is missing")


def check_sdist(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        names = [name.partition("/")[2] for name in archive.getnames()]
    for wanted in (
        "pyproject.toml",
        "README.md",
        "LICENSE",
        "CHANGELOG.md",
        "src/ostinato/py.typed",
        "tests/README.md",
    ):
        if wanted not in names:
            raise DistributionError(f"{sdist.name}: {wanted} is missing")
    print(f"{sdist.name}: {sdist.stat().st_size / 1e6:.1f} MB, {len(names)} files")


def check_installation(wheel: Path) -> None:
    with tempfile.TemporaryDirectory() as directory:
        venv.create(directory, with_pip=True)
        python = Path(directory) / "bin" / "python"
        _run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", str(wheel))
        _run(python, "-c", IMPORTS)
        said = _run(python.with_name("ostinato"), "--version")
        if said != f"ostinato {PROJECT['version']}\n":
            raise DistributionError(f"{wheel.name}: `ostinato --version` prints {said!r}")
        packages = _run(python, "-m", "pip", "list", "--format=freeze", "--disable-pip-version-check").splitlines()
        print(f"installed: {', '.join(each for each in packages if not each.startswith(('pip=', 'setuptools=')))}")


def _run(*command: str | Path) -> str:
    done = subprocess.run([str(each) for each in command], capture_output=True, text=True, check=False, cwd="/")
    if done.returncode:
        raise DistributionError(f"{' '.join(str(each) for each in command)}: {done.stderr.strip()}")
    return done.stdout


def main(directory: Path) -> int:
    try:
        (wheel,), (sdist,) = directory.glob("*.whl"), directory.glob("*.tar.gz")
        check_wheel(wheel.resolve())
        check_sdist(sdist)
        check_installation(wheel.resolve())
    except (DistributionError, ValueError) as error:
        print(f"check_dist: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
