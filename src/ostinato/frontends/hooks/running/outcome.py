"""Outcome of a run: object operations, metrics, and the answer to a review."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import msgspec

from ostinato.frontends.hooks.contexts import Rendering
from ostinato.frontends.hooks.metrics import MetricOperation
from ostinato.frontends.kernel.operations.specification import Operation
from ostinato.frontends.kernel.transport.process import Usage


class HookFailed(Exception):  # noqa: N818 - named after the event
    """A run has failed. `operations`: those to execute nevertheless."""

    def __init__(self, message: str, operations: Sequence[Operation] = ()) -> None:
        super().__init__(message)
        self.operations = operations


class AdmissionAnswer(msgspec.Struct, frozen=True):
    """`patch`: a JSON patch, base64."""

    allowed: bool = False
    message: str = ""
    warnings: tuple[str, ...] = ()
    patch: str = ""


class ConversionAnswer(msgspec.Struct, frozen=True, rename="camel"):
    """`failed_message`: "" if the objects were converted."""

    failed_message: str = ""
    converted_objects: list[dict[str, Any]] = []


class Outcome(msgspec.Struct, kw_only=True):
    operations: Sequence[Operation] = ()
    metrics: Sequence[MetricOperation] = ()
    admission: AdmissionAnswer | None = None
    conversion: ConversionAnswer | None = None
    usage: Usage | None = None


class Program(Protocol):
    """The code of a hook."""

    async def run(self, rendering: Rendering, fields: Mapping[str, str]) -> Outcome:
        """Run once. Raises HookFailed. `fields`: of the run, for its log records."""

    async def close(self) -> None:
        """Release what the program holds."""
