"""Answers to access requests: the compared part, and its recording."""

from __future__ import annotations

import gzip
import hashlib
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from tests.contract.access.objects import objects
from tests.contract.access.questions import Question

FILE: Final = Path(__file__).parents[2] / "data" / "access" / "answers.json.gz"

_UID_OF: Final = re.compile(r"\{uid ([^}]+)\}")
_UID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")

Ask = Callable[[Question], Awaitable[tuple[int, bytes]]]
"""Sends a request, and gives back the code and the body of its answer."""


class Answer(NamedTuple):
    """The status code, and the decision: the message of a rejection, or the status of a review."""

    code: int
    says: Any


class Recording(msgspec.Struct):
    """Each answer as an index into the distinct texts: many are equal."""

    questions: str  # a digest of the requests
    texts: list[Answer]
    answers: list[int]


async def set_up(ask: Ask) -> None:
    """Create the objects that the requests refer to."""
    for path, obj in objects():
        code, body = await ask(Question("admin", "POST", path, obj))
        if code not in (200, 201, 409):
            raise RuntimeError(f"{path}: {code} {body.decode()}")


async def answered(ask: Ask, questions: list[Question]) -> list[Answer]:
    uids: dict[str, str] = {}
    answers: list[Answer] = []
    for question in questions:
        body = question.body
        if body is not None:
            text = msgspec.json.encode(body).decode()
            for path in _UID_OF.findall(text):
                if path not in uids:
                    uids[path] = msgspec.json.decode((await ask(Question("admin", "GET", path)))[1])["metadata"]["uid"]
            body = msgspec.json.decode(_UID_OF.sub(lambda found: uids[found[1]], text))
        answers.append(_of(*await ask(question._replace(body=body))))
    return answers


def _of(code: int, body: bytes) -> Answer:
    try:
        value = msgspec.json.decode(body)
    except msgspec.DecodeError:
        return Answer(code, "" if code < 300 else body.decode(errors="replace"))
    if not isinstance(value, dict):
        return Answer(code, "")
    if value.get("kind") == "Status" and code >= 300:
        return Answer(code, _UID.sub("UID", value.get("message", "")))
    if str(value.get("kind", "")).endswith("Review"):
        return Answer(code, _verdict(value.get("status") or {}))
    return Answer(code, "")


def _verdict(status: dict[str, Any]) -> Any:
    for field in ("resourceRules", "nonResourceRules"):
        if field in status:  # rules have no order
            rules = ({key: sorted(values) for key, values in rule.items() if values} for rule in status[field] or ())
            status[field] = sorted(rules, key=repr)
    return {key: value for key, value in sorted(status.items()) if value}


def digest(questions: list[Question]) -> str:
    return hashlib.sha256(msgspec.json.encode(questions)).hexdigest()


def write(questions: list[Question], answers: list[Answer]) -> None:
    places: dict[bytes, int] = {}
    texts: list[Answer] = []
    order = []
    for answer in answers:
        key = msgspec.json.encode(answer)
        if key not in places:
            places[key] = len(texts)
            texts.append(answer)
        order.append(places[key])
    data = msgspec.json.encode(Recording(digest(questions), texts, order))
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_bytes(gzip.compress(data, mtime=0))


def read(questions: list[Question]) -> list[Answer]:
    recording = msgspec.json.decode(gzip.decompress(FILE.read_bytes()), type=Recording)
    if recording.questions != digest(questions):
        raise ValueError("the questions have changed since the answers were recorded; record them again")
    return [recording.texts[place] for place in recording.answers]
