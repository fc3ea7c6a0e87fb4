"""The fields of a kubeconfig's entry, read one by one; what is wrong is collected, with file, entry and field."""

from __future__ import annotations

import binascii
from base64 import b64decode
from pathlib import Path
from typing import Any

from ostinato.client.config.kubeconfig import Entry


class EntryFields:
    """Each method gives a field's value, or an empty one after it has noted the problem in `problems`."""

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
        self.refuse(name, "should be text: put it in quotes")
        return ""

    def flag(self, name: str) -> bool:
        value = self._fields.get(name)
        if value is None or isinstance(value, bool):
            return bool(value)
        self.refuse(name, "should be true or false")
        return False

    def data(self, name: str) -> bytes:
        """Bytes, in base64."""
        text = self.text(name)
        try:
            return b64decode(text.replace("\n", "").replace("\r", ""), validate=True)
        except (binascii.Error, ValueError):
            self.refuse(name, f"is not base64: encode the PEM, or name a file in {name.removesuffix('-data')}")
            return b""

    def path(self, name: str) -> Path | None:
        """A file; a relative path is meant from where the kubeconfig is."""
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
            self.refuse(name, f"{path} cannot be read: {error.strerror}: correct the path, or the file's permissions")
            return None

    def texts(self, name: str) -> tuple[str, ...]:
        value = self._fields.get(name)
        if value is None:
            return ()
        if isinstance(value, list) and all(isinstance(item, str) for item in value):
            return tuple(value)
        self.refuse(name, "should be a list of texts")
        return ()

    def lists(self, name: str) -> dict[str, tuple[str, ...]]:
        """Names, each with several texts."""
        inner = self.inside(name)
        return {key: inner.texts(key) for key in inner._fields}

    def listed(self, name: str) -> list[EntryFields]:
        """The items of a list, each with fields of its own."""
        value = self._fields.get(name)
        if value is None:
            return []
        if isinstance(value, list) and all(isinstance(item, dict) for item in value):
            prefix = f"{self._prefix}{name}"
            return [
                EntryFields(self.entry, self._problems, item, f"{prefix}[{index}].") for index, item in enumerate(value)
            ]
        self.refuse(name, "should be a list of entries")
        return []

    def inside(self, name: str) -> EntryFields:
        """The fields that a field holds."""
        value = self._fields.get(name)
        if value is not None and not isinstance(value, dict):
            self.refuse(name, "should hold fields")
            value = None
        return EntryFields(self.entry, self._problems, value or {}, f"{self._prefix}{name}.")

    def has(self, name: str) -> bool:
        return self._fields.get(name) is not None

    def raw(self, name: str) -> Any:
        return self._fields.get(name)

    def refuse(self, name: str, problem: str) -> None:
        self._problems.append(f"{self.entry}: {self._prefix}{name}: {problem}")
