"""Runtimes: what runs the containers of a node, behind one interface.

An agent says what is to run, and is told when something has changed. A runtime keeps no opinions: restarts, probes,
hooks, order and status are the agent's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

import msgspec

from ostinato.api.time import Time
from ostinato.kinds.core_v1 import Container, Pod

Changed = Callable[[Pod], None]
"""Called when something has happened to a container of a Pod."""


class Exit(msgspec.Struct, frozen=True, kw_only=True):
    """How a container ended."""

    code: int
    at: Time
    reason: str = ""  # defaults to Completed, or Error
    message: str = ""


class StartError(Exception):
    """A container cannot be started now: `reason` and message are shown as what it waits for."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class Running(Protocol):
    """A container that was started. It stays the same object after its end, which `exit` tells of."""

    @property
    def id(self) -> str:
        """With the runtime's name before it: "process://…"."""

    @property
    def image_id(self) -> str: ...

    @property
    def started_at(self) -> Time: ...

    @property
    def ready(self) -> bool:
        """Whether it can do its work, as far as the runtime knows: what probes say comes on top."""

    @property
    def exit(self) -> Exit | None: ...

    async def stop(self, grace: float) -> None:
        """Ask it to end, and make it after so many seconds; returns when it has ended. May be called again."""


class Runtime(Protocol):
    @property
    def version(self) -> str:
        """As a node names it: "process://1"."""

    @property
    def tells(self) -> bool:
        """Whether its containers are worth events."""

    def listen(self, changed: Changed) -> None:
        """Whom to tell of changes. Called once, before anything is started."""

    async def address(self, pod: Pod) -> str:
        """The Pod's own address; the same each time it is asked for."""

    async def start(self, pod: Pod, container: Container, attempt: int) -> Running:
        """Start a container, for the first time (0) or again; a `StartError` if that cannot be."""

    async def recover(self, pod: Pod) -> Mapping[str, Running]:
        """The containers of the Pod that an agent before this one has started, by name; the newest of each name."""

    async def discard(self, pod: Pod) -> None:
        """Let go of all that there is of the Pod, whose containers have ended. Harmless when there is nothing."""
