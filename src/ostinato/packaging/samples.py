"""Sample objects: the YAML files of a directory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ostinato.api.wire.yaml import decode_yaml_documents
from ostinato.packaging.error import PackageError

Json = dict[str, Any]


def read_samples(directory: Path) -> list[Json]:
    """Return the objects in the `*.yaml` and `*.yml` files of a directory, by file name; none if it does not exist."""
    found: list[Json] = []
    files = [path for path in sorted(directory.glob("*")) if path.suffix in (".yaml", ".yml")]
    for path in files:
        try:
            documents = decode_yaml_documents(path.read_bytes(), strict=True)
        except OSError as error:
            raise PackageError(f"{path}: cannot be read: {error.strerror}") from None
        except ValueError as error:
            raise PackageError(f"{path}: not YAML: {error}") from None
        for document in documents:
            if document is None:
                continue
            if not isinstance(document, dict) or not all(
                document.get(word) for word in ("apiVersion", "kind", "metadata")
            ):
                raise PackageError(f"{path}: not an object; it needs apiVersion, kind and metadata")
            if document["kind"] != "Kustomization":
                found.append(document)
    return found
