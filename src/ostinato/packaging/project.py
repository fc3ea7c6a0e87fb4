"""Metadata of a Python project, from `pyproject.toml`: the defaults of a package's name, version and description."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from ostinato.packaging.error import PackageError

_SEMVER: Final = re.compile(
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)"
    r"(?:-(?:0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*)(?:\.(?:0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*))*)?"
    r"(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?",
    re.ASCII,
)
_PYTHON: Final = re.compile(  # PEP 440, in the normal form that build tools write
    r"(?P<release>\d+(?:\.\d+){0,2})(?:(?P<phase>a|b|rc)(?P<number>\d+))?(?:\.post(?P<post>\d+))?"
    r"(?:\.dev(?P<dev>\d+))?(?:\+(?P<local>[a-z0-9]+(?:\.[a-z0-9]+)*))?",
    re.ASCII,
)
_PHASES: Final = {"a": "alpha", "b": "beta", "rc": "rc"}


class Person(msgspec.Struct, frozen=True):
    name: str = ""
    email: str = ""


class Project(msgspec.Struct, frozen=True, kw_only=True):
    """Fields are empty if `pyproject.toml` does not have them."""

    name: str = ""
    version: str = ""
    description: str = ""
    authors: Sequence[Person] = ()
    keywords: Sequence[str] = ()
    urls: Mapping[str, str] = {}


def read_project(path: Path) -> Project:
    """Return the `[project]` table of a file; an empty Project if there is no such file or table."""
    try:
        table: Any = tomllib.loads(path.read_text(encoding="utf-8")).get("project", {})
        return msgspec.convert(table, Project)
    except FileNotFoundError:
        return Project()
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise PackageError(f"{path}: cannot be read: {error}") from None
    except msgspec.ValidationError as error:
        raise PackageError(f"{path}: [project]: {error}") from None


def is_semantic_version(version: str) -> bool:
    return _SEMVER.fullmatch(version) is not None


def semantic_version(version: str) -> str:
    """Return a version as charts and bundles need it: `1.2`, `1.2.0rc1` and `1.2.0.dev3` of Python are converted."""
    if _SEMVER.fullmatch(version):
        return version
    found = _PYTHON.fullmatch(version)
    if found is None or found["post"]:
        raise PackageError(f"version {version!r} is not a semantic version; use MAJOR.MINOR.PATCH, such as 0.1.0")
    numbers = [str(int(part)) for part in found["release"].split(".")]
    release = ".".join([*numbers, "0", "0"][:3])
    before = [f"{_PHASES[found['phase']]}.{int(found['number'])}"] if found["phase"] else []
    before += [f"dev.{int(found['dev'])}"] if found["dev"] is not None else []
    local = f"+{found['local']}" if found["local"] else ""
    return release + (f"-{'.'.join(before)}" if before else "") + local
