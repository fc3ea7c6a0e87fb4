"""Dockerfiles without RUN: files are copied and settings made, and nothing is executed.

Supported are FROM (one stage: `scratch`, or an image on this machine), ARG, COPY and ADD of local files, ENV, WORKDIR,
USER, ENTRYPOINT, CMD, EXPOSE, LABEL, STOPSIGNAL, and .dockerignore. Other instructions are rejected with their line.
"""

from __future__ import annotations

import fnmatch
import posixpath
import re
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from ostinato.plane.node.images.build import Layer, Owner, add_tree, new_layer
from ostinato.plane.node.images.image import ImageConfig, ImageError

Base = Callable[[str, Path], tuple[ImageConfig, list[Layer]]]
"""Returns the settings and the layers of an image; files go to the directory."""

_VARIABLE: Final = re.compile(r"\$(?:\{(\w+)(?::-([^}]*))?\}|(\w+))")
_NO_RUN: Final = "commands are not run while building; prepare the files in a directory and COPY them"


class Built(msgspec.Struct, frozen=True):
    config: ImageConfig
    layers: list[Layer]


def build(file: Path, context: Path, work: Path, base: Base, arguments: Mapping[str, str]) -> Built:
    """Build an image; `ImageError` names the line that is wrong. `work`: an empty directory for the layers."""
    builder = _Builder(context.resolve(), work, base, dict(arguments))
    try:
        text = file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise ImageError(f"{file}: {error}") from None
    for number, instruction, rest in _instructions(text):
        try:
            builder.apply(instruction, rest)
        except (ImageError, ValueError, OSError) as error:
            raise ImageError(f"{file}:{number}: {instruction}: {error}") from None
    if not builder.started:
        raise ImageError(f"{file}: has no FROM")
    return Built(builder.config, builder.layers)


def _instructions(text: str) -> list[tuple[int, str, str]]:
    """Return line number, name and arguments of each instruction; lines that end with a backslash continue."""
    found: list[tuple[int, str, str]] = []
    pending, first = "", 0
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("#") or (not line.strip() and pending):
            continue
        first = first if pending else number
        pending += line.strip()
        if pending.endswith("\\"):
            pending = pending[:-1] + " "
            continue
        if pending.strip():
            name, _, rest = pending.strip().partition(" ")
            found.append((first, name.upper(), rest.strip()))
        pending = ""
    return found


