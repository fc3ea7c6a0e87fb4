"""Manifests: definitions, roles and webhook configurations as files, and whether files say the same.

- `manifest_files` gives the texts by file name: `crds/widgets.example.dev.yaml`, `rbac.yaml`, `webhooks.yaml`. The same
  objects give the same texts.
- `write_manifests` writes what has changed, and removes definitions that it wrote and that are no more.
- `check_manifests` changes nothing and says what is not as it should be, for CI.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from ostinato.api.wire.yaml_output import encode_yaml

Json = dict[str, Any]

HEADER: Final = "# Written by `ostinato manifests`; changes are lost.\n"


def manifest_files(
    *, definitions: Iterable[Json] = (), roles: Iterable[Json] = (), webhooks: Iterable[Json] = ()
) -> dict[str, str]:
    """Texts by file name. A file without objects is not there."""
    files = {f"crds/{each['metadata']['name']}.yaml": _text([each]) for each in definitions}
    for name, objects in (("rbac.yaml", list(roles)), ("webhooks.yaml", list(webhooks))):
        if objects:
            files[name] = _text(objects)
    return files


def write_manifests(files: Mapping[str, str], directory: Path) -> list[str]:
    """Make the directory say what the files do; the names of what was written or removed."""
    changed = []
    for name, text in sorted(files.items()):
        path = directory / name
        if _read(path) != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            changed.append(name)
    for name in _stale(files, directory):
        (directory / name).unlink()
        changed.append(name)
    return changed


def check_manifests(files: Mapping[str, str], directory: Path) -> list[str]:
    """What writing would change, as differences to read; empty if nothing."""
    problems = []
    for name, text in sorted(files.items()):
        found = _read(directory / name)
        if found is None:
            problems.append(f"{name}: missing\n")
        elif found != text:
            lines = (found.splitlines(keepends=True), text.splitlines(keepends=True))
            problems.append("".join(difflib.unified_diff(*lines, f"{name} (on disk)", f"{name} (from the classes)")))
    return problems + [f"{name}: no class is of this kind any more\n" for name in _stale(files, directory)]


def _text(objects: list[Json]) -> str:
    return HEADER + "---\n".join(encode_yaml(each).decode() for each in objects)


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None


def _stale(files: Mapping[str, str], directory: Path) -> list[str]:
    """Files that were written here for objects that are no more; those that others wrote are theirs."""
    candidates = [*sorted(directory.glob("crds/*.yaml")), directory / "rbac.yaml", directory / "webhooks.yaml"]
    names = ((path.relative_to(directory).as_posix(), _read(path)) for path in candidates)
    return [name for name, text in names if name not in files and text is not None and text.startswith(HEADER)]
