"""Manifest files: definitions, roles and webhook configurations.

- `manifest_files` returns the contents by file name: `crds/widgets.example.dev.yaml`, `rbac.yaml`, `webhooks.yaml`;
  deterministic.
- `write_manifests` writes changed files, and removes generated files of objects that no longer exist.
- `check_manifests` reports differences without writing, for CI.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from ostinato.api.wire.yaml_output import encode_yaml
from ostinato.crd.generated_files import check, read, write

Json = dict[str, Any]

HEADER: Final = "# Written by `ostinato manifests`; changes are lost.\n"


def manifest_files(
    *, definitions: Iterable[Json] = (), roles: Iterable[Json] = (), webhooks: Iterable[Json] = ()
) -> dict[str, str]:
    """Return the contents by file name, without empty files."""
    files = {f"crds/{each['metadata']['name']}.yaml": _text([each]) for each in definitions}
    for name, objects in (("rbac.yaml", list(roles)), ("webhooks.yaml", list(webhooks))):
        if objects:
            files[name] = _text(objects)
    return files


def write_manifests(files: Mapping[str, str], directory: Path) -> list[str]:
    """Update the directory; return the names of written and removed files."""
    return write(files, directory, _stale(files, directory))


def check_manifests(files: Mapping[str, str], directory: Path) -> list[str]:
    """Return what `write_manifests` would change, as unified diffs."""
    stale = _stale(files, directory)
    return check(files, directory, stale, source="the classes", gone="no class is of this kind any more")


def _text(objects: list[Json]) -> str:
    return HEADER + "---\n".join(encode_yaml(each).decode() for each in objects)


def _stale(files: Mapping[str, str], directory: Path) -> list[str]:
    """Return the generated files (with our header) of objects that no longer exist."""
    candidates = [*sorted(directory.glob("crds/*.yaml")), directory / "rbac.yaml", directory / "webhooks.yaml"]
    names = ((path.relative_to(directory).as_posix(), read(path)) for path in candidates)
    return [name for name, text in names if name not in files and text is not None and text.startswith(HEADER)]
