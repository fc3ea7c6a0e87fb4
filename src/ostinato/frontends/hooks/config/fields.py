"""Fields: typed access to a decoded document, with errors that name the path of the field.

A `Fields` is closed: `finish` rejects the keys that were not read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from typing import Any

from ostinato.api.selectors.labels import Selector, SelectorError, from_label_selector
from ostinato.api.time import Duration, TimeError


class ConfigError(ValueError):
    """The configuration of a hook is invalid; the message names the field."""


class Fields:
    def __init__(self, value: Any, path: str = "") -> None:
        self.path = path
        if not isinstance(value, dict):
            raise ConfigError(f"{path or 'configuration'}: expected an object, got {kind_of(value)}")
        self._values: dict[str, Any] = value
        self._read: set[str] = set()

    def __contains__(self, name: str) -> bool:
        return self._values.get(name) is not None

    def error(self, name: str, problem: str) -> ConfigError:
        return ConfigError(f"{self.at(name)}: {problem}")

    def at(self, name: str) -> str:
        return f"{self.path}.{name}" if self.path else name

    def raw(self, name: str) -> Any:
        self._read.add(name)
        return self._values.get(name)

    def text(self, name: str, default: str = "", *, required: bool = False, among: Sequence[str] = ()) -> str:
        value = self.raw(name)
        if value is None:
            if required:
                raise self.error(name, "required")
            return default
        if not isinstance(value, str):
            raise self.error(name, f"expected a string, got {kind_of(value)}")
        if among and value not in among:
            raise self.error(name, f"{value!r} is none of {', '.join(among)}")
        return value

    def flag(self, name: str, *, default: bool) -> bool:
        value = self.raw(name)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise self.error(name, f"expected true or false, got {kind_of(value)}")
        return value

    def integer(self, name: str, default: int) -> int:
        value = self.raw(name)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int | float) or value != int(value):
            raise self.error(name, f"expected an integer, got {kind_of(value)}")
        return int(value)

    def duration(self, name: str, default: float = 0.0) -> float:
        value = self.raw(name)
        if value is None:
            return default
        try:
            return Duration.parse(value).seconds if isinstance(value, str) else float(value)
        except (TimeError, TypeError, ValueError):
            raise self.error(name, f"{value!r} is not a duration; write it as 90s, 5m or 1h30m") from None

    def texts(self, name: str, *, among: Sequence[str] = (), empty: bool = True) -> tuple[str, ...] | None:
        """Return a list of strings; None if it is absent."""
        value = self.raw(name)
        if value is None:
            return None
        if not isinstance(value, list):
            raise self.error(name, f"expected a list, got {kind_of(value)}")
        for number, each in enumerate(value):
            if not isinstance(each, str):
                raise ConfigError(f"{self.at(name)}[{number}]: expected a string, got {kind_of(each)}")
            if among and each not in among:
                raise ConfigError(f"{self.at(name)}[{number}]: {each!r} is none of {', '.join(among)}")
        if not value and not empty:
            raise self.error(name, "must not be empty")
        return tuple(value)

    def below(self, name: str) -> Fields | None:
        value = self.raw(name)
        return None if value is None else Fields(value, self.at(name))

    def each(self, name: str) -> Iterator[Fields]:
        """Iterate over a list of objects; each is finished afterwards."""
        value = self.raw(name)
        if value is None:
            return
        if not isinstance(value, list) or not value:
            raise self.error(name, "expected a list that is not empty")
        for number, item in enumerate(value):
            below = Fields(item, f"{self.at(name)}[{number}]")
            yield below
            below.finish()

    def selector(self, name: str) -> Selector | None:
        """Return a label selector; None if it is absent."""
        below = self.below(name)
        if below is None:
            return None
        value = self._values[name]
        below.raw("matchLabels")
        below.raw("matchExpressions")
        below.finish()
        if not value:
            raise self.error(name, "set matchLabels or matchExpressions")
        try:
            return from_label_selector(value)
        except (SelectorError, ValueError, TypeError) as error:
            raise self.error(name, str(error)) from None

    def finish(self) -> None:
        """Raise ConfigError for keys that were not read."""
        unknown = sorted(str(each) for each in self._values if each not in self._read)
        if unknown:
            close = get_close_matches(unknown[0], self._read, 1)
            hint = f"; did you mean {close[0]!r}?" if close else f"; fields: {', '.join(sorted(self._read))}"
            raise ConfigError(f"{self.at(unknown[0])}: unknown field{hint}")


def kind_of(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "a string", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")
