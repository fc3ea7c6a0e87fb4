"""`ostinato types`: Python classes from the CustomResourceDefinitions of others."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from ostinato.api.wire import DecodeError
from ostinato.api.wire.yaml import decode_yaml_documents
from ostinato.cli.error import Failure
from ostinato.crd import TypesError, types_of

Json = dict[str, Any]

_KIND: Final = "CustomResourceDefinition"


class TypesOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line says; see `ostinato types --help`."""

    files: Sequence[str]
    output: str | None = None
    version: str | None = None


def types(options: TypesOptions) -> None:
    """Write a module of classes, or print it."""
    definitions = [each for file in options.files for each in _definitions(file)]
    if not definitions:
        raise Failure(f"{', '.join(options.files)}: there is no CustomResourceDefinition in it")
    try:
        text = types_of(*definitions, version=options.version)
    except TypesError as error:
        raise Failure(str(error)) from None
    if options.output is None:
        sys.stdout.write(text)
        return
    try:
        Path(options.output).write_text(text, encoding="utf-8")
    except OSError as error:
        raise Failure(f"{options.output} cannot be written: {error.strerror}") from None


def _definitions(file: str) -> Iterator[Json]:
    """The definitions in a file, which may hold other objects too; those of a List as well."""
    try:
        data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
        documents = decode_yaml_documents(data)
    except OSError as error:
        raise Failure(f"{file} cannot be read: {error.strerror}") from None
    except DecodeError as error:
        raise Failure(f"{file}: {error}") from None
    for document in documents:
        for each in _objects(document):
            if each.get("kind") == _KIND:
                yield each


def _objects(document: Any) -> list[Json]:
    """A document, or what it lists. Items of the list that a server answers do not say what they are."""
    if not isinstance(document, dict):
        return []
    if "items" not in document:
        return [document]
    said = {"apiVersion": document.get("apiVersion"), "kind": _KIND} if document.get("kind") == f"{_KIND}List" else {}
    items = document["items"] if isinstance(document["items"], list) else []
    return [{**said, **item} for item in items if isinstance(item, dict)]
