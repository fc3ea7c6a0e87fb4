"""Scripts: the behaviour of simulated containers, from the Pod annotation `script.ostinato.dev/behaviour`.

The annotation is a list of words separated by commas:

| word | behaviour |
|---|---|
| `ready` | start and become ready immediately. The default |
| `never-ready` | start and never become ready |
| `slow` | become ready two seconds after the start |
| `hold` | never start |
| `succeed`, `fail`, `fail:CODE` | exit 0.4 s after the start |
| `ready-then-fail-after-5s` | fail after that time |
| `start:2s`, `ready:5s`, `finish:1m` | time until the start, until ready, until the exit |
| `linger` | ignore SIGTERM: stop takes the whole grace period |

Pods of a Job without the annotation succeed after a second. Init containers succeed immediately and sidecars keep
running, regardless of the script.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

import msgspec

from ostinato.api.time import Duration, TimeError

ANNOTATION: Final = "script.ostinato.dev/behaviour"
_READY_THEN_FAIL: Final = re.compile(r"ready-then-fail-after-(.+)")
_SOON: Final = 0.4


class ScriptError(ValueError):
    """An unknown word or an invalid value."""


class Script(msgspec.Struct, frozen=True, kw_only=True):
    """A parsed script. Seconds are counted from the start; None means never."""

    holds: bool = False
    starts_after: float = 0.0
    ready_after: float | None = 0.0
    ends_after: float | None = None
    code: int = 0
    lingers: bool = False


STEADY: Final = Script()
OF_A_JOB: Final = Script(ends_after=1.0)
AT_ONCE: Final = Script(ends_after=0.0)


@lru_cache(maxsize=256)
def parse(text: str) -> Script:
    """Parse a script; `ScriptError` for an unknown word."""
    script = STEADY
    for word in filter(None, (each.strip() for each in text.split(","))):
        script = msgspec.structs.replace(script, **_meaning(word))
    return script


def _meaning(word: str) -> dict[str, float | int | bool | None]:
    name, colon, value = word.partition(":")
    if found := _READY_THEN_FAIL.fullmatch(word):
        return {"ends_after": _seconds(found[1], word), "code": 1}
    if colon and name in ("start", "ready", "finish"):
        return {{"start": "starts_after", "ready": "ready_after", "finish": "ends_after"}[name]: _seconds(value, word)}
    if name == "fail":
        if colon and not (value.isascii() and value.isdigit() and int(value) < 256):
            raise ScriptError(f"{word!r}: want a code from 0 to 255")
        return {"ends_after": _SOON, "code": int(value) if colon else 1}
    known: dict[str, dict[str, float | int | bool | None]] = {
        "ready": {"ready_after": 0.0},
        "never-ready": {"ready_after": None},
        "slow": {"ready_after": 2.0},
        "hold": {"holds": True},
        "succeed": {"ends_after": _SOON, "code": 0},
        "linger": {"lingers": True},
    }
    if word not in known:
        raise ScriptError(f"unknown word {word!r}; use {', '.join(known)}, fail:CODE, start:2s, ready:5s, finish:1m")
    return known[word]


def _seconds(text: str, word: str) -> float:
    try:
        return Duration.parse(text).seconds
    except TimeError as error:
        raise ScriptError(f"{word!r}: {error}") from None
