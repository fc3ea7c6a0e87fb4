"""`watches.yaml`: reads the file, and returns a controller for each entry.

- An entry has a `chart`, or a `role` or `playbook`. One file may have both forms.
- In entries of roles, environment variables replace `${NAME}` before they are parsed; unset ones stay. In those of
  charts only `overrideValues` are expanded, by Go's rules and as templates.
- Relative paths are relative to the file, or else to the working directory.
- Unknown keys are logged and ignored, as operator-sdk ignores them. Everything else that is wrong raises `WatchesError`
  with file, line and field.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec
import yaml

from ostinato.api.gvk import GroupVersionKind
from ostinato.api.selectors.labels import from_label_selector
from ostinato.api.time import Duration, TimeError
from ostinato.api.wire import DecodeError
from ostinato.api.wire.yaml import decode_yaml

if TYPE_CHECKING:
    from ostinato.controllers.controller import Controller

Json = dict[str, Any]

_VARIABLE: Final = re.compile(r"\$(?:\{([^}]*)\}|([A-Za-z_][A-Za-z0-9_]*))")
_logger = logging.getLogger("ostinato.frontends.watches")


class WatchesError(ValueError):
    """A watches.yaml cannot be used. The message names file, line and field."""


class Entry(NamedTuple):
    """One entry as it was parsed, with its place."""

    file: Path
    line: int
    content: Json

    def error(self, text: str) -> WatchesError:
        return WatchesError(f"{self.file}, line {self.line}: {text}")

    def warn_unknown(self, known: Sequence[str]) -> None:
        for name in self.content:
            if name not in known:
                _logger.warning("unknown key ignored file=%s line=%s key=%s", self.file, self.line, name)

    def path(self, name: str) -> Path:
        """Return a path of the entry: relative to the file, or to the working directory if it is only there."""
        here = self.file.absolute().parent / name
        return here if here.exists() or not Path(name).exists() else Path(name).absolute()


class WatchOptions(msgspec.Struct, frozen=True, kw_only=True):
    """
    - `artifacts`: directory for the runs of roles. Defaults to None: a temporary one.
    - `workers`: concurrent reconciles of kinds that do not set their own. Defaults to 0: the number of processors for
      roles, one for charts.
    - `reconcile_period`: seconds, for entries that do not set it. Defaults to None: 10 hours for roles, a minute for
      charts.
    - `verbosity`: of ansible-playbook. Defaults to 2, as in operator-sdk.
    - `definitions`: CustomResourceDefinitions of the kinds, which their controllers bring. Defaults to none.
    """

    artifacts: Path | None = None
    workers: int = 0
    reconcile_period: float | None = None
    verbosity: int = 2
    definitions: tuple[Json, ...] = ()

    def definitions_of(self, gvk: GroupVersionKind) -> list[Json]:
        """Return the definitions of a kind."""
        wanted = (gvk.group, gvk.kind)
        return [each for each in self.definitions if (each["spec"]["group"], each["spec"]["names"]["kind"]) == wanted]


def load_watches(file: str | Path, options: WatchOptions = WatchOptions()) -> list[Controller]:  # noqa: B008 - frozen
    """Return the controllers of a watches.yaml. Raises `WatchesError`."""
    entries = read_entries(Path(file))
    found: list[Controller] = []
    seen: dict[tuple[str, str, str], int] = {}
    for entry in entries:
        kind = _kind(entry)
        if kind in seen:
            raise entry.error(f"duplicate kind {kind[2]} of {kind[0]}/{kind[1]}; it is in line {seen[kind]} too")
        seen[kind] = entry.line
        found.append(_controller(entry, options))
    return found


def read_entries(file: Path) -> list[Entry]:
    """Parse the file. Entries of roles have the environment variables replaced."""
    try:
        text = file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise WatchesError(f"{file}: cannot be read: {reason}") from None
    expanded = _entries(file, expand(text, os.environ))
    if not any("chart" in each.content for each in expanded):
        return expanded
    plain = _entries(file, text)
    if len(plain) != len(expanded):
        raise WatchesError(f"{file}: an environment variable changes the number of entries; quote the ${{NAME}}")
    return [one if "chart" in one.content else other for one, other in zip(plain, expanded, strict=True)]


def expand(text: str, variables: Mapping[str, str]) -> str:
    """Replace `$NAME` and `${NAME}` by variables; a variable that is not set stays as `${NAME}`."""

    def replaced(match: re.Match[str]) -> str:
        name = match[1] if match[1] is not None else match[2]
        return variables.get(name, f"${{{name}}}")

    return _VARIABLE.sub(replaced, text)


def _entries(file: Path, text: str) -> list[Entry]:
    try:
        parsed = decode_yaml(text)
        node = yaml.compose(text, Loader=yaml.CSafeLoader)
    except (DecodeError, yaml.YAMLError) as error:
        raise WatchesError(f"{file}: {error}") from None
    if parsed is None:
        raise WatchesError(f"{file}: no entries; add one with group, version, kind, and chart, role or playbook")
    if not isinstance(parsed, list) or not isinstance(node, yaml.SequenceNode):
        raise WatchesError(f"{file}: expected a list of entries; begin each with `- `")
    found = []
    for value, each in zip(parsed, node.value, strict=True):
        line = each.start_mark.line + 1
        if not isinstance(value, dict):
            raise WatchesError(f"{file}, line {line}: expected an entry with group, version and kind")
        found.append(Entry(file, line, value))
    return found


def _kind(entry: Entry) -> tuple[str, str, str]:
    for name in ("version", "kind"):
        if not entry.content.get(name) or not isinstance(entry.content[name], str):
            raise entry.error(f"{name}: must not be empty")
    group = entry.content.get("group") or ""
    if not isinstance(group, str):
        raise entry.error("group: expected text")
    return group, entry.content["version"], entry.content["kind"]


def _controller(entry: Entry, options: WatchOptions) -> Controller:
    forms = [name for name in ("chart", "role", "playbook") if entry.content.get(name)]
    if len(forms) != 1:
        found = " and ".join(forms) or "none"
        raise entry.error(f"expected one of chart, role and playbook, found {found}")
    try:
        from_label_selector(entry.content.get("selector") or None)
    except (ValueError, TypeError, AttributeError) as error:
        raise entry.error(f"selector: {error}") from None
    if forms == ["chart"]:
        from ostinato.frontends.watches.chart_entry import chart_controller  # noqa: PLC0415 - needs ostinato[charts]

        return chart_controller(entry, options)
    from ostinato.frontends.watches.role_entry import role_controller  # noqa: PLC0415 - loads only what is used

    return role_controller(entry, options)


def period_of(entry: Entry, given: str | None, options: WatchOptions, default: float) -> float:
    """Return the reconcile period in seconds: the entry's, that of the options, or the default."""
    if given is not None:
        try:
            seconds = Duration.parse(given).seconds
        except TimeError as error:
            raise entry.error(f"reconcilePeriod: {error}; write a duration such as 30s or 1h") from None
        if seconds:
            return seconds
    return default if options.reconcile_period is None else options.reconcile_period


def field_error(error: msgspec.ValidationError) -> str:
    """Return `reconcilePeriod: expected str, got int`."""
    text, _, path = str(error).partition(" - at `$.")
    text = text[:1].lower() + text[1:]
    return f"{path.rstrip('`')}: {text}" if path else text
