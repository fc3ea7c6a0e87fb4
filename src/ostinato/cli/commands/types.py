"""`ostinato types`: generate Python classes from CustomResourceDefinitions."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from ostinato.api.wire import DecodeError
from ostinato.api.wire.yaml import decode_yaml_documents
from ostinato.cli.error import CommandError
from ostinato.crd import TypesError, types_of

Json = dict[str, Any]

_KIND: Final = "CustomResourceDefinition"


class TypesOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Arguments of the command; see `ostinato types --help`."""

    files: Sequence[str]
    output: str | None = None
    version: str | None = None


def types(options: TypesOptions) -> None:
    """Write or print a module with the classes."""
    definitions = [each for file in options.files for each in _definitions(file)]
    if not definitions:
        raise CommandError(f"{', '.join(options.files)}: found no CustomResourceDefinition")
    try:
        text = types_of(*definitions, version=options.version)
    except TypesError as error:
        raise CommandError(str(error)) from None
    if options.output is None:
        sys.stdout.write(text)
        return
    try:
        Path(options.output).write_text(text, encoding="utf-8")
    except OSError as error:
        raise CommandError(f"cannot write {options.output}: {error.strerror}") from None


def _definitions(file: str) -> Iterator[Json]:
    """Yield the definitions in a file, also those in Lists; other objects are skipped."""
    try:
        data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
        documents = decode_yaml_documents(data)
    except OSError as error:
        raise CommandError(f"cannot read {file}: {error.strerror}") from None
    except DecodeError as error:
        raise CommandError(f"{file}: {error}") from None
    for document in documents:
        for each in _objects(document):
            if each.get("kind") == _KIND:
                yield each


def _objects(document: Any) -> list[Json]:
    """Return the document, or its items; items of a server's typed list lack apiVersion and kind."""
    if not isinstance(document, dict):
        return []
    if "items" not in document:
        return [document]
    type_meta = (
        {"apiVersion": document.get("apiVersion"), "kind": _KIND} if document.get("kind") == f"{_KIND}List" else {}
    )
    items = document["items"] if isinstance(document["items"], list) else []
    return [{**type_meta, **item} for item in items if isinstance(item, dict)]