class _Builder:
    def __init__(self, context: Path, work: Path, base: Base, arguments: dict[str, str]) -> None:
        self.config = ImageConfig()
        self.layers: list[Layer] = []
        self.started = False
        self._context = context
        self._work = work
        self._base = base
        self._given = arguments
        self._variables: dict[str, str] = {}
        self._ignored = _ignore_patterns(context / ".dockerignore")

    def apply(self, instruction: str, rest: str) -> None:
        steps: dict[str, Callable[[str], None]] = {
            "FROM": self._from,
            "ARG": self._arg,
            "COPY": self._copy,
            "ADD": self._copy,
            "ENV": lambda text: self._set(env=self._merged_env(_pairs(self._expanded(text)))),
            "LABEL": lambda text: self._set(labels=(self.config.labels or {}) | _pairs(self._expanded(text))),
            "WORKDIR": lambda text: self._set(working_dir=self._path(self._expanded(text))),
            "USER": lambda text: self._set(user=self._expanded(text)),
            "STOPSIGNAL": lambda text: self._set(stop_signal=self._expanded(text)),
            "ENTRYPOINT": lambda text: self._set(entrypoint=_command(text), cmd=None),
            "CMD": lambda text: self._set(cmd=_command(text)),
            "EXPOSE": self._expose,
        }
        if instruction == "RUN":
            raise ImageError(_NO_RUN)
        if instruction not in steps:
            raise ImageError(f"unknown or unsupported instruction; supported are {', '.join(sorted(steps))}")
        if not self.started and instruction not in ("FROM", "ARG"):
            raise ImageError("comes before FROM")
        if not rest:
            raise ImageError("has no arguments")
        steps[instruction](rest)

    def _set(self, **fields: Any) -> None:
        self.config = msgspec.structs.replace(self.config, **fields)

    def _from(self, text: str) -> None:
        if self.started:
            raise ImageError("only one stage is supported")
        words = [each for each in self._expanded(text).split() if not each.startswith("--platform")]
        self.started = True
        if words[0] != "scratch":
            self.config, layers = self._base(words[0], self._work)
            self.layers += layers
            self._variables |= self.config.environment

    def _arg(self, text: str) -> None:
        name, assigned, default = text.partition("=")
        if name in self._given or assigned:
            self._variables[name] = self._given.get(name, self._expanded(default.strip("\"'")))

    def _expose(self, text: str) -> None:
        ports: dict[str, dict[str, Any]] = {
            each if "/" in each else f"{each}/tcp": {} for each in self._expanded(text).split()
        }
        self._set(exposed_ports=(self.config.exposed_ports or {}) | ports)

    def _merged_env(self, pairs: dict[str, str]) -> list[str]:
        self._variables |= pairs
        return [f"{key}={value}" for key, value in (self.config.environment | pairs).items()]

    def _copy(self, text: str) -> None:
        flags, words = _flags(text)
        if unknown := set(flags) - {"chown", "link"}:
            raise ImageError(f"--{min(unknown)} is not supported")
        *sources, target = [self._expanded(each) for each in words]
        if not sources:
            raise ImageError("want SOURCE... TARGET")
        owner = _owner(flags.get("chown", "0:0"))
        found = [each for source in sources for each in self._found(source)]
        into = self._path(target).lstrip("/")
        is_directory = target.endswith(("/", "/.")) or target in (".", "..") or len(found) > 1
        with new_layer(self._work / f"layer-{len(self.layers)}.tar") as (archive, layer):
            for each in found:
                whole = each.is_dir() and not each.is_symlink()
                name = into if whole or not is_directory else posixpath.join(into, each.name)
                add_tree(archive, each, name, owner, self._is_ignored)
        self.layers.append(layer())

    def _found(self, source: str) -> list[Path]:
        """The files of the context that a source names; patterns may match several."""
        name = posixpath.normpath(source.lstrip("/"))
        if "://" in source:
            raise ImageError(f"{source}: only files of the context are supported")
        if name == ".." or name.startswith("../"):
            raise ImageError(f"{source}: is outside of the context {self._context}")
        found = [self._context] if name == "." else sorted(self._context.glob(name))
        found = [each for each in found if not self._is_ignored(each)]
        for each in found:
            if not each.parent.resolve().is_relative_to(self._context) and each != self._context:
                raise ImageError(f"{source}: is outside of the context {self._context}")
        if not found:
            raise ImageError(f"{source}: not found in the context {self._context}")
        return found

    def _is_ignored(self, path: Path) -> bool:
        name = path.relative_to(self._context).as_posix()
        ignored = False
        for pattern, keeps in self._ignored:
            if fnmatch.fnmatch(name, pattern) or fnmatch.fnmatch(name, f"{pattern}/*"):
                ignored = not keeps
        return ignored

    def _path(self, text: str) -> str:
        return posixpath.normpath(posixpath.join("/", self.config.working_dir or "/", text))

    def _expanded(self, text: str) -> str:
        return _VARIABLE.sub(lambda match: self._variables.get(match[1] or match[3], match[2] or ""), text)


def _pairs(text: str) -> dict[str, str]:
    words = shlex.split(text)
    if words and "=" not in words[0]:  # the old form: ENV NAME VALUE
        return {words[0]: text.partition(" ")[2].strip()}
    return dict(each.partition("=")[::2] for each in words)


def _command(text: str) -> list[str]:
    """The JSON form, or the shell form."""
    if text.startswith("["):
        return msgspec.json.decode(text, type=list[str])
    return ["/bin/sh", "-c", text]


def _flags(text: str) -> tuple[dict[str, str], list[str]]:
    words = msgspec.json.decode(text, type=list[str]) if text.startswith("[") else shlex.split(text)
    flags = {}
    while words and words[0].startswith("--"):
        name, _, value = words.pop(0)[2:].partition("=")
        flags[name] = value
    return flags, words


def _owner(text: str) -> Owner:
    user, _, group = text.partition(":")
    if not user.isdecimal() or not (group or "0").isdecimal():
        raise ImageError(f"--chown={text}: want numbers, UID:GID")
    return int(user), int(group or user)


def _ignore_patterns(path: Path) -> list[tuple[str, bool]]:
    """The patterns of .dockerignore, and whether they except files from earlier ones."""
    if not path.is_file():
        return []
    lines = [line.strip() for line in path.read_text().splitlines()]
    return [
        (line.removeprefix("!").strip("/").replace("**/", "*"), line.startswith("!"))
        for line in lines
        if line and not line.startswith("#")
    ]
