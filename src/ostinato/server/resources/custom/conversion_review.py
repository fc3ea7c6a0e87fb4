"""ConversionReview: calls the conversion webhook of a definition, and validates its response.

The response must have one object for each request object, in the desired version, with the same kind, name, namespace
and uid; else the request fails with kube-apiserver's message. Of metadata, the webhook may change labels and
annotations only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from ostinato.api.errors import Unknown
from ostinato.api.gvk import GroupVersionKind
from ostinato.api.text.go_format import quote
from ostinato.api.validation import names
from ostinato.api.validation.field_errors import Path, joined
from ostinato.server.resources.custom.definition import Definition
from ostinato.server.resources.strategy import Json
from ostinato.server.schema.decoding.builtin import json_type
from ostinato.server.webhooks.review import check_kind, decoded, field, version_of
from ostinato.server.webhooks.target import CallError

if TYPE_CHECKING:
    from ostinato.server.webhooks.target import PostReview
    from ostinato.world import Ids

_RESPONSE: Final = "ConversionResponse.response"
_SECONDS: Final = 30  # timeout of a call
_MOST_OBJECTS: Final = 100  # maximum objects in one review
_MOST_BYTES: Final = 2 << 20
_GO_TYPES: Final = {type(None): "<nil>", str: "string", bool: "bool", int: "int64", float: "float64"} | {
    list: "[]interface {}",
    dict: "map[string]interface {}",
}


class Conversions:
    """The conversion webhook of a definition."""

    def __init__(self, definition: Definition, ask: PostReview, ids: Ids) -> None:
        webhook = definition.spec["conversion"]["webhook"]
        self.definition = definition
        self._kind: str = definition.names["kind"]
        self._client: Json = webhook["clientConfig"]
        self._review = version_of(webhook.get("conversionReviewVersions") or [])
        self._ask = ask
        self._ids = ids

    async def convert(self, objects: Sequence[Json], to: str) -> list[Json]:
        """Convert objects to a version, each with its kind and apiVersion; Unknown if that fails."""
        converted: list[Json] = []
        for batch in _batches(objects):
            try:
                converted += await self._converted(batch, to)
            except Unknown:
                if len(batch) == 1:
                    raise
                for obj in batch:  # so that the error refers to the first object that fails
                    converted += await self._converted([obj], to)
        return converted

    async def _converted(self, objects: list[Json], to: str) -> list[Json]:
        known = [version.api_version for version in self.definition.versions]
        for obj in objects:
            if obj["apiVersion"] not in known:
                raise Unknown.of(f"request to convert CR from an invalid group/version: {obj['apiVersion']}")
        about = f"conversion webhook for {GroupVersionKind.of(objects[0]['apiVersion'], self._kind)}"
        try:
            answers = await self._reviewed(objects, to)
        except CallError as error:
            raise Unknown.of(f"{about} failed: {error}") from None
        if len(answers) != len(objects):
            raise Unknown.of(f"{about} returned {len(answers)} objects, expected {len(objects)}")
        return [_checked(about, obj, answer, to) for obj, answer in zip(objects, answers, strict=True)]

    async def _reviewed(self, objects: list[Json], to: str) -> list[Any]:
        if not self._review:
            raise Unknown.of("no supported conversion review versions")
        expected = GroupVersionKind("apiextensions.k8s.io", self._review, "ConversionReview")
        uid = self._ids.uid()
        review = {
            "kind": expected.kind,
            "apiVersion": expected.api_version,
            "request": {"uid": uid, "desiredAPIVersion": to, "objects": objects},
            "response": {"uid": "", "convertedObjects": None, "result": {"metadata": {}}},
        }
        answer = decoded(await self._ask(self._client, msgspec.json.encode(review), _SECONDS), expected)
        fault = check_kind(answer, expected) if self._review == "v1" else ""
        if fault:
            raise CallError(fault)
        response = field(answer, "response", dict, "ConversionReview")
        if response is None:
            raise CallError("no response provided")
        given = field(response, "uid", str, _RESPONSE) or ""
        objects = field(response, "convertedObjects", list, _RESPONSE, "[]runtime.RawExtension") or []
        result = field(response, "result", dict, _RESPONSE, "v1.Status") or {}
        status = field(result, "status", str, f"{_RESPONSE}.result") or ""
        message = field(result, "message", str, f"{_RESPONSE}.result") or ""
        if self._review == "v1" and given != uid:
            raise CallError(f"expected response.uid={quote(uid)}, got {quote(given)}")
        if status != "Success":
            raise CallError(message or f"response.result.status was '{status}', not 'Success'")
        return objects


def _batches(objects: Sequence[Json]) -> Iterator[list[Json]]:
    batch: list[Json] = []
    size = 0
    for obj in objects:
        length = len(msgspec.json.encode(obj)) if len(objects) > 1 else 0
        if batch and (len(batch) >= _MOST_OBJECTS or size + length > _MOST_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(obj)
        size += length
    if batch:
        yield batch


def _checked(about: str, original: Json, converted: Any, to: str) -> Json:
    """A converted object, with the original metadata except for labels and annotations."""
    if not isinstance(converted, dict):
        if converted is None:
            raise Unknown.of("unexpected end of JSON input")
        raise Unknown.of(
            f"json: cannot unmarshal {json_type(converted)} into Go value of type map[string]interface {{}}"
        )
    if not converted.get("kind"):
        raise Unknown.of(f"Object 'Kind' is missing in '{msgspec.json.encode(converted).decode()}'")
    faulty = f"{about} returned invalid object"
    if converted.get("apiVersion") != to:
        found = converted.get("apiVersion", "")
        raise Unknown.of(f"{faulty} at index 0: invalid groupVersion (expected {to}, received {found})")
    if converted["kind"] != original["kind"]:
        raise Unknown.of(
            f"{faulty} at index 0: invalid kind (expected {original['kind']}, received {converted['kind']})"
        )
    before: Json = original.get("metadata", {})
    after = converted.get("metadata")
    for name, shown in (("name", "name"), ("namespace", "namespace"), ("uid", "UID")):
        new = after.get(name, "") if isinstance(after, dict) else ""
        if before.get(name, "") != new:
            raise Unknown.of(f"{faulty}: must have the same {shown}: {before.get(name, '')} != {new}")
    metadata = dict(before)
    for name in ("labels", "annotations"):
        try:
            _take(metadata, name, after if isinstance(after, dict) else {})
        except ValueError as error:
            raise Unknown.of(f"{about} returned invalid metadata: {error}") from None
    return {**converted, "metadata": metadata}


def _take(metadata: Json, field: str, converted: Json) -> None:
    """The labels or annotations of a converted object; ValueError if they are invalid."""
    values = converted.get(field)
    if values is None:
        metadata.pop(field, None)
        return
    if not isinstance(values, dict):
        raise ValueError(f"invalid metadata.{field} of type {_GO_TYPES[type(values)]} in converted object")
    for key, value in values.items():
        if not isinstance(value, str):
            kind = _GO_TYPES[type(value)]
            raise ValueError(f"metadata.{field}[{key}] must be a string, but is {kind} in converted object")
    if values != metadata.get(field, {}):
        if field == "labels":
            faults = names.validate_labels(values, Path("metadata", "labels"))
        else:
            faults = names.validate_annotations(values, Path("metadata", "annotation"))
        if faults:
            raise ValueError(joined(faults))
    metadata[field] = values
