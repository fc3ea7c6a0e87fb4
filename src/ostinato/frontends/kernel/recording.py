"""Recording: requests and results of deciders as JSON files, which can be replayed as tests.

    ostinato run operator.py --record recordings/
    ostinato replay recordings/ operator.py

- One file for each call that differs from those before: DIR/CONTROLLER/NUMBER-KIND-NAME.json.
- Values of Secrets are redacted, in requests and results, unless `OSTINATO_RECORD_SECRETS=1` is set.
- A failed call is recorded with its error.
- A recording that cannot be written is logged; the decider is not affected.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterable, Iterator
from difflib import unified_diff
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

import msgspec

from ostinato.api import accessors as access
from ostinato.frontends.kernel.applier.diff import masked
from ostinato.frontends.kernel.sync import Decider, SyncRequest, SyncResult

DIRECTORY: Final = "OSTINATO_RECORD"
"""Environment variable: the directory for recordings. Nothing is recorded without it."""

SECRETS: Final = "OSTINATO_RECORD_SECRETS"
"""Environment variable: "1" records values of Secrets too."""

_VERSION: Final = 1
_MOST: Final = 10_000  # recordings of one process
_logger = logging.getLogger("ostinato.frontends")


class RecordingError(ValueError):
    """A file is not a recording."""


class Recording(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A call of a decider: its request, and its result or its error."""

    version: int = _VERSION
    request: SyncRequest
    result: SyncResult | None = None
    error: str = ""


def recorded(decider: Decider) -> Decider:
    """Return a decider that records its calls, if the environment names a directory; else the given one."""
    directory = os.environ.get(DIRECTORY, "")
    if not directory:
        return decider
    recorder = Recorder(Path(directory), secrets=os.environ.get(SECRETS) == "1")

    async def record(request: SyncRequest) -> SyncResult:
        before = msgspec.json.encode(request)  # the decider may change its request
        try:
            result = await decider(request)
        except Exception as error:
            recorder.write(before, None, f"{type(error).__name__}: {error}")
            raise
        recorder.write(before, result, "")
        return result

    return record


class Recorder:
    """Writes recordings into a directory."""

    def __init__(self, directory: Path, *, secrets: bool = False) -> None:
        self._directory = directory
        self._secrets = secrets
        self._seen: set[bytes] = set()  # digests of written recordings

    def write(self, request: bytes, result: SyncResult | None, error: str) -> None:
        """Write one file, unless an equal one was written. Errors are logged."""
        try:
            document = msgspec.json.decode(request)
            document.pop("attempt", None)
            answer = None if result is None else msgspec.json.decode(msgspec.json.encode(result))
            text = {"version": _VERSION, "request": document}
            text |= {"error": error} if answer is None else {"result": answer}
            self._write(text if self._secrets else redacted(text))
        except (OSError, TypeError, ValueError) as problem:
            _logger.warning("recording failed directory=%s error=%s", self._directory, problem)

    def _write(self, document: Any) -> None:
        data = msgspec.json.format(msgspec.json.encode(document, order="deterministic"), indent=2) + b"\n"
        digest = blake2b(data, digest_size=16).digest()
        if digest in self._seen or len(self._seen) >= _MOST:
            return
        self._seen.add(digest)
        if len(self._seen) == _MOST:
            _logger.warning("recording stopped directory=%s most=%d", self._directory, _MOST)
        request = document["request"]
        folder = self._directory / _safe(request["controller"])
        folder.mkdir(parents=True, exist_ok=True)
        number = 1 + max((_number(each) for each in folder.glob("*.json")), default=0)
        parent = request.get("parent") or {}
        about = _safe("-".join(filter(None, [str(parent.get("kind") or ""), access.name(parent)])) or "sync")
        path = folder / f"{number:05}-{about}.json"
        draft = path.with_suffix(".tmp")
        draft.write_bytes(data)
        draft.replace(path)


def recordings(directory: Path) -> Iterator[tuple[Path, Recording]]:
    """Read all recordings below a directory, in order. Raises `RecordingError` with the file."""
    if not directory.is_dir():
        raise RecordingError(f"{directory}: not a directory; record with ostinato run --record {directory}")
    for path in sorted(directory.rglob("*.json")):
        try:
            found = msgspec.json.decode(path.read_bytes(), type=Recording)
        except (OSError, ValueError) as error:
            raise RecordingError(f"{path}: not a recording: {error}") from None
        if found.version != _VERSION:
            raise RecordingError(f"{path}: version {found.version} of recordings is not known; record it again")
        yield path, found


async def replayed(recording: Recording, decider: Decider, *, ignore: Iterable[str] = ()) -> str:
    """Call the decider with the recorded request; return how its answer differs, as a unified diff, "" if it does not.

    `ignore`: fields of the result to leave out, such as "status.lastRun".
    """
    request = msgspec.json.decode(msgspec.json.encode(recording.request), type=SyncRequest)
    result: SyncResult | None = None
    error = ""
    try:
        result = await decider(request)
    except Exception as problem:  # noqa: BLE001 - compared with the recorded one
        error = f"{type(problem).__name__}: {problem}"
    before, after = _text(recording.result, recording.error, ignore), _text(result, error, ignore)
    return "".join(unified_diff(before, after, "recorded", "replayed"))


def redacted(value: Any) -> Any:
    """Return a copy in which Secrets have no values."""
    if isinstance(value, dict):
        shown = masked(value, None) or {}
        return {name: redacted(each) for name, each in shown.items()}
    return [redacted(each) for each in value] if isinstance(value, list) else value


def _text(result: SyncResult | None, error: str, ignore: Iterable[str]) -> list[str]:
    document = {"error": error} if result is None else redacted(msgspec.json.decode(msgspec.json.encode(result)))
    for path in ignore:
        _remove(document, path.split("."))
    text = msgspec.json.format(msgspec.json.encode(document, order="deterministic"), indent=2).decode()
    return [f"{line}\n" for line in text.splitlines()]


def _remove(value: Any, path: list[str]) -> None:
    first, *rest = path
    if isinstance(value, list):
        for each in value:
            _remove(each, path)
    elif isinstance(value, dict):
        if rest:
            _remove(value.get(first), rest)
        else:
            value.pop(first, None)


def _safe(name: str) -> str:
    """Return a name of a file in the directory, whatever is in the name."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip(".-")[:100] or "controller"


def _number(path: Path) -> int:
    found = re.match(r"\d+", path.name)
    return int(found[0]) if found else 0
