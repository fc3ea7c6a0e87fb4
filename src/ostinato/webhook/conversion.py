"""Conversion: converts objects between versions of a kind, as ConversionReviews request.

- Converters are registered in a `Scheme`; versions without a direct converter are converted through others.
- `Conversions.check()` reports pairs of versions that cannot be converted.
- A review is converted as a whole: the first error is the response, and names the object.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any, Final, Self

import msgspec

from ostinato.api.accessors import describe, gvk
from ostinato.api.codec import ObjectError, from_dict, to_dict
from ostinato.api.gvk import GroupKind, GroupVersion, GroupVersionKind
from ostinato.api.object import Object, kind_of
from ostinato.api.scheme import Scheme, SchemeError
from ostinato.api.wire.json import DecodeError, decode_json
from ostinato.webhook.hooks import ConversionHook
from ostinato.webhook.request import ReviewError

CONVERT: Final = "/convert"  # path
_VERSION: Final = "apiextensions.k8s.io/v1"


class ConversionFailed(Exception):  # noqa: N818 - named after the event
    """An object cannot be converted; the message names it. `__cause__` is the error of a converter, if any."""

    uid = ""  # of the review, if known


class ConversionRequest(msgspec.Struct, frozen=True):
    uid: str
    version: GroupVersion
    objects: list[dict[str, Any]]


class Conversions:
    """The converters of all kinds with several versions."""

    def __init__(self, scheme: Scheme | None = None) -> None:
        """`scheme`: registered conversions, to which hooks are added. Defaults to an empty one."""
        self._scheme = scheme or Scheme("webhooks")
        self._kinds: dict[GroupKind, set[type[Object]]] = {}

    def __bool__(self) -> bool:
        return bool(self._kinds)

    @property
    def classes(self) -> list[type[Object]]:
        """The classes of all versions of all kinds."""
        return [cls for classes in self._kinds.values() for cls in classes]

    def add(self, hook: ConversionHook) -> None:
        self.serve(hook.source, hook.target)
        self._scheme.register_conversion(hook.source, hook.target, hook.function)

    def serve(self, *classes: type[Object]) -> Self:
        """Convert objects of these classes with the converters of the scheme."""
        for cls in classes:
            self._scheme.register(cls)
            self._kinds.setdefault(kind_of(cls).gvk.group_kind, set()).add(cls)
        return self

    def check(self) -> None:
        """Raise TypeError if a pair of versions cannot be converted."""
        for kind, classes in self._kinds.items():
            for source, target in itertools.permutations(sorted(classes, key=lambda each: kind_of(each).gvk), 2):
                if not self._scheme.convertible(source, target):
                    versions = f"{kind_of(source).gvk.version} to {kind_of(target).gvk.version}"
                    raise TypeError(f"{kind}: no conversion from {versions}; add a @converter")

    def answer(self, body: bytes) -> bytes:
        """Return the response to a ConversionReview. Raises ReviewError if it is invalid, or ConversionFailed."""
        request = read_conversion(body)
        try:
            objects = self.convert(request.objects, request.version)
        except ConversionFailed as failure:
            failure.uid = request.uid
            raise
        result = {"metadata": {}, "status": "Success"}
        return _review({"uid": request.uid, "convertedObjects": objects, "result": result})

    def convert(self, objects: Iterable[dict[str, Any]], version: GroupVersion) -> list[dict[str, Any]]:
        """Convert all objects to a version. Raises ConversionFailed if one cannot be converted."""
        return [self._converted(each, version) for each in objects]

    def _converted(self, document: dict[str, Any], version: GroupVersion) -> dict[str, Any]:
        source = _kind(document)
        if source.group != version.group or source.group_kind not in self._kinds:
            raise ConversionFailed(f"{describe(document)}: no conversion from {source} to {version}")
        if source.group_version == version:
            raise ConversionFailed(f"{describe(document)}: already has version {version}")
        try:
            typed = from_dict(self._scheme.type_of(source), document)
            converted = self._scheme.convert(typed, version)
            if gvk(converted) != version.kind(source.kind):
                raise TypeError(f"the converter returned {gvk(converted)} instead of {version}")
            result = to_dict(converted)
        except (ObjectError, SchemeError) as error:
            raise ConversionFailed(f"{describe(document)}: {error}") from None
        except (Exception, SystemExit) as error:
            raise ConversionFailed(f"{describe(document)}: {type(error).__name__}: {error}") from error
        metadata = result.get("metadata", {})
        return result if metadata.get("name") else {**result, "metadata": {**_metadata(document), **metadata}}


def _metadata(document: dict[str, Any]) -> dict[str, Any]:
    metadata = document.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def read_conversion(body: bytes) -> ConversionRequest:
    """Decode a ConversionReview. Raises ReviewError if it is invalid."""
    if not body:
        raise ReviewError("request body is empty")
    try:
        review = decode_json(body)
    except DecodeError as error:
        raise ReviewError(f"invalid ConversionReview: {error}") from None
    request = review.get("request") if isinstance(review, dict) else None
    if not isinstance(request, dict) or review.get("kind", "ConversionReview") != "ConversionReview":
        raise ReviewError("invalid ConversionReview: no request")
    uid, objects, desired = request.get("uid", ""), request.get("objects") or [], request.get("desiredAPIVersion")
    uid = uid if isinstance(uid, str) else ""
    api_version = review.get("apiVersion", _VERSION)
    if api_version != _VERSION:
        raise ReviewError(
            f"unsupported ConversionReview version {api_version}, only {_VERSION}; "
            'set conversionReviewVersions to ["v1"] in the CustomResourceDefinition',
            uid=uid,
            api_version=str(api_version),
        )
    if not isinstance(objects, list) or not all(isinstance(each, dict) for each in objects):
        raise ReviewError("invalid ConversionReview: objects must be a list of objects", uid=uid)
    try:
        return ConversionRequest(uid, GroupVersion.parse(desired if isinstance(desired, str) else ""), objects)
    except ValueError as error:
        raise ReviewError(f"desiredAPIVersion: {error}", uid=uid) from None


def failed_review(uid: str, message: str, api_version: str = "") -> bytes:
    result = {"metadata": {}, "status": "Failure", "message": message}
    return _review({"uid": uid, "convertedObjects": None, "result": result}, api_version)


def _review(response: dict[str, Any], api_version: str = "") -> bytes:
    return msgspec.json.encode(
        {"kind": "ConversionReview", "apiVersion": api_version or _VERSION, "response": response}
    )


def _kind(document: dict[str, Any]) -> GroupVersionKind:
    try:
        return gvk(document)
    except ValueError as error:
        raise ConversionFailed(f"{describe(document)}: {error}") from None
