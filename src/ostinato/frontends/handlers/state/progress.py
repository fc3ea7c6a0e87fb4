"""Progress: how far the handlers of an object are, and the state that was last handled completely.

- `last` is the essence that all handlers have seen; None before the first handling has ended. It is `old` of the next.
- `target` is the essence at the beginning of the current handling. If the object changes while handlers are retried,
  the next handling is from `target` to the newer state, so that handlers that had finished learn of it.
- Progress holds the handlers of the current handling only, and is removed at its end.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import msgspec

Json = dict[str, Any]


class HandlerState(msgspec.Struct, rename="camel"):
    """The progress of one handler. Times are ISO 8601 in UTC."""

    purpose: str = ""  # the reason for which it is called
    started: str = ""
    delayed: str | None = None  # not called again before
    retries: int = 0  # attempts so far
    success: bool = False
    failure: bool = False
    message: str | None = None
    seen: str | None = None  # digest of the essence that it has finished with

    @property
    def is_finished(self) -> bool:
        return self.success or self.failure

    def start(self, now: datetime) -> datetime:
        """Return when it was first called."""
        return parsed(self.started) or now

    def wait(self, now: datetime) -> float:
        """Return the seconds until it may be called."""
        until = parsed(self.delayed)
        return 0.0 if until is None else max((until - now).total_seconds(), 0.0)

    def succeeded(self, seen: str) -> HandlerState:
        return self._changed(success=True, failure=False, message=None, delayed=None, seen=seen)

    def failed(self, message: str, seen: str) -> HandlerState:
        return self._changed(success=False, failure=True, message=message[:_MESSAGE], delayed=None, seen=seen)

    def postponed(self, message: str | None, now: datetime, delay: float, *, attempts: int = 1) -> HandlerState:
        delayed = formatted(now + timedelta(seconds=min(delay, _LONGEST)))
        return self._changed(message=message and message[:_MESSAGE], delayed=delayed, attempts=attempts)

    def _changed(self, attempts: int = 1, **fields: Any) -> HandlerState:
        return msgspec.structs.replace(self, retries=self.retries + attempts, **fields)


class Record(msgspec.Struct):
    """What is stored of an object."""

    uid: str
    last: Json | None = None
    target: Json | None = None
    progress: dict[str, HandlerState] = {}

    @classmethod
    def read(cls, stored: object, uid: str) -> Record | None:
        """Return a stored record; None without one, of another object, or if someone has damaged it."""
        if not isinstance(stored, dict) or stored.get("uid") != uid:
            return None
        try:
            return cls(
                uid,
                last=_decoded(stored.get("lastHandled")),
                target=_decoded(stored.get("target")),
                progress=msgspec.convert(stored.get("progress") or {}, dict[str, HandlerState]),
            )
        except (msgspec.MsgspecError, TypeError):
            return None

    def stored(self) -> Json:
        """Return it as JSON. Essences are texts: a merge patch would merge them, and drop their nulls."""
        return {
            "uid": self.uid,
            "lastHandled": _encoded(self.last),
            "target": _encoded(self.target),
            "progress": msgspec.to_builtins(self.progress) or None,
        }

    def copied(self) -> Record:
        return Record(self.uid, self.last, self.target, dict(self.progress))


_MESSAGE = 1024  # characters of an error that are stored
_LONGEST = 10 * 365 * 86_400.0  # seconds


def formatted(time: datetime) -> str:
    return time.isoformat(timespec="microseconds")


def parsed(text: str | None) -> datetime | None:
    try:
        return datetime.fromisoformat(text) if text else None
    except ValueError:
        return None


def _encoded(essence: Json | None) -> str | None:
    return None if essence is None else msgspec.json.encode(essence).decode()


def _decoded(text: str | None) -> Json | None:
    return None if text is None else msgspec.json.decode(text, type=dict[str, Any])
