"""Metrics of hooks: operations that hooks return, and the series that they make.

    {"name": "nodes", "action": "set", "value": 3, "labels": {"zone": "a"}}
    {"group": "pods", "name": "pod_age", "set": 12, "labels": {"pod": "web-0"}}
    {"group": "pods", "action": "expire"}

- `add` increments a counter, `set` sets a gauge, `observe` adds to a histogram with `buckets`, `expire` drops the
  series of a group.
- A run that has operations of a group replaces all its series: those that it does not repeat disappear. Series without
  a group stay, and their counters count on. Histograms have no groups.
- The label `hook` is added.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from json import JSONDecodeError, JSONDecoder
from typing import Any, Final, Literal

import msgspec

from ostinato.metrics import Family, Sample
from ostinato.metrics.histogram import Histogram

Action = Literal["add", "set", "observe", "expire"]

_ACTIONS: Final = ("add", "set", "observe", "expire")
_NAME: Final = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_LABEL: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
_KINDS: Final[dict[str, Literal["counter", "gauge", "histogram"]]] = {
    "add": "counter",
    "set": "gauge",
    "observe": "histogram",
}
_BUCKETS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class MetricError(ValueError):
    """A metric operation is invalid."""


class MetricOperation(msgspec.Struct, frozen=True, kw_only=True):
    action: Action
    name: str = ""
    value: float = 0.0
    labels: dict[str, str] = {}
    buckets: tuple[float, ...] = ()
    group: str = ""


class _Wire(msgspec.Struct):
    name: str = ""
    action: str = ""
    value: float | None = None
    add: float | None = None
    set: float | None = None
    labels: dict[str, Any] | None = None
    buckets: tuple[float, ...] | None = None
    group: str = ""


def parse_metrics(data: bytes) -> list[MetricOperation]:
    """Parse JSON values one after another. Raises MetricError, which names the operation."""
    text, decoder, at = data.decode("utf-8", "replace"), JSONDecoder(), 0
    found: list[MetricOperation] = []
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        where = f"metric operation {len(found) + 1}"
        try:
            value, at = decoder.raw_decode(text, at)
            found.append(_operation(msgspec.convert(value, _Wire), where))
        except (JSONDecodeError, RecursionError, msgspec.ValidationError) as error:
            raise MetricError(f"{where}: {error}") from None
    return found


def metric_operation(document: Mapping[str, Any]) -> MetricOperation:
    """Return the operation of a document. Raises MetricError."""
    try:
        return _operation(msgspec.convert(document, _Wire), "metric operation")
    except msgspec.ValidationError as error:
        raise MetricError(f"metric operation: {error}") from None


def _operation(wire: _Wire, where: str) -> MetricOperation:
    action, value = wire.action, wire.value
    if wire.set is not None and wire.add is None:
        action, value = "set", wire.set
    elif wire.add is not None and wire.set is None:
        action, value = "add", wire.add
    if action not in _ACTIONS:
        raise MetricError(f"{where}: action: {action!r} is none of {', '.join(_ACTIONS)}")
    if action == "expire" and not wire.group:
        raise MetricError(f"{where}: group: required for expire")
    if action != "expire" and (value is None or not _NAME.fullmatch(wire.name)):
        missing = "value: required" if value is None else f"name: {wire.name!r} is not a metric name"
        raise MetricError(f"{where}: {missing}")
    labels = {key: each if isinstance(each, str) else _text(each) for key, each in (wire.labels or {}).items()}
    for label in labels:
        if not _LABEL.fullmatch(label):
            raise MetricError(f"{where}: labels: {label!r} is not a label name")
    return MetricOperation(
        action=action,  # type: ignore[arg-type]  # checked above
        name=wire.name,
        value=value or 0.0,
        labels=labels,
        buckets=tuple(sorted(wire.buckets or ())),
        group=wire.group,
    )


def _text(value: Any) -> str:
    return msgspec.json.encode(value).decode()


_Labels = tuple[tuple[str, str], ...]


class HookMetrics:
    """The series of all hooks."""

    def __init__(self) -> None:
        self._kinds: dict[str, str] = {}  # action of each metric
        self._values: dict[tuple[str, str, _Labels], float] = {}  # by group, name and labels
        self._histograms: dict[tuple[str, _Labels], Histogram] = {}

    def apply(self, operations: Sequence[MetricOperation], hook: str) -> None:
        """Apply the operations of one run. Raises MetricError if one does not fit; then nothing is applied."""
        kinds: dict[str, str] = {}
        for each in operations:
            if each.action == "expire":
                continue
            known = kinds.setdefault(each.name, self._kinds.get(each.name, each.action))
            if known != each.action:
                raise MetricError(f"metric {each.name} is a {_KINDS[known]}; {each.action} does not fit")
        self._kinds.update(kinds)
        for group in {each.group for each in operations if each.group and each.action != "observe"}:
            self._values = {key: value for key, value in self._values.items() if key[0] != group}
        for each in operations:
            if each.action != "expire":
                self._apply(each, tuple(sorted({**each.labels, "hook": hook}.items())))

    def _apply(self, each: MetricOperation, labels: _Labels) -> None:
        if each.action == "observe":
            series = self._histograms.setdefault((each.name, labels), Histogram(each.buckets or _BUCKETS))
            series.observe(each.value)
            return
        key = (each.group, each.name, labels)
        self._values[key] = each.value if each.action == "set" else self._values.get(key, 0.0) + each.value

    def families(self) -> Iterator[Family]:
        """Return the current series."""
        samples: dict[str, list[Sample]] = {}
        for (_, name, labels), value in self._values.items():
            samples.setdefault(name, []).append(Sample(name, dict(labels), value))
        for (name, labels), histogram in self._histograms.items():
            samples.setdefault(name, []).extend(histogram.samples(name, dict(labels)))
        for name in sorted(samples):
            yield Family(name, _KINDS[self._kinds[name]], name, samples[name])
