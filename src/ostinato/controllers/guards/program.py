"""The program that the user ran, as an argument for `ostinato run` and `ostinato manifests` in advice."""

from __future__ import annotations

import os
import sys
from functools import cache
from pathlib import Path
from sysconfig import get_path


def program() -> str:
    """Return the file of `python FILE`, or the module of `python -m MODULE`; "" for installed programs."""
    main = sys.modules.get("__main__")
    file, spec = getattr(main, "__file__", None), getattr(main, "__spec__", None)
    if not file or not file.endswith(".py"):  # interactive, or the script of an installed program
        return ""
    if _is_installed(file):  # such as `python -m pytest`
        return ""
    return spec.name if spec is not None else relative(file)


@cache
def _is_installed(file: str) -> bool:
    """Whether a file is below the directories of installed programs."""
    directories = {get_path(name) for name in ("purelib", "platlib", "stdlib")} | {str(Path(__file__).parents[2])}
    return any(Path(file).is_relative_to(each) for each in directories)


def relative(file: str) -> str:
    """Return the path relative to the working directory, if it is below it."""
    return _relative_to(file, os.getcwd())


@cache
def _relative_to(file: str, directory: str) -> str:
    path = Path(file)
    return str(path.relative_to(directory)) if path.is_relative_to(directory) else file
