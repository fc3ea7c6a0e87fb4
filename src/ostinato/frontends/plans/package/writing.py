"""Writes packages: archives of a directory, the files of a new package, and additions to one."""

from __future__ import annotations

import gzip
import io
import tarfile
from pathlib import Path
from typing import Any, Final

import yaml

from ostinato.api.wire.json import DecodeError
from ostinato.frontends.plans.api import API_VERSION
from ostinato.frontends.plans.package.files import OPERATOR, PARAMS, TEMPLATES, PackageError, read_package
from ostinato.frontends.plans.parameters import load_yaml

Json = dict[str, Any]

_SAMPLE: Final = """apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Name }}
data:
  greeting: "{{ .Params.greeting }}"
"""


def write_archive(directory: Path, destination: Path, *, overwrite: bool = False) -> Path:
    """Write the .tgz of a package and return its path. The same files give the same bytes. Raises PackageError."""
    files = read_package(directory)
    version = files.operator.operator_version
    name = "-".join(filter(None, (files.operator.name, files.operator.app_version, version)))
    target = destination / f"{name}.tgz"
    if target.exists() and not overwrite:
        raise PackageError(f"{target} exists; use --overwrite")
    destination.mkdir(parents=True, exist_ok=True)
    target.write_bytes(_packed(directory))
    return target


def _packed(directory: Path) -> bytes:
    buffer = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=buffer, mode="wb", mtime=0) as compressed,
        tarfile.open(fileobj=compressed, mode="w") as archive,
    ):
        for path in sorted(directory.rglob("*")):
            if path.is_file():
                info = tarfile.TarInfo(path.relative_to(directory).as_posix())
                info.size, info.mode = path.stat().st_size, 0o644
                archive.addfile(info, io.BytesIO(path.read_bytes()))
    return buffer.getvalue()


def write_new(directory: Path, name: str, *, overwrite: bool = False) -> list[Path]:
    """Write a package that can be installed at once, and return its files. Raises PackageError."""
    if directory.exists() and not overwrite:
        raise PackageError(f'folder "{directory}" already exists; use --overwrite')
    step = {"name": "everything", "tasks": ["app"]}
    phase = {"name": "main", "strategy": "serial", "steps": [step]}
    operator = {
        "apiVersion": API_VERSION,
        "name": name,
        "operatorVersion": "0.1.0",
        "appVersion": "0.1.0",
        "kubernetesVersion": "1.30.0",
        "maintainers": [{"name": "Your name", "email": "your@email.invalid"}],
        "tasks": [{"name": "app", "kind": "Apply", "spec": {"resources": ["app.yaml"]}}],
        "plans": {"deploy": {"strategy": "serial", "phases": [phase]}},
    }
    params = {
        "apiVersion": API_VERSION,
        "parameters": [{"name": "greeting", "description": "The text of the ConfigMap.", "default": "hello"}],
    }
    written = {
        directory / OPERATOR: _dump(operator),
        directory / PARAMS: _dump(params),
        directory / TEMPLATES / "app.yaml": _SAMPLE,
    }
    for path, text in written.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return list(written)


def add_entry(directory: Path, file: str, place: str, entry: Json | tuple[str, Json]) -> Path:
    """Add an entry to a list, or a named one to a map, of a file of a package. Comments in the file are lost.

    Raises PackageError if an entry of the name exists.
    """
    path = directory / file
    if not path.is_file():
        raise PackageError(f"{path}: no such file; give the directory of a package")
    try:
        document = load_yaml(path.read_text())
    except DecodeError as error:
        raise PackageError(f"{path}: not YAML: {' '.join(str(error).split())}") from None
    if not isinstance(document, dict):
        raise PackageError(f"{path}: expected a map")
    if isinstance(entry, tuple):
        name, value = entry
        entries = document.get(place) or {}
        if name in entries:
            raise PackageError(f"{path}: {place}: {name} exists")
        document[place] = {**entries, name: value}
    else:
        present = document.get(place) or []
        if any(each.get("name") == entry["name"] for each in present if isinstance(each, dict)):
            raise PackageError(f"{path}: {place}: {entry['name']} exists")
        document[place] = [*present, entry]
    path.write_text(_dump(document))
    return path


def add_template(directory: Path, name: str) -> None:
    """Write an empty template, unless it exists."""
    path = directory / TEMPLATES / name
    if not path.resolve().is_relative_to((directory / TEMPLATES).resolve()):
        raise PackageError(f"{name}: a path that leaves {TEMPLATES}")
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")


def _dump(document: Json) -> str:
    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True)
