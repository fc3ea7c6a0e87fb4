"""Scenarios with core kinds, compared with the answers of kube-apiserver v1.36.4.

Volatile values (uids, times, addresses, ports, generated suffixes) count as equal. Parts of a message in the order of a
Go map are compared without their order; internal structures are not compared.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.stage.api import Api, asking

_DATA = Path(__file__).parents[4] / "data/server/core_kinds.json"
_CONVERSATIONS: list[dict[str, Any]] = msgspec.json.decode(_DATA.read_bytes())
_VOLATILE = (
    (re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"), "<uid>"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"), "<time>"),
    (re.compile(r"\b10\.0\.0\.\d+\b"), "<ip>"),
    (re.compile(r"kube-api-access-[a-z0-9]{5}"), "<token>"),
    (re.compile(r"in record \(\d+\)"), "in record (<version>)"),
)
_OWN = ("uid", "resourceVersion", "creationTimestamp")
_NAMESPACE = "t-1"


def _masked(value: Any) -> Any:
    match value:
        case str():
            for pattern, shown in _VOLATILE:
                value = pattern.sub(shown, value)
            return value.partition("\n")[0]
        case bool():
            return value
        case int() if 30000 <= value < 32768:
            return "<port>"
        case dict():
            return {_masked(key): _masked(item) for key, item in value.items()}
        case list():
            return [_masked(item) for item in value]
        case _:
            return value


def _comparable(body: Any, *, owners: bool) -> Any:
    """An answer without volatile values."""
    if not isinstance(body, dict):
        return body
    body = dict(body)
    if body.get("kind") == "Status":
        for field in ("metadata", "apiVersion"):
            body.pop(field, None)
        if body.get("reason") == "Invalid":
            body.pop("message", None)
            causes = body["details"].get("causes", [])
            body["details"] = {**body["details"], "causes": sorted(causes, key=lambda each: sorted(each.items()))}
    elif "metadata" in body:
        dropped = _OWN if owners else (*_OWN, "managedFields")
        body["metadata"] = {key: value for key, value in body["metadata"].items() if key not in dropped}
    if "items" in body:
        body = {**body, "items": [_comparable({**item}, owners=False) for item in body["items"] or ()]}
    return _masked(body)


def _in_namespace(value: Any) -> Any:
    return msgspec.json.decode(msgspec.json.encode(value).replace(b"${ns}", _NAMESPACE.encode()))


@pytest.mark.parametrize("conversation", _CONVERSATIONS, ids=lambda each: each["name"].replace(" ", "-"))
def test_the_server_answers_as_kube_apiserver_did(conversation: dict[str, Any]) -> None:
    differences: list[Any] = []

    @asking
    async def converse(api: Api) -> None:
        await api.post("/api/v1/namespaces", {"metadata": {"name": _NAMESPACE}})
        await api.post(f"/api/v1/namespaces/{_NAMESPACE}/serviceaccounts", {"metadata": {"name": "default"}})
        for i, step in enumerate(_in_namespace(conversation["steps"])):
            answer = await api.ask(
                step["method"],
                step["path"],
                step.get("body"),
                content_type=step.get("type", "application/json"),
                user_agent="client",
            )
            wanted = step["answer"]
            owners = "managedFields" in str(wanted["body"])
            found = (answer.code, _comparable(answer.body, owners=owners), _masked(list(answer.warnings)))
            expected = (
                wanted["code"],
                _comparable(wanted["body"], owners=owners),
                _masked(wanted.get("warnings", [])),
            )
            if found != expected:
                differences.append((i + 1, step["method"], step["path"], expected, found))

    converse()
    assert not differences, "\n\n".join(map(str, differences))
