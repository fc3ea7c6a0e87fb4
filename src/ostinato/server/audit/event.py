"""Audit events: a record at a stage, encoded as audit.k8s.io/v1 Event.

An `Event` is immutable, so that it can be encoded later in another thread.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ostinato.api.text.go_format import quote
from ostinato.server.audit.masking import MASK, masked, masked_status
from ostinato.server.audit.policy import LEVELS
from ostinato.server.audit.record import AuditRecord
from ostinato.server.request import Response, User

_NONE = "<none>"
_KIND_WITHIN = 100  # bytes in which an encoded object has its kind
_TRUNCATED = {"audit.k8s.io/truncated": "true"}


class Event(msgspec.Struct, frozen=True):
    """`response`: the response body, None if the level omits it."""

    head: dict[str, Any]
    stage: str
    timestamp: str
    received: str
    level: int
    annotations: dict[str, str]
    object_ref: dict[str, str] | None
    impersonated: User | None
    constraint: str
    status: dict[str, Any] | None
    request_object: bytes | None
    response: Response | None
    sensitive: bool
    omit_managed_fields: bool


def event_of(
    record: AuditRecord, stage: str, timestamp: str, status: dict[str, Any] | None, response: Response | None
) -> Event:
    if status is not None and record.sensitive:
        status = masked_status(status)
    return Event(
        record.head,
        stage,
        timestamp,
        record.received,
        record.config.level,
        dict(record.annotations),
        None if record.object_ref is None else dict(record.object_ref),
        record.impersonated,
        record.constraint,
        status,
        record.request_object,
        response,
        record.sensitive,
        record.config.omit_managed_fields,
    )


_REFERENCE = ("resource", "namespace", "name", "uid", "apiGroup", "apiVersion", "resourceVersion", "subresource")


def encoded(event: Event, *, truncated: bool = False) -> bytes:
    """Encode as one line of JSON. `truncated`: without request and response objects."""
    head = event.head
    body: dict[str, Any] = {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": LEVELS[event.level],
        "auditID": head["auditID"],
        "stage": event.stage,
        "requestURI": head["requestURI"],
        "verb": head["verb"],
        "user": head["user"],
    }
    if event.impersonated is not None:
        body["impersonatedUser"] = user_info(event.impersonated)
    if event.constraint:
        body["authenticationMetadata"] = {"impersonationConstraint": event.constraint}
    for field in ("sourceIPs", "userAgent"):
        if head[field]:
            body[field] = head[field]
    if event.object_ref is not None:
        body["objectRef"] = {name: event.object_ref[name] for name in _REFERENCE if event.object_ref.get(name)}
    if event.status is not None:
        body["responseStatus"] = {"metadata": {}, **event.status}
    if not truncated:
        if event.request_object is not None:
            body["requestObject"] = _object(event, event.request_object)
        response = None if event.response is None else _answered(event, event.response)
        if response is not None:
            body["responseObject"] = response
    body["requestReceivedTimestamp"] = event.received
    body["stageTimestamp"] = event.timestamp
    annotations = event.annotations | _TRUNCATED if truncated else event.annotations
    if annotations:
        body["annotations"] = dict(sorted(annotations.items()))
    return msgspec.json.encode(body)


def _object(event: Event, data: bytes) -> Any:
    """The object to write: unchanged unless masked or stripped of managedFields."""
    try:
        if not event.sensitive and not event.omit_managed_fields:
            return msgspec.Raw(msgspec.json.format(data, indent=-1))  # one line
        value = msgspec.json.decode(data)
    except msgspec.DecodeError:  # not an object: may hold anything
        return MASK
    if event.omit_managed_fields:
        value = _without_managed_fields(value)
    return masked(value) if event.sensitive else value


def _answered(event: Event, response: Response) -> Any:
    media = response.content_type.partition(";")[0]
    data = response.body
    if event.object_ref is None and b'"kind"' not in data[:_KIND_WITHIN]:
        return None  # not an object
    if media == "application/json":
        return _object(event, data)
    if media == "application/vnd.kubernetes.protobuf":
        from ostinato.api import protobuf  # noqa: PLC0415 - seldom needed

        return _object(event, msgspec.json.encode(protobuf.decode(data)))
    if media == "application/yaml":
        from ostinato.api.wire.yaml import decode_yaml  # noqa: PLC0415

        return _object(event, msgspec.json.encode(decode_yaml(data)))
    return None


def _without_managed_fields(value: Any) -> Any:
    """Remove managedFields from an object, list items or Table rows."""
    if not isinstance(value, dict):
        return value
    metadata = value.get("metadata")
    if isinstance(metadata, dict) and "managedFields" in metadata:
        value = {**value, "metadata": {key: each for key, each in metadata.items() if key != "managedFields"}}
    if isinstance(value.get("items"), list):
        value = {**value, "items": [_without_managed_fields(item) for item in value["items"]]}
    if isinstance(value.get("rows"), list):
        rows = [
            {**row, "object": _without_managed_fields(row["object"])} if "object" in row else row
            for row in value["rows"]
        ]
        value = {**value, "rows": rows}
    return value


def user_info(user: User | None) -> dict[str, Any]:
    if user is None:
        return {}
    fields: dict[str, Any] = {
        "username": user.name,
        "uid": user.uid,
        "groups": list(user.groups),
        "extra": {key: list(values) for key, values in user.extra.items()},
    }
    return {name: value for name, value in fields.items() if value}


def legacy_line(event: Event) -> str:
    """Encode as one line of kube-apiserver's legacy format."""
    user, as_user = event.head["user"], event.impersonated
    shown = {
        "id": event.head["auditID"],
        "stage": event.stage,
        "ip": (event.head["sourceIPs"] or ["<unknown>"])[0],
        "method": event.head["verb"],
        "user": user.get("username", _NONE),
        "groups": _quoted_list(user["groups"]) if user.get("username") and user.get("groups") else _NONE,
        "as": "<self>" if as_user is None else as_user.name,
        "asgroups": "<lookup>" if as_user is None else _quoted_list(as_user.groups),
        "user-agent": event.head["userAgent"],
        "namespace": (event.object_ref or {}).get("namespace") or _NONE,
        "uri": event.head["requestURI"],
        "response": "<deferred>" if event.status is None else str(event.status.get("code", 0)),
    }
    fields = " ".join(f"{name}={quote(value)}" for name, value in shown.items())
    return f"{event.received} AUDIT: {fields}"


def _quoted_list(values: Any) -> str:
    return ",".join(f'"{value}"' for value in values)
