"""Typed access to the fields of a kubeconfig entry; problems are collected with file, entry and field."""

from __future__ import annotations

import binascii
from base64 import b64decode
from pathlib import Path
from typing import Any

from ostinato.client.config.kubeconfig import Entry


class EntryFields:
    """Each method returns the value of a field, or an empty one after adding the problem to `problems`."""

    def __init__(
        self, entry: Entry, problems: list[str], fields: dict[str, Any] | None = None, prefix: str = ""
    ) -> None:
        self.entry = entry
        self._problems = problems
        self._fields = entry.fields if fields is None else fields
        self._prefix = prefix

    def text(self, name: str) -> str:
        value = self._fields.get(name)
        if value is None or isinstance(value, str):
            return value or ""
        self.refuse(name, "must be a string; put it in quotes")
        return ""

    def flag(self, name: str) -> bool:
        value = self._fields.get(name)
        if value is None or isinstance(value, bool):
            return bool(value)
        self.refuse(name, "must be true or false")
        return False

    def data(self, name: str) -> bytes:
        """Decode base64."""
        text = self.text(name)
        try:
            return b64decode(text.replace("\n", "").replace("\r", ""), validate=True)
        except (binascii.Error, ValueError):
            self.refuse(name, f"is not base64; encode the PEM, or set a file in {name.removesuffix('-data')}")
            return b""

    def path(self, name: str) -> Path | None:
        """Return the path of a file; a relative one is resolved against the directory of the kubeconfig."""
        text = self.text(name)
        return self.entry.file.absolute().parent / text if text else None

    def existing_path(self, name: str) -> Path | None:
        path = self.path(name)
        if path is None:
            return None
        try:
            with path.open("rb"):
                return path
        except OSError as error:
            self.refuse(name, f"{path} cannot be read: {error.strerror}; correct the path or the file's permissions")
            return None

    def texts(self, name: str) -> tuple[str, ...]:
        value = self._fields.get(name)
        if value is None:
            return ()
        if isinstance(value, list) and all(isinstance(item, str) for item in value):
            return tuple(value)
        self.refuse(name, "must be a list of strings")
        return ()

    def lists(self, name: str) -> dict[str, tuple[str, ...]]:
        """Return a mapping of names to lists of strings."""
        inner = self.inside(name)
        return {key: inner.texts(key) for key in inner._fields}

    def listed(self, name: str) -> list[EntryFields]:
        """Return the items of a list of objects."""
        value = self._fields.get(name)
        if value is None:
            return []
        if isinstance(value, list) and all(isinstance(item, dict) for item in value):
            prefix = f"{self._prefix}{name}"
            return [
                EntryFields(self.entry, self._problems, item, f"{prefix}[{index}].") for index, item in enumerate(value)
            ]
        self.refuse(name, "must be a list of objects")
        return []

    def inside(self, name: str) -> EntryFields:
        """Return the fields of a nested object."""
        value = self._fields.get(name)
        if value is not None and not isinstance(value, dict):
            self.refuse(name, "must be an object")
            value = None
        return EntryFields(self.entry, self._problems, value or {}, f"{self._prefix}{name}.")

    def has(self, name: str) -> bool:
        return self._fields.get(name) is not None

    def raw(self, name: str) -> Any:
        return self._fields.get(name)

    def refuse(self, name: str, problem: str) -> None:
        self._problems.append(f"{self.entry}: {self._prefix}{name}: {problem}")
