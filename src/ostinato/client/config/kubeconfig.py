"""Kubeconfig: reads and merges kubeconfig files, as client-go does.

- Of several files the first takes precedence, per entry: a cluster, user or context is never merged from two files. The
  current context is that of the first file that sets one.
- Files that do not exist are skipped. An invalid file does not prevent the others from being read; its problems are in
  `errors`.
- Relative paths are resolved against the directory of the file.

The entries are not validated here; see `contexts`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from ostinato.api.wire.json import DecodeError
from ostinato.api.wire.yaml import decode_yaml
from ostinato.client.config.error import ConfigError

_MAX_FILE: Final = 16 * 1024 * 1024  # bytes; fits thousands of clusters


@dataclass(frozen=True, slots=True)
class Entry:
    """A cluster, user or context with the fields of its file."""

    kind: str  # "cluster", "user", "context"
    name: str
    fields: dict[str, Any] = field(repr=False)
    file: Path

    def __str__(self) -> str:
        return f'{self.file}: {self.kind} "{self.name}"'


@dataclass(slots=True)
class Kubeconfig:
    clusters: dict[str, Entry] = field(default_factory=dict)
    users: dict[str, Entry] = field(default_factory=dict)
    contexts: dict[str, Entry] = field(default_factory=dict)
    current_context: str = ""
    files: list[Path] = field(default_factory=list)  # successfully read
    errors: list[str] = field(default_factory=list)  # of files that could not be read

    def is_empty(self) -> bool:
        return not (self.clusters or self.users or self.contexts or self.current_context)


def read(paths: Iterable[Path], *, must_exist: bool = False) -> Kubeconfig:
    """Read and merge files. `must_exist`: raise ConfigError for a missing file. Defaults to False."""
    merged = Kubeconfig()
    for path in paths:
        try:
            data = _read_bounded(path)
        except FileNotFoundError:
            if must_exist:
                raise ConfigError(f"{path}: does not exist; check the path of the kubeconfig") from None
            continue
        except OSError as error:
            merged.errors.append(f"{path}: cannot be read: {error.strerror}")
            continue
        except ConfigError as error:
            merged.errors += error.problems
            continue
        try:
            _merge(merged, parse(data, path))
        except ConfigError as error:
            merged.errors += error.problems
    return merged


def parse(data: bytes, file: Path) -> Kubeconfig:
    """Parse one file. Raises ConfigError with file and position."""
    try:
        content = decode_yaml(data)
    except DecodeError as error:
        raise ConfigError(f"{file}: is neither YAML nor JSON: {_first_line(error)}") from None
    if content is None:
        content = {}
    if not isinstance(content, dict):
        raise ConfigError(f"{file}: is not a kubeconfig; it must have clusters, users and contexts")
    kind, version = content.get("kind") or "Config", content.get("apiVersion") or "v1"
    if (kind, version) != ("Config", "v1"):
        raise ConfigError(f"{file}: is not a kubeconfig: kind {kind!r}, apiVersion {version!r}; expected Config, v1")
    current = content.get("current-context")
    if current is not None and not isinstance(current, str):
        raise ConfigError(f"{file}: current-context: must be a string")
    return Kubeconfig(
        clusters=_entries(content, "clusters", "cluster", file),
        users=_entries(content, "users", "user", file),
        contexts=_entries(content, "contexts", "context", file),
        current_context=current or "",
        files=[file],
    )


def split_list(listed: str) -> list[Path]:
    """Split a list like $KUBECONFIG, without duplicates and empty names."""
    return [Path(name) for name in dict.fromkeys(listed.split(os.pathsep)) if name]


def home_file(environ: Mapping[str, str]) -> Path | None:
    """Return `~/.kube/config`; None without a home directory."""
    home = environ.get("HOME") or environ.get("USERPROFILE")
    return Path(home) / ".kube" / "config" if home else None


def _entries(content: dict[str, Any], plural: str, kind: str, file: Path) -> dict[str, Entry]:
    listed = content.get(plural)
    if listed is None:
        return {}
    if not isinstance(listed, list):
        raise ConfigError(f"{file}: {plural}: must be a list of objects, each with name and {kind}")
    entries: dict[str, Entry] = {}
    for index, item in enumerate(listed):
        where = f"{file}: {plural}[{index}]"
        if not isinstance(item, dict):
            raise ConfigError(f"{where}: must be an object with name and {kind}")
        name, fields = item.get("name"), item.get(kind)
        name = "" if name is None else name
        if not isinstance(name, str):
            raise ConfigError(f"{where}.name: must be a string; put it in quotes")
        if fields is not None and not isinstance(fields, dict):
            raise ConfigError(f'{where}.{kind}: of "{name}" must be an object')
        if name in entries:
            raise ConfigError(f'{where}.name: duplicate {kind} "{name}" in this file; rename or remove one')
        entries[name] = Entry(kind, name, fields or {}, file)
    return entries


def _merge(into: Kubeconfig, other: Kubeconfig) -> None:
    for name, entry in other.clusters.items():
        into.clusters.setdefault(name, entry)
    for name, entry in other.users.items():
        into.users.setdefault(name, entry)
    for name, entry in other.contexts.items():
        into.contexts.setdefault(name, entry)
    into.current_context = into.current_context or other.current_context
    into.files += other.files


def _read_bounded(path: Path) -> bytes:
    with path.open("rb") as file:
        data = file.read(_MAX_FILE + 1)
    if len(data) > _MAX_FILE:
        raise ConfigError(f"{path}: is larger than {_MAX_FILE} bytes, the limit for a kubeconfig")
    return data


def _first_line(error: DecodeError) -> str:
    """First line of the error without the quoted values, which may be secrets."""
    return re.sub("`.*`", "a value", str(error).partition("\n")[0])
