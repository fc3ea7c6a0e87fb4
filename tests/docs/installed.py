"""`python installed.py DIR`: an environment as `pip install 'ostinato[server,test]'` makes it, by copies of this one.

The tests of the tutorial have no network, and containers of the process runtime see only the directories that the
tutorial exposes: a link to this checkout would lead out of it.
"""

from __future__ import annotations

import re
import shutil
import sys
import tomllib
import venv
from importlib.metadata import distribution
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EXTRAS = ("server", "test")


def required(requirements: list[str]) -> set[str]:
    """Return the distributions that requirements name, and those that these need."""
    found: set[str] = set()
    for requirement in requirements:
        name = re.split(r"[^\w.-]", requirement)[0]
        if name == "ostinato" or "extra ==" in requirement:
            continue
        try:
            found |= {name} | required(distribution(name).requires or [])
        except ModuleNotFoundError:
            continue  # for another system
    return found


def main(directory: Path) -> None:
    venv.create(directory, symlinks=True)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (packages,) = directory.glob("lib/python*/site-packages")
    shutil.copytree(ROOT / "src" / "ostinato", packages / "ostinato")
    information = packages / f"ostinato-{project['version']}.dist-info"
    information.mkdir()
    (information / "METADATA").write_text(f"Metadata-Version: 2.4\nName: ostinato\nVersion: {project['version']}\n")
    points = project.get("entry-points", {}).items()
    groups = (f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in each.items()) for group, each in points)
    (information / "entry_points.txt").write_text("\n".join(groups))
    extras = [each for extra in EXTRAS for each in project["optional-dependencies"][extra]]
    for name in required([*project["dependencies"], *extras]):
        for file in distribution(name).files or []:
            source = Path(str(file.locate()))
            if ".." in file.parts or not source.is_file():
                continue
            (packages / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, packages / file)  # compiled files are valid by the time of their source
    python = (directory / "bin" / "python").absolute()
    for script, module in (("ostinato", "ostinato.cli"), ("pytest", "pytest")):
        made = directory / "bin" / script
        run = f"import runpy, sys; sys.argv[0] = {script!r}; runpy.run_module({module!r}, run_name='__main__')"
        made.write_text(f"#!{python}\n{run}\n")
        made.chmod(0o755)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
