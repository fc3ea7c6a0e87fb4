"""Admission: calls one hook for one AdmissionReview request.

- A request of another kind than the hook's is rejected with 400: the webhook configuration has the wrong path. Hooks
  that take dicts also accept other kinds through subresources.
- Operations that the hook does not handle are allowed.
- The changes of a defaulter are sent as a JSON patch against the original object. Fields that the class does not know,
  or encodes differently, are left as they were.
- If a hook fails, the request is rejected with 500 and the error, and the traceback is logged.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from ostinato.api.accessors import name as name_of
from ostinato.api.codec import ObjectError, to_json
from ostinato.api.errors import APIError
from ostinato.api.object import Object
from ostinato.api.patch import create_json_patch
from ostinato.api.serializer.overlay import overlay
from ostinato.api.text.go_format import quote
from ostinato.api.validation.field_errors import FieldError
from ostinato.api.wire.json import DecodeError, decode_json, encode_json
from ostinato.webhook.hooks import AdmissionHook
from ostinato.webhook.request import OPERATIONS, AdmissionRequest
from ostinato.webhook.response import AdmissionResponse, Denied, allowed, denied, errored, refused
from ostinato.world import Executor


class HookFailed(Exception):  # noqa: N818 - named after the event
    """A hook raised an unexpected error, or returned an invalid result. `__cause__` is the error, if any."""


async def admit(hook: AdmissionHook, request: AdmissionRequest, executor: Executor) -> AdmissionResponse:
    """Call the hook. Raises HookFailed if it fails with anything but a rejection."""
    if not hook.accepts(request.kind, request.subresource):
        return errored(400, f"{hook.path} handles {hook.kind.gvk}, not {request.kind}")
    if request.operation not in OPERATIONS:
        return errored(400, f"unknown operation {quote(request.operation)}")
    if request.operation not in hook.operations:
        return allowed()
    try:
        raw = request.old_object if request.operation == "DELETE" else request.object
        instance = hook.decode(raw)
        old = hook.decode(request.old_object) if request.operation == "UPDATE" and request.old_object else None
    except (ObjectError, DecodeError) as error:
        return errored(400, f"cannot decode the object: {error}" if raw else "there is no object to decode")
    before = to_json(instance) if hook.mutating and hook.object_class is not None else b""
    try:
        outcome = await hook.callback(executor, instance, old, request)
    except Denied as refusal:
        return denied(refusal.status(request.kind.group_kind, _name(request, instance)))
    except APIError as error:
        return refused(error)
    except asyncio.CancelledError as error:
        if (task := asyncio.current_task()) is not None and task.cancelling():
            raise
        raise HookFailed(f"{hook.callback.name} failed: an operation that it awaited was cancelled") from error
    except (Exception, SystemExit) as error:
        raise HookFailed(f"{hook.callback.name} failed: {type(error).__name__}: {error}") from error
    if hook.mutating:
        return _mutated(hook, raw, before, instance if outcome is None else outcome)
    return _validated(hook, request, instance, outcome)


def _validated(hook: AdmissionHook, request: AdmissionRequest, instance: Any, outcome: Any) -> AdmissionResponse:
    """Return the response for the result of a validator: warnings, field errors, or None."""
    if outcome is None:
        return allowed()
    findings = [outcome] if isinstance(outcome, str | FieldError) else outcome
    if isinstance(findings, dict) or not isinstance(findings, Iterable):
        raise _invalid_result(hook, outcome, "a validator returns warnings, field errors or None")
    errors = []
    for finding in findings:
        if isinstance(finding, FieldError):
            errors.append(finding)
        elif isinstance(finding, str):
            request.warn(finding)
        else:
            raise _invalid_result(hook, finding, "a validator yields warnings (str) or FieldErrors")
    if errors:
        return denied(Denied(*errors).status(request.kind.group_kind, _name(request, instance)))
    return allowed()


def _mutated(hook: AdmissionHook, raw: bytes, before: bytes, after: Any) -> AdmissionResponse:
    """Return the response with the patch for the changes of a defaulter."""
    if hook.object_class is not None:
        if not isinstance(after, hook.object_class):
            raise _invalid_result(hook, after, f"a defaulter returns None or a {hook.kind.gvk.kind}")
        if to_json(after) == before:
            return allowed()
        original = decode_json(raw)
        patch = create_json_patch(original, overlay(original, after))
        return allowed(_without_losses(hook, raw, original, patch))
    if not isinstance(after, dict):
        raise _invalid_result(hook, after, "a defaulter returns None or a dict")
    try:
        modified = decode_json(encode_json(after))  # normalizes tuples, enums and the like
    except (TypeError, DecodeError) as error:
        raise HookFailed(f"{hook.callback.name} failed: the result cannot be encoded as JSON: {error}") from error
    return allowed(create_json_patch(decode_json(raw), modified))


def _without_losses(
    hook: AdmissionHook, raw: bytes, original: dict[str, Any], patch: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Return the patch without the removals that decoding and encoding alone cause."""
    if all(operation["op"] != "remove" for operation in patch):
        return patch
    lost = create_json_patch(original, overlay(original, hook.decode(raw)))
    return [operation for operation in patch if operation["op"] != "remove" or operation not in lost]


def _invalid_result(hook: AdmissionHook, outcome: Any, expected: str) -> HookFailed:
    return HookFailed(f"{hook.callback.name} failed: returned {type(outcome).__name__}; {expected}")


def _name(request: AdmissionRequest, instance: Any) -> str:
    return request.name or (name_of(instance) if isinstance(instance, Object | dict) else "")
