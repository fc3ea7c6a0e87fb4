"""`ostinato types`: Python classes from the CustomResourceDefinitions of others."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ostinato.api.wire import DecodeError
from ostinato.api.wire.yaml import decode_yaml_documents
from ostinato.cli.failure import Failure
from ostinato.crd import TypesError, types_of

Json = dict[str, Any]


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
        objects = document.get("items") if isinstance(document, dict) and "items" in document else [document]
        for each in objects if isinstance(objects, list) else []:
            if isinstance(each, dict) and each.get("kind") == "CustomResourceDefinition":
                yield each
